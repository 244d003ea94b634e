"""Human labels: CIFAR-N's files, aligned by the published order, and files that are not what they seem."""

from __future__ import annotations

import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unswayed.data.pickles import read_pickle
from unswayed.noise import make

SHARED = Path(os.environ.get("UNSWAYED_SHARED", Path(__file__).resolve().parents[3] / "shared"))
CLEAN = np.arange(60) % 10
WORST = np.where(np.arange(60) % 3 == 0, (CLEAN + 1) % 10, CLEAN)


def write(path: Path, content: Any) -> Path:
    """Write what torch.save writes around a pickle."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(content))
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file like CIFAR-10_human.pt, of 60 labels."""
    return write(tmp_path / "CIFAR-10_human.pt", {"clean_label": CLEAN, "worse_label": WORST, "aggre_label": CLEAN})


def test_labels_are_those_of_the_file(file: Path) -> None:
    noisy = make(f"human(worst, file={file})", CLEAN, 10, index=np.arange(60))
    assert np.array_equal(noisy.labels, WORST)
    assert noisy.rate == pytest.approx(1 / 3)
    assert make(f"human(aggregate, file={file})", CLEAN, 10, index=np.arange(60)).rate == 0


def test_labels_are_aligned_by_the_published_order(file: Path) -> None:
    index = np.random.default_rng(0).permutation(60)[:40]
    noisy = make(f"human(worst, file={file})", CLEAN[index], 10, index=index)
    assert np.array_equal(noisy.labels, WORST[index])


def test_labels_that_the_data_brings_need_no_file() -> None:
    noisy = make("human(worst)", CLEAN, 10, human={"worst": WORST})
    assert np.array_equal(noisy.labels, WORST)
    assert str(noisy.spec) == 'human("worst")'


@pytest.mark.parametrize(
    ("which", "options", "message"),
    [
        ("worst", {"index": None}, "has lost that order"),
        (
            "worst",
            {"index": np.arange(60)[::-1]},
            "60 of 60 clean labels differ, the first at place 59",
        ),
        ("worst", {"index": np.arange(60) + 10}, "reaches up to place 69"),
        ("noisy", {"index": np.arange(60)}, "has no 'noisy' labels (noisy_label); it has: worst, aggregate"),
    ],
)
def test_files_that_do_not_fit_are_refused(file: Path, which: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=None) as caught:
        make(f"human({which}, file={file})", CLEAN, 10, **options)
    assert message in str(caught.value)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1, 2], "no file of CIFAR-N"),
        ({"worse_label": WORST}, "no 'clean_label'"),
        ({"clean_label": CLEAN, "worse_label": WORST * 9}, "worse_label: 18 is not allowed"),
        ({"clean_label": CLEAN, "worse_label": WORST / 2}, "whole numbers"),
        ({"clean_label": CLEAN, "worse_label": WORST[:50]}, "60 clean and 50 worst labels"),
    ],
)
def test_broken_files_are_explained(tmp_path: Path, content: Any, message: str) -> None:
    path = write(tmp_path / "labels.pt", content)
    with pytest.raises(ValueError, match=None) as caught:
        make(f"human(worst, file={path})", CLEAN, 10, index=np.arange(60))
    assert message in str(caught.value)


def test_missing_labels_are_explained(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no such file"):
        make(f"human(worst, file={tmp_path}/none.pt)", CLEAN, 10, index=np.arange(60))
    with pytest.raises(ValueError, match="brings along worst; name CIFAR-N's file"):
        make("human(random1)", CLEAN, 10, human={"worst": WORST})
    with pytest.raises(ValueError, match="there are 59 for 60 examples"):
        make("human(worst)", CLEAN, 10, human={"worst": WORST[1:]})


class Attack:
    """Writes a file when it is unpickled."""

    def __init__(self, proof: Path) -> None:
        self.proof = proof

    def __reduce__(self) -> Any:
        return exec, (f"import pathlib; pathlib.Path({str(self.proof)!r}).write_text('it ran')",)


@pytest.mark.parametrize("zipped", [True, False])
def test_no_code_of_a_malicious_file_runs(tmp_path: Path, zipped: bool) -> None:
    proof, path = tmp_path / "proof", tmp_path / "CIFAR-10_human.pt"
    content = {"clean_label": CLEAN, "worse_label": WORST, "extra": Attack(proof)}
    if zipped:
        write(path, content)
    else:
        path.write_bytes(pickle.dumps(content))
    with pytest.raises(ValueError, match=r"is refused: it asks for builtins\.exec"):
        make(f"human(worst, file={path})", CLEAN, 10, index=np.arange(60))
    assert not proof.exists()
    pickle.loads(pickle.dumps(Attack(proof)))
    assert proof.exists(), "the attack is a real one"


REAL = {
    ("CIFAR-10", "aggregate"): 0.0901, ("CIFAR-10", "random1"): 0.17234, ("CIFAR-10", "random2"): 0.18122,
    ("CIFAR-10", "random3"): 0.1764, ("CIFAR-10", "worst"): 0.40208, ("CIFAR-100", "noisy"): 0.402,
}  # fmt: skip


@pytest.mark.parametrize(("dataset", "which"), REAL)
def test_rates_of_the_published_files(dataset: str, which: str) -> None:
    path = SHARED / "data" / "cifar-n" / f"{dataset}_human.pt"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    clean = read_pickle(path)["clean_label"]
    noisy = make(f"human({which}, file={path})", clean, int(dataset[6:]), index=np.arange(50000))
    assert noisy.rate == pytest.approx(REAL[dataset, which], abs=5e-6)
    if dataset == "CIFAR-10":
        # Those are the labels of the published order; asymmetric noise is exact on them.
        flipped = make("asymmetric(0.4)", clean, 10, dataset="cifar10")
        assert flipped.transition is not None
        assert (1 - np.diag(flipped.transition)).tolist() == pytest.approx([0, 0, 0.4, 0.4, 0.4, 0.4, 0, 0, 0, 0.4])
