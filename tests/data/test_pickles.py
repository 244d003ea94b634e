"""Pickles of arrays are read; no code of a pickle runs, whatever it asks for."""

from __future__ import annotations

import collections
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from unswayed.data.pickles import read_pickle

VALUES = {
    "labels": np.arange(5),
    "big-endian": np.arange(3, dtype=">u2"),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "names": np.array(["a", "b"]),
    "scalar": np.float32(2.5),
    "cifar": {b"data": np.zeros((2, 3), np.uint8), b"labels": [0, 1], b"batch_label": b"batch 1 of 5"},
    "ordered": collections.OrderedDict(a=1),
}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("zipped", [False, True])
def test_plain_values_and_arrays_are_read(name: str, protocol: int, zipped: bool, tmp_path: Path) -> None:
    path, raw = tmp_path / "file.pt", pickle.dumps(VALUES[name], protocol=protocol)
    if zipped:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("archive/data.pkl", raw)
    else:
        path.write_bytes(raw)
    np.testing.assert_equal(read_pickle(path), VALUES[name])


class Attack:
    """Runs ``call(*args)`` when it is unpickled."""

    def __init__(self, call: Any, *args: Any) -> None:
        self.call, self.args = call, args

    def __reduce__(self) -> Any:
        return self.call, self.args


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_no_code_of_a_malicious_file_runs(protocol: int, tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    attacks = [
        Attack(exec, f"import pathlib; pathlib.Path({str(proof)!r}).write_text('it ran')"),
        Attack(open, str(proof), "w"),
        Attack(np.save, str(proof), np.zeros(1)),
        Attack(getattr, {}, "keys"),
    ]
    for attack in attacks:
        raw = pickle.dumps({"clean_label": np.zeros(3), "worse_label": attack}, protocol=protocol)
        (tmp_path / "evil.pt").write_bytes(raw)
        with pytest.raises(ValueError, match=r"evil\.pt' is refused: it asks for .*, which is not allowed to run"):
            read_pickle(tmp_path / "evil.pt")
        assert not list(tmp_path.glob("proof*"))
    # The attack is real: unguarded, it does what it says.
    pickle.loads(pickle.dumps(attacks[0], protocol=protocol))
    assert proof.exists()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.array([None, {}]), "holds an array of object"),
        (np.zeros(2, "datetime64[s]"), "holds an array of datetime64"),
        (Path("a"), r"asks for pathlib"),
        (torch.float32, "asks for"),
    ],
)
def test_what_is_no_plain_value_is_refused(value: Any, words: str, tmp_path: Path) -> None:
    (tmp_path / "file.pkl").write_bytes(pickle.dumps(value))
    with pytest.raises(ValueError, match=words):
        read_pickle(tmp_path / "file.pkl")


def test_other_files_get_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "labels.pt"
    with pytest.raises(ValueError, match=r"labels\.pt': there is no such file"):
        read_pickle(path)
    for raw, words in [
        (b"", "is empty"),
        (b"<html>not found</html>", "cannot be read as a pickle|is refused"),
        (pickle.dumps(VALUES["labels"])[:-20], "cannot be read as a pickle|is refused"),
    ]:
        path.write_bytes(raw)
        with pytest.raises(ValueError, match=rf"labels\.pt' ({words})"):
            read_pickle(path)
    torch.save({"a": torch.zeros(2)}, path)
    with pytest.raises(ValueError, match="refused"):
        read_pickle(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other", "x")
    with pytest.raises(ValueError, match=r"without a data\.pkl"):
        read_pickle(path)
