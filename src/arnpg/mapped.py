"""Arrays of an uncompressed ``.npz`` file, mapped from the disk: each begins at a multiple of 64 bytes."""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Mapping
from typing import IO

import numpy as np

__all__ = ["map_stored", "write_aligned"]

ALIGNMENT = 64
LOCAL_HEADER = struct.Struct("<4s5H3L2H")
PADDING_FIELD = 0x4150  # the identifier of an extra field that readers of zip files skip


def write_aligned(file: IO[bytes], arrays: Mapping[str, np.ndarray]) -> None:
    """Write what ``numpy.load`` reads, without compression, every member padded to the alignment."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.extra = _padding(file.tell() + LOCAL_HEADER.size + len(entry.filename.encode()) + 20)
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)


def _padding(position: int) -> bytes:
    """An extra field after which the file is aligned."""
    length = -(position + 4) % ALIGNMENT
    return struct.pack("<HH", PADDING_FIELD, length) + bytes(length)


def map_stored(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Read-only maps of the members that are stored as they are and aligned."""
    found = {}
    with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
        for entry in archive.infolist():
            if entry.compress_type != zipfile.ZIP_STORED or not entry.filename.endswith(".npy"):
                continue
            file.seek(entry.header_offset)
            fields = LOCAL_HEADER.unpack(file.read(LOCAL_HEADER.size))
            file.seek(fields[-2] + fields[-1], os.SEEK_CUR)
            array = _mapped(file, os.fspath(path), entry.file_size)
            if array is not None:
                found[entry.filename.removesuffix(".npy")] = array
    return found


def _mapped(file: IO[bytes], path: str, size: int) -> np.ndarray | None:
    """The array that begins here, if it can be mapped."""
    begin = file.tell()
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file)
    offset = file.tell()
    length = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if dtype.hasobject or fortran or offset % ALIGNMENT or length == 0 or offset - begin + length != size:
        return None
    return np.memmap(path, dtype, "r", offset, shape)
