"""Rows of metrics and those who take them."""

import json
import time

import numpy as np
import pytest

from arnpg.errors import StorageError
from arnpg.runs import metrics as module
from arnpg.runs.loggers import JsonlLogger, Loggers, TensorBoardLogger
from arnpg.runs.metrics import MetricsFile, read_metrics


def written(path, rows, resumed_at=0):
    file = MetricsFile(path, resumed_at)
    for step, row in rows:
        file.append(step, row)
    file.close()


def test_floats_come_back_in_every_bit(tmp_path):
    draws = np.random.default_rng(0)
    numbers = np.concatenate([draws.integers(0, 2**64, 2000, np.uint64).view(float), [0.1, -0.0, 5e-324, np.inf]])
    written(tmp_path / "m", [(i, {"x": number, "n": np.int64(i)}) for i, number in enumerate(numbers)])
    found = read_metrics(tmp_path / "m")
    finite = ~np.isnan(numbers)
    assert found["x"][finite].tobytes() == numbers[finite].tobytes()
    assert np.isnan(found["x"][~finite]).all()
    assert found["step"].dtype == found["n"].dtype == np.int64


def test_the_file_is_strict_json(tmp_path):
    written(tmp_path / "m", [(1, {"a": np.nan, "b": np.inf, "c": -np.inf, "d": np.float32(0.5), "e": "text"})])

    def refuse(word):
        raise AssertionError(word)

    row = json.loads((tmp_path / "m").read_text(), parse_constant=refuse)
    assert row == {"step": 1, "a": None, "b": "Infinity", "c": "-Infinity", "d": 0.5, "e": "text"}
    found = read_metrics(tmp_path / "m")
    assert found["b"] == np.inf
    assert found["e"].tolist() == ["text"]


def test_columns_that_come_and_go(tmp_path):
    written(tmp_path / "m", [(1, {"a": 1.0}), (2, {"b": 2.0})])
    found = read_metrics(tmp_path / "m")
    np.testing.assert_array_equal(found["a"], [1.0, np.nan])
    np.testing.assert_array_equal(found["b"], [np.nan, 2.0])


@pytest.mark.parametrize("torn", [b'{"step":3,"x":0.', b"\0\0\0\0", b'{"step":3}'])
def test_a_torn_last_line_is_dropped(tmp_path, torn):
    path = tmp_path / "m"
    written(path, [(1, {"x": 1.0}), (2, {"x": 2.0})])
    path.write_bytes(path.read_bytes() + torn)
    assert read_metrics(path)["step"].tolist() == [1, 2]
    written(path, [(3, {"x": 3.0})], resumed_at=2)
    assert read_metrics(path)["x"].tolist() == [1, 2, 3]


def test_rows_after_the_checkpoint_are_cut(tmp_path):
    path = tmp_path / "m"
    written(path, [(step, {"x": float(step)}) for step in range(1, 10)])
    written(path, [(5, {"x": 50.0})], resumed_at=4)
    assert read_metrics(path)["x"].tolist() == [1, 2, 3, 4, 50]
    written(path, [], resumed_at=0)
    assert path.read_bytes() == b""
    assert read_metrics(path) == {}


def test_an_edited_line_is_named(tmp_path):
    path = tmp_path / "m"
    path.write_text('{"step":1}\nnonsense\n{"step":3}\n')
    with pytest.raises(StorageError, match="line 2, is not a JSON object"):
        read_metrics(path)
    path.write_text('{"step":1}\n[1,2],{"a":1}\n')
    with pytest.raises(StorageError, match="line 2"):
        MetricsFile(path, 5)


def test_disk_full_leaves_whole_rows_and_forgets_none(tmp_path, monkeypatch):
    path, write = tmp_path / "m", module.write_all
    file = MetricsFile(path)
    file.append(1, {"x": 1.0})
    file.flush()

    def half(handle, data):
        write(handle, data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    file.append(2, {"x": 2.0})
    monkeypatch.setattr(module, "write_all", half)
    with pytest.raises(StorageError, match="the disk is full"):
        file.flush()
    assert path.read_text() == '{"step":1,"x":1.0}\n'
    monkeypatch.setattr(module, "write_all", write)
    file.append(3, {"x": 3.0})
    file.close()
    assert read_metrics(path)["step"].tolist() == [1, 2, 3]


def test_speed(tmp_path):
    """7 us a row to write when idle; ten times that is allowed for here."""
    row = {"values/0": 0.1, "values/1": 0.2, "kl": 1e-3, "entropy": 0.3}
    began = time.perf_counter()
    written(tmp_path / "m", [(step, row) for step in range(20_000)])
    middle = time.perf_counter()
    assert len(read_metrics(tmp_path / "m")["kl"]) == 20_000
    assert middle - began < 20_000 * 70e-6
    assert time.perf_counter() - middle < 20_000 * 70e-6


def scalars(folder):
    """What TensorBoard shows of event files: records of length, checksum, event, checksum; a start purges the rest."""
    from tensorboardX.proto.event_pb2 import Event, SessionLog

    found = {}
    for path in sorted(folder.rglob("events.*"), key=lambda path: path.stat().st_mtime_ns):
        data = path.read_bytes()
        while data:
            size = int.from_bytes(data[:8], "little")
            event, data = Event.FromString(data[12 : 12 + size]), data[16 + size :]
            if event.session_log.status == SessionLog.START:
                found = {tag: {k: v for k, v in series.items() if k < event.step} for tag, series in found.items()}
            for value in event.summary.value:
                assert event.step not in found.setdefault(value.tag, {})
                found[value.tag][event.step] = value.simple_value
    return {tag: sorted(series.items()) for tag, series in found.items()}


def test_tensorboard_reads_what_was_logged(tmp_path):
    for resumed, steps in ((0, (1, 2, 3)), (2, (3, 4))):
        logger = TensorBoardLogger(tmp_path)
        logger.start({"resumed_at": resumed})
        for step in steps:
            logger.log(step, {"values/0": step + resumed / 4, "kl": 0.25, "note": "text"})
        logger.close()
        logger.close()
    found = scalars(tmp_path)
    assert found["values/0"] == [(1, 1.0), (2, 2.0), (3, 3.5), (4, 4.5)]
    assert found["kl"][-1] == (4, 0.25)


def test_tensorboard_missing(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ValueError, match=r'pip install "arnpg\[tensorboard\]"'):
        TensorBoardLogger(tmp_path)


def test_a_logger_that_fails_is_left_out(tmp_path):
    class Broken:
        def start(self, config):
            pass

        def log(self, step, row):
            raise RuntimeError("no network")

        def close(self):
            raise AssertionError

    said = []
    loggers = Loggers((Broken(), JsonlLogger(tmp_path / "m")), said.append)
    loggers.start({})
    loggers.log(1, {"x": 1.0})
    loggers.log(2, {"x": 2.0})
    loggers.close()
    assert said == ["Broken failed and is left out from here on: no network"]
    assert read_metrics(tmp_path / "m")["step"].tolist() == [1, 2]
