"""Noisy labels: their manifest, their file, and files that are refused."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unswayed.noise import NoisyLabels, make

LABELS = np.arange(400) % 7


@settings(deadline=None, max_examples=10)
@given(labels=st.lists(st.integers(0, 299), min_size=1, max_size=50), spec=st.sampled_from(["symmetric(0.5)", "given"]))
def test_files_give_back_what_was_saved(labels: list[int], spec: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    noisy = make(spec, labels, 300, seed=3)
    read = NoisyLabels.load(noisy.save(tmp_path_factory.mktemp("noise") / "noise.npz"), labels)
    assert np.array_equal(read.labels, noisy.labels)
    assert (read.clean is None) == (noisy.clean is None)
    assert read.manifest == noisy.manifest
    assert read.spec == noisy.spec


def test_manifest() -> None:
    noisy = make("symmetric(0.25)", [0, 0, 0, 0, 2, 2, 2, 2], np.int64(3), seed=np.int64(5))
    manifest = json.loads(json.dumps(noisy.manifest, allow_nan=False))
    assert {key: manifest[key] for key in ("spec", "seed", "rate", "num_classes", "examples")} == {
        "spec": "symmetric(0.25)", "seed": 5, "rate": 0.25, "num_classes": 3, "examples": 8,
    }  # fmt: skip
    # A class without examples has no row, and says so.
    assert manifest["matrix"][1] == [None, None, None]
    assert manifest["matrix"][0][0] == 0.75
    clean = np.array([0, 0, 0, 0, 2, 2, 2, 2], dtype="<i8").tobytes()
    assert manifest["sha256"]["clean"] == hashlib.sha256(clean).hexdigest()
    assert manifest["sha256"]["labels"] == hashlib.sha256(noisy.labels.astype("<i8").tobytes()).hexdigest()
    assert manifest["versions"]["numpy"] == np.__version__


def test_a_file_is_small_and_has_no_pickles(tmp_path: Path) -> None:
    path = make("symmetric(0.4)", np.arange(50000) % 10, 10).save(tmp_path / "noise.npz")
    assert path.stat().st_size < 60_000
    with np.load(path, allow_pickle=False) as content:
        assert content["labels"].dtype == np.uint8


@pytest.mark.parametrize("other", [LABELS[::-1], LABELS[:-1], (LABELS + 1) % 7, torch.from_numpy(LABELS[::-1].copy())])
@pytest.mark.parametrize("spec", ["symmetric(0.4)", "given"])
def test_files_of_other_labels_are_refused(tmp_path: Path, other: np.ndarray, spec: str) -> None:
    path = make(spec, LABELS, 7).save(tmp_path / "noise.npz")
    assert len(NoisyLabels.load(path, LABELS)) == 400
    with pytest.raises(ValueError, match=r"noise.npz' was made for other labels .*SHA-256"):
        NoisyLabels.load(path, other)


def test_altered_files_are_refused(tmp_path: Path) -> None:
    path = make("symmetric(0.4)", LABELS, 7).save(tmp_path / "noise.npz")
    with np.load(path) as content:
        arrays = dict(content)
    arrays["labels"][3] += 1
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="is broken: its labels are not those"):
        NoisyLabels.load(path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "noise.npz"
    proof = tmp_path / "proof"

    class Attack:
        def __reduce__(self) -> object:
            return exec, (f"import pathlib; pathlib.Path({str(proof)!r}).write_text('it ran')",)

    objects = io.BytesIO()
    np.savez(objects, manifest=np.array([Attack()], dtype=object))
    for raw in (b"", b"nonsense", pickle.dumps(Attack()), objects.getvalue()):
        path.write_bytes(raw)
        with pytest.raises(ValueError, match="no file of noisy labels"):
            NoisyLabels.load(path)
    assert not proof.exists()
    np.savez(path, labels=LABELS)
    with pytest.raises(ValueError, match="no file of noisy labels"):
        NoisyLabels.load(path)
    later = json.dumps({"format": 99} | make("given", LABELS, 7).manifest).encode()
    np.savez(path, labels=LABELS, manifest=np.frombuffer(later, dtype=np.uint8))
    with pytest.raises(ValueError, match="format 99, and this version of unswayed reads 1"):
        NoisyLabels.load(path)
    with pytest.raises(FileNotFoundError, match="no such file"):
        NoisyLabels.load(tmp_path / "none.npz")


def test_places_to_write_are_checked(tmp_path: Path) -> None:
    noisy = make("given", LABELS, 7)
    with pytest.raises(ValueError, match=r"written as \.npz"):
        noisy.save(tmp_path / "noise.pt")
    with pytest.raises(ValueError, match="there is no folder"):
        noisy.save(tmp_path / "none" / "noise.npz")
