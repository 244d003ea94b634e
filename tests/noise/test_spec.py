"""Noise specs and transition matrices."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unswayed import SpecError
from unswayed.noise import NoiseSpec, transition_matrix


@given(rate=st.floats(0, 1), classes=st.integers(2, 60), kind=st.sampled_from(["symmetric", "asymmetric"]))
def test_named_noise_has_exactly_its_rate(rate: float, classes: int, kind: str) -> None:
    spec = NoiseSpec.parse(f"{kind}({rate!r})")
    assert NoiseSpec.parse(str(spec)) == spec
    matrix = spec.transition(classes)
    assert np.allclose(matrix.sum(1), 1)
    assert np.allclose(1 - np.diag(matrix), rate)
    wrong = matrix - np.diag(np.diag(matrix))
    if kind == "symmetric":
        assert np.allclose(wrong[~np.eye(classes, dtype=bool)], rate / (classes - 1))
    else:
        assert np.allclose(wrong[np.arange(classes), (np.arange(classes) + 1) % classes], rate)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("symetric(0.2)", "did you mean 'symmetric'"),
        ("symmetric", "needs rate"),
        ("symmetric(1.2)", "0 <= rate <= 1"),
        ("symmetric(-0.1)", "0 <= rate <= 1"),
        ("symmetric(0.1, 0.2)", "sampling is one of 'exact', 'bernoulli'"),
        ("symmetric(0.1, exact, 0.2)", "too many"),
        ("symmetric(r=0.1)", "no parameter 'r'"),
        ("0.4", "a kind of noise is expected"),
        ("", "empty"),
        ("symmetric(0.2) + symmetric(0.1)", "expected"),
        ("matrix()", "needs file"),
    ],
)
def test_bad_specs_are_explained(spec: str, message: str) -> None:
    with pytest.raises(SpecError, match=None) as caught:
        NoiseSpec.parse(spec)
    assert message in str(caught.value)
    assert "^" in str(caught.value)


@pytest.mark.parametrize("suffix", [".csv", ".npy"])
def test_matrix_files(tmp_path: Path, suffix: str) -> None:
    matrix = np.array([[0.9, 0.1], [0.25, 0.75]])
    file = tmp_path / f"a T-1{suffix}"
    np.save(file, matrix) if suffix == ".npy" else np.savetxt(file, matrix, delimiter=",")
    for text in (f"matrix({file})", f"matrix('{file}')", f'matrix(file="{file}")'):
        assert np.array_equal(NoiseSpec.parse(text).transition(), matrix)
    assert NoiseSpec.parse(str(NoiseSpec.parse(f"matrix({file})"))).values["file"] == str(file)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([[0.5, 0.6], [0.5, 0.5]], "row 0 sums to 1.1"),
        ([[1, 0]], "K rows and K columns"),
        ([[1, 0], [0]], "one length"),
        ([[1.5, -0.5], [0, 1]], r"entry [0][1] is -0.5"),
        ([[float("nan"), 1], [0, 1]], "entry [0][0] is nan"),
        ("none.csv", "no such file"),
        ("none.txt", ".csv file"),
        ([[1]], "2 or more"),
    ],
)
def test_bad_matrices_are_explained(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=None) as caught:
        transition_matrix(value)
    assert message in str(caught.value)


def test_unreadable_files_are_explained(tmp_path: Path) -> None:
    for name, content in (("T.csv", "a,b\n"), ("T.npy", "nonsense")):
        (tmp_path / name).write_text(content)
        with pytest.raises(ValueError, match="cannot be read"):
            transition_matrix(tmp_path / name)
