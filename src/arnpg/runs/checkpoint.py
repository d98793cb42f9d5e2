"""Checkpoints: a pytree in one ``.npz`` file, without pickle, in which every flipped bit is noticed.

Each leaf has a SHA-256, so that a damaged file says which leaf; the whole file has one in the comment at its end, so
that nothing between the leaves goes unnoticed either. ``numpy.load`` opens the files as they are.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from arnpg.errors import StorageError
from arnpg.runs.files import storage, write_atomic

__all__ = ["Checkpoints", "Loaded", "named_leaves", "read_arrays", "write_arrays"]

VERSION = 1
KEEP = 2
HEADER = "header"
MARK = b"arnpg-sha256:"
SEAL = len(MARK) + 64
MAX_BYTES = 64 * 2**30


class Loaded(NamedTuple):
    """A checkpoint that was read: its step, the pytree, the plain data beside it, and what is to be reported."""

    step: int
    tree: Any
    extra: dict[str, Any]
    note: str | None = None


class Checkpoints:
    """The checkpoints of one run, the last ``KEEP`` of them."""

    def __init__(self, folder: Path, config_hash: str) -> None:
        """Nothing is read or written yet; ``config_hash`` is what every file must carry."""
        self.folder = folder
        self._hash = config_hash

    def paths(self) -> list[Path]:
        """The files, oldest first."""
        with storage(self.folder, "read"):
            return sorted(self.folder.glob("step-*.npz"))

    def save(self, step: int, tree: Any, extra: dict[str, Any]) -> Path:
        """Write ``tree`` and the plain data ``extra``, all or nothing; then forget all but the last ``KEEP``."""
        path = self.folder / f"step-{step:012d}.npz"
        header = {"version": VERSION, "config_hash": self._hash, "step": step, "extra": extra}
        write_atomic(path, _pack(header, tree))
        with storage(self.folder):
            for old in self.paths()[:-KEEP]:
                old.unlink(missing_ok=True)
        return path

    def load(self, path: Path, template: Any) -> Loaded:
        """Read one file into the structure of ``template``; each kind of damage has its own sentence."""
        header, members = _unpack(path)
        _require_hash(path, header, self._hash)
        return Loaded(header["step"], _fill(path, header["leaves"], members, template), header["extra"])

    def latest(
        self, template: Any, resume: str = "strict", check: Callable[[Loaded], None] = lambda found: None
    ) -> Loaded | None:
        """The newest checkpoint that passes ``check`` too, none where there is none.

        With ``resume="auto"`` an older one takes the place of a damaged one, and ``note`` says so.
        """
        problems, paths = [], self.paths()
        for path in reversed(paths):
            try:
                check(found := self.load(path, template))
                return found._replace(note=" ".join([*problems, f"Used {path} instead."]) if problems else None)
            except StorageError as error:
                if resume != "auto":
                    way = " With --auto (resume='auto') the one before it is used." if path != paths[0] else ""
                    raise StorageError(f"{error}{way}") from error
                problems.append(str(error))
        if problems:
            raise StorageError(" ".join(problems))
        return None


def write_arrays(path: Path, config_hash: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Arrays by name in a file with the same checks as a checkpoint; its folder is made if needed."""
    with storage(path.parent):
        path.parent.mkdir(exist_ok=True)
    write_atomic(path, _pack({"version": VERSION, "config_hash": config_hash}, dict(arrays)))


def read_arrays(path: Path, config_hash: str) -> dict[str, np.ndarray]:
    """What ``write_arrays`` wrote for this configuration."""
    header, members = _unpack(path)
    _require_hash(path, header, config_hash)
    return {name: array.view(jnp.dtype(header["leaves"][name]["dtype"])).copy() for name, array in members.items()}


def named_leaves(tree: Any) -> dict[str, Any]:
    """Leaves by their path, such as ``state/policy/log_policy``."""
    found: dict[str, Any] = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        name = jax.tree_util.keystr(path, simple=True, separator="/") or "leaf"
        found[name if name not in found else f"{name}#{len(found)}"] = leaf
    return found


def _require_hash(path: Path, header: dict[str, Any], wanted: str) -> None:
    found = header["config_hash"]
    if found != wanted:
        raise StorageError(f"{path} belongs to another configuration ({found[:12]}, not {wanted[:12]}).")


def _pack(header: dict[str, Any], tree: Any) -> bytes:
    """The whole file: a stored zip of the header and the leaves, and the seal in its comment."""
    leaves, buffer = {}, io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, leaf in named_leaves(tree).items():
            if (encoded := _encode(leaf)) is None:
                continue
            array, about = encoded
            leaves[name] = about | {"sha256": _digest(array)}
            _write_member(archive, f"leaf/{name}", array)
        text = json.dumps(header | {"leaves": leaves}).encode()
        _write_member(archive, HEADER, np.frombuffer(text, np.uint8))
        archive.comment = MARK + b"0" * 64
    data = buffer.getbuffer()
    data[-64:] = hashlib.sha256(data[:-64]).hexdigest().encode()
    return bytes(data)


def _write_member(archive: zipfile.ZipFile, name: str, array: np.ndarray) -> None:
    entry = zipfile.ZipInfo(f"{name}.npy")  # a fixed date: equal states make equal files
    with archive.open(entry, "w", force_zip64=True) as file:
        np.lib.format.write_array(file, array, allow_pickle=False)


def _encode(leaf: Any) -> tuple[np.ndarray, dict[str, Any]] | None:
    """A leaf as an array and what is needed to rebuild it; none for what is no data, such as a function."""
    if _is_key(leaf):
        data = np.asarray(jax.random.key_data(leaf))
        return data, {"shape": list(data.shape), "dtype": data.dtype.name, "key": str(jax.random.key_impl(leaf))}
    if not isinstance(leaf, jax.Array | np.ndarray | np.generic | bool | int | float | complex):
        return None
    array = np.asarray(leaf, order="C")
    about = {"shape": list(array.shape), "dtype": array.dtype.name}
    if array.dtype.kind == "V":  # bfloat16 and its kin, which the .npy format has no name for
        array = array.view(f"u{array.dtype.itemsize}")
    return array, about


def _is_key(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _digest(array: np.ndarray) -> str:
    return hashlib.sha256(array.tobytes()).hexdigest()


def _unpack(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the raw leaves of an undamaged file."""
    with storage(path, "read"):
        if path.stat().st_size > MAX_BYTES:
            raise StorageError(f"{path} is larger than any checkpoint, {path.stat().st_size} bytes.")
        data = path.read_bytes()
    if not data:
        raise StorageError(f"{path} is empty (zero bytes).")
    if not data.startswith(b"PK"):
        raise StorageError(f"{path} is not a checkpoint, or its beginning is damaged.")
    if data[-SEAL:-64] != MARK:
        raise StorageError(f"{path} is truncated: its end is missing.")
    if hashlib.sha256(memoryview(data)[:-64]).hexdigest().encode() != data[-64:]:
        raise StorageError(f"{path} is damaged: {_culprit(data)}.")
    try:
        header, members = _members(data)
    except (ValueError, KeyError, NotImplementedError, RuntimeError, zipfile.BadZipFile) as error:
        raise StorageError(f"{path} is not a checkpoint of arnpg: {error}.") from error
    if header["version"] > VERSION:
        raise StorageError(f"{path} has format version {header['version']}; this arnpg reads {VERSION}, update it.")
    return header, members


def _culprit(data: bytes) -> str:
    """Which leaf of a damaged file differs, where that can be told."""
    try:
        header, members = _members(data, check=False)
        wrong = [name for name, about in header["leaves"].items() if about["sha256"] != _digest(members[name])]
    except Exception:  # anything can be wrong in a file whose bits have flipped
        wrong = []
    return f"the SHA-256 of leaf {wrong[0]} differs" if wrong else "its SHA-256 differs"


def _members(data: bytes, check: bool = True) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The arrays by name; without ``check`` also those whose CRC differs."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for entry in archive.infolist():
            entry.CRC = entry.CRC if check else None  # type: ignore[assignment]
        arrays = {entry.filename: _read_member(archive, entry) for entry in archive.infolist()}
    header = json.loads(arrays.pop(f"{HEADER}.npy").tobytes())
    return header, {name.removeprefix("leaf/").removesuffix(".npy"): array for name, array in arrays.items()}


def _read_member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    """One array; its size is compared with what the file holds before anything is allocated."""
    if entry.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{entry.filename} is compressed")
    file = io.BytesIO(archive.read(entry))
    np.lib.format.read_magic(file)
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    rest = entry.file_size - file.tell()
    if dtype.hasobject or fortran or np.prod([float(n) for n in shape]) * dtype.itemsize != rest:
        raise ValueError(f"{entry.filename} claims shape {shape} of {dtype} in {rest} bytes")
    return np.frombuffer(file.read(), dtype).reshape(shape)


def _fill(path: Path, leaves: dict[str, Any], members: dict[str, np.ndarray], template: Any) -> Any:
    """The leaves in the structure of ``template``; what is no data is taken from there."""
    wanted = named_leaves(template)
    for name in set(leaves) - set(wanted):
        raise StorageError(f"{path} has a leaf {name} that this run does not have.")
    filled = [_decode(path, name, leaf, leaves.get(name), members.get(name)) for name, leaf in wanted.items()]
    return jax.tree.unflatten(jax.tree.structure(template), filled)


def _decode(path: Path, name: str, leaf: Any, about: dict[str, Any] | None, array: np.ndarray | None) -> Any:
    shaped = isinstance(leaf, jax.ShapeDtypeStruct)
    if not shaped and _encode(leaf) is None:
        return leaf
    if about is None or array is None:
        raise StorageError(f"{path} lacks leaf {name}.")
    if about["sha256"] != _digest(array):
        raise StorageError(f"{path} is damaged: the SHA-256 of leaf {name} differs.")
    key = about.get("key")
    value: Any = array if key else array.view(jnp.dtype(about["dtype"]))
    if key:
        value = jax.random.wrap_key_data(jnp.asarray(array), impl=key)
    dtype, shape = getattr(leaf, "dtype", value.dtype), getattr(leaf, "shape", ())
    if value.shape != shape or value.dtype != dtype:
        raise StorageError(f"{path}: leaf {name} has shape {value.shape} of {value.dtype}, not {shape} of {dtype}.")
    if key or isinstance(leaf, np.ndarray | np.generic):
        return value if key else value.copy()
    if not shaped and not isinstance(leaf, jax.Array):
        return type(leaf)(value.item())
    with jax.enable_x64(True):  # or float64 would be read as float32
        return jnp.asarray(value)
