"""Checkpoints: exact, atomic, and no kind of damage goes unnoticed."""

import hashlib
import io
import pickle
import random
import zipfile

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arnpg.errors import StorageError
from arnpg.runs import checkpoint as module
from arnpg.runs.checkpoint import Checkpoints, read_arrays, write_arrays

HASH = "a" * 64


def tree():
    with jax.enable_x64(True):
        return {
            "key": jax.random.key(3),
            "keys": jax.random.split(jax.random.key(4, impl="rbg"), 3),
            "double": jnp.array([0.1, np.nan, -0.0, np.inf]),
            "half": jnp.arange(4, dtype=jnp.bfloat16),
            "scalar": jnp.zeros((), int),
            "empty": jnp.zeros((0, 2)),
            "host": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
            "plain": (3, 0.1, True, None),
            "function": jnp.tanh,
            "nested": eqx.nn.Linear(2, 2, key=jax.random.key(0)),
        }


def bits(leaf):
    if hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return str(jax.random.key_impl(leaf)), np.asarray(jax.random.key_data(leaf)).tobytes()
    return (type(leaf), leaf) if callable(leaf) else (type(leaf), np.asarray(leaf).dtype, np.asarray(leaf).tobytes())


@pytest.fixture
def saved(tmp_path):
    """A store with two checkpoints, and the newer file."""
    store = Checkpoints(tmp_path, HASH)
    store.save(1, tree(), {})
    return store, store.save(2, tree(), {"seconds": 0.1})


def test_every_leaf_comes_back_as_it_was(saved):
    store, path = saved
    found = store.load(path, tree())
    assert found.step == 2
    assert found.extra == {"seconds": 0.1}
    before, after = jax.tree.flatten(tree()), jax.tree.flatten(found.tree)
    assert before[1] == after[1]
    for one, two in zip(before[0], after[0], strict=True):
        assert bits(one) == bits(two)


def test_shapes_are_template_enough(saved):
    store, path = saved
    with jax.enable_x64(True):
        shapes = eqx.filter_eval_shape(lambda: {name: leaf for name, leaf in tree().items() if name != "host"})
    shapes["host"] = np.zeros((2, 3))
    assert bits(store.load(path, shapes).tree["double"]) == bits(tree()["double"])


def test_numpy_reads_the_file(saved):
    with np.load(saved[1], allow_pickle=False) as file:
        assert file["leaf/host"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_the_last_two_are_kept(saved):
    store, _ = saved
    store.save(10, tree(), {})
    assert [path.name for path in store.paths()] == ["step-000000000002.npz", "step-000000000010.npz"]
    assert not list(store.folder.glob(".*"))


def test_40_flipped_bits_are_40_errors(saved):
    store, path = saved
    good, draws = path.read_bytes(), random.Random(0)
    places = [*range(8), len(good) - 1, len(good) - 70, *(draws.randrange(len(good)) for _ in range(30))]
    for place in places:
        bad = bytearray(good)
        bad[place] ^= 1 << draws.randrange(8)
        path.write_bytes(bad)
        with pytest.raises(StorageError, match="damaged|truncated"):
            store.load(path, tree())
    assert len(places) == 40


def test_a_flipped_bit_is_traced_to_its_leaf(saved):
    store, path = saved
    data = bytearray(path.read_bytes())
    place = data.index(np.arange(6.0).tobytes())
    data[place] ^= 4
    path.write_bytes(data)
    with pytest.raises(StorageError, match="step-000000000002.npz is damaged: the SHA-256 of leaf host differs"):
        store.load(path, tree())


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_truncated(saved, share):
    store, path = saved
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(StorageError, match="step-000000000002.npz is truncated"):
        store.load(path, tree())


def test_zero_bytes_missing_and_something_else(saved):
    store, path = saved
    path.write_bytes(b"")
    with pytest.raises(StorageError, match="000002.npz is empty"):
        store.load(path, tree())
    path.write_bytes(b"hello")
    with pytest.raises(StorageError, match="is not a checkpoint"):
        store.load(path, tree())
    path.unlink()
    with pytest.raises(StorageError, match="000002.npz cannot be read"):
        store.load(path, tree())


def test_other_configuration(saved):
    with pytest.raises(StorageError, match="000002.npz belongs to another configuration"):
        Checkpoints(saved[0].folder, "b" * 64).load(saved[1], tree())


def test_missing_leaf_extra_leaf_wrong_shape_wrong_dtype(saved):
    store, path = saved
    with pytest.raises(StorageError, match="lacks leaf more"):
        store.load(path, tree() | {"more": jnp.zeros(2)})
    with pytest.raises(StorageError, match="has a leaf host that this run does not have"):
        store.load(path, {name: leaf for name, leaf in tree().items() if name != "host"})
    with pytest.raises(StorageError, match=r"leaf host has shape \(2, 3\) of float64, not \(3, 2\)"):
        store.load(path, tree() | {"host": np.zeros((3, 2))})
    with pytest.raises(StorageError, match="leaf host has shape .* not .* of float32"):
        store.load(path, tree() | {"host": np.zeros((2, 3), np.float32)})
    with pytest.raises(StorageError, match="leaf key has shape"):
        store.load(path, tree() | {"key": jax.random.key(0, impl="rbg")})


def test_newer_version(saved, monkeypatch):
    store, _ = saved
    monkeypatch.setattr(module, "VERSION", 2)
    path = store.save(3, tree(), {})
    monkeypatch.setattr(module, "VERSION", 1)
    with pytest.raises(StorageError, match="000003.npz has format version 2; this arnpg reads 1"):
        store.load(path, tree())


def test_the_one_before_is_used_only_when_asked(saved):
    store, path = saved
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(StorageError, match="truncated.*With --auto"):
        store.latest(tree())
    found = store.latest(tree(), "auto")
    assert found.step == 1
    assert "truncated" in found.note
    assert "step-000000000001.npz instead" in found.note
    store.paths()[0].write_bytes(b"")
    with pytest.raises(StorageError, match="truncated.*empty"):
        store.latest(tree(), "auto")
    assert Checkpoints(store.folder / "none", HASH).latest(tree()) is None


def sealed(members):
    """A file with a right seal and whatever is inside."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.comment = module.MARK + b"0" * 64
    data = buffer.getvalue()[:-64]
    return data + hashlib.sha256(data).hexdigest().encode()


class Payload:
    def __reduce__(self):
        return exec, ("raise SystemExit('ran')",)


def npy(header, content=b""):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, header)
    return buffer.getvalue() + content


@pytest.mark.parametrize(
    "content",
    [
        npy({"descr": "|O", "fortran_order": False, "shape": ()}, pickle.dumps(Payload())),
        npy({"descr": "<f8", "fortran_order": False, "shape": (10**12,)}),
        b"no array",
    ],
    ids=["pickle", "claims 8 TB", "no array"],
)
def test_nothing_in_a_file_is_run_or_believed(saved, content):
    store, path = saved
    path.write_bytes(sealed({"header.npy": content}))
    with pytest.raises(StorageError, match="is not a checkpoint of arnpg"):
        store.load(path, tree())


def test_objects_are_not_saved(saved):
    with pytest.raises(ValueError, match="Object arrays"):
        saved[0].save(4, {"objects": np.array([{}], object)}, {})
    assert not list(saved[0].folder.glob(".*"))


def test_arrays_of_a_stage(tmp_path):
    arrays = {"a/b": np.arange(3), "scalar": np.array(0.1)}
    write_arrays(tmp_path / "stages" / "one.npz", HASH, arrays)
    found = read_arrays(tmp_path / "stages" / "one.npz", HASH)
    assert {name: (array.dtype, array.tolist()) for name, array in found.items()} == {
        name: (array.dtype, array.tolist()) for name, array in arrays.items()
    }
    with pytest.raises(StorageError, match="another configuration"):
        read_arrays(tmp_path / "stages" / "one.npz", "b" * 64)
