"""Grids from TOML files: what multiplies, what is left out, and how mistakes are told."""

import textwrap
from pathlib import Path

import pytest

from unswayed.bench import Grid, read_grid


def grid(tmp_path: Path, text: str, **how: object) -> Grid:
    file = tmp_path / "grid.toml"
    file.write_text(text)
    return read_grid(file, **how)  # type: ignore[arg-type]


FULL = """
data = ["digits", "cifar10"]
noise = ["clean", "symmetric(0.40)"]
loss = ["ce", "nce+10*vce(4)"]
seed = [0, 1]
recipe.epochs = 7

[datasets.cifar10]
method = ["nce+vce", "gce"]
model = "cnn4"
recipe = [{ name = "paper/cifar10", lr = [0.1, 0.01] }, "mnist"]

[[exclude]]
data = "cifar10"
noise = "symmetric(0.4)"
loss = "gce"

[[exclude]]
data = "digits"
seed = 1
noise = ["clean", "human*"]
"""


def test_lists_multiply(tmp_path: Path) -> None:
    cells = grid(tmp_path, FULL).cells
    digits = [c for c in cells if c.data == "digits"]
    assert [(c.noise, c.loss, c.seed) for c in digits] == [
        ("clean", "ce", 0),
        ("clean", "nce + 10*vce(a=4)", 0),
        ("symmetric(0.4)", "ce", 0),
        ("symmetric(0.4)", "ce", 1),
        ("symmetric(0.4)", "nce + 10*vce(a=4)", 0),
        ("symmetric(0.4)", "nce + 10*vce(a=4)", 1),
    ]
    assert {(c.model, c.recipe.epochs, c.recipe.lr) for c in digits} == {("mlp(hidden=512, depth=2)", 7, 0.1)}
    images = [c for c in cells if c.data == "cifar10"]
    assert {(c.recipe.epochs, c.recipe.lr) for c in images} == {(120, 0.1), (120, 0.01), (50, 0.01)}
    assert {(c.method, c.loss) for c in images} == {("nce+vce", "nce + 10*vce(a=4)"), ("gce", "gce(q=0.9)")}
    # Three recipes, two seeds; nce+vce under two noises, gce under one.
    assert len(images) == 3 * 2 * 3


def test_the_example_of_the_docs(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "bench.md").read_text(encoding="utf-8")
    block = page.split("this is `grid.toml`:")[1].split("`unswayed bench grid.toml")[0]
    cells = grid(tmp_path, textwrap.dedent(block)).cells
    assert len([c for c in cells if c.data == "digits"]) == 2 * 2 * 3
    assert len([c for c in cells if c.data == "cifar10"]) == 3 * 2 * 2 * 3


def test_what_is_the_same_is_one_cell(tmp_path: Path) -> None:
    cells = grid(tmp_path, 'data = "digits"\nloss = ["vce", "vce(1)", "VCE(a=1.0)"]\nnoise = "clean"').cells
    assert [c.loss for c in cells] == ["vce(a=1)"]


def test_seeds_are_counted_on(tmp_path: Path) -> None:
    text = 'data = "digits"\nloss = "ce"\nseed = [5, 9]'
    assert [c.seed for c in grid(tmp_path, text, seeds=1).cells] == [5]
    assert [c.seed for c in grid(tmp_path, text, seeds=3).cells] == [5, 9, 10]


def test_protocols_give_what_the_file_does_not_say(tmp_path: Path) -> None:
    (cell,) = grid(tmp_path, 'data = "cifar10"\nloss = "ce"', protocol="embeddings").cells
    assert (cell.model, cell.recipe.epochs) == ("mlp(hidden=256, depth=1)", 30)
    (cell,) = grid(tmp_path, 'data = "mine"\nloss = "ce"\nmodel = "linear"', protocol="embeddings").cells
    assert (cell.model, cell.recipe.epochs) == ("linear", 30)


def test_only_and_set(tmp_path: Path) -> None:
    whole = grid(tmp_path, FULL)
    assert {c.loss for c in whole.only(["loss=NCE*", "data=digits"]).cells} == {"nce + 10*vce(a=4)"}
    assert {c.noise for c in whole.only(["noise=symmetric( 0.4 )"]).cells} == {"symmetric(0.4)"}
    assert {c.loss for c in whole.only(["loss=gce", "loss=ce"]).cells} == {"gce(q=0.9)", "ce"}
    assert {c.seed for c in whole.only(["seed=1"]).cells} == {1}
    changed = whole.set(["recipe.epochs=3", "model=mlp(64)", "validation=0.1"])
    assert {(c.recipe.epochs, c.model, c.validation) for c in changed.cells} == {(3, "mlp(hidden=64, depth=1)", 0.1)}
    assert changed.changes == ("recipe.epochs=3", "model=mlp(64)", "validation=0.1")


@pytest.mark.parametrize("text", ["loss", "los=ce", "loss=", "epochs=3"])
def test_only_that_cannot_be_read(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match="write KEY=PATTERN"):
        grid(tmp_path, FULL).only([text])


def test_only_that_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError) as error:
        grid(tmp_path, FULL).only(["loss=bce*"])
    assert str(error.value) == (
        "--only loss=bce* leaves nothing of grid.toml; there are: ce, nce + 10*vce(a=4), nce+vce, gce"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epochs=3", "write recipe.NAME=VALUE"),
        ("recipe.epoch=3", "a recipe has no 'epoch'; did you mean 'epochs'?"),
        ("recipe.epochs=0", "epochs=0 is not allowed; epochs >= 1"),
        ("model=cnn9", "unknown model 'cnn9'"),
        ("validation=much", "'much' is no number"),
    ],
)
def test_set_that_cannot_be_read(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError) as error:
        grid(tmp_path, FULL).set([text])
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data = [", "grid.toml cannot be read as TOML: "),
        ('loss = "ce"', "grid.toml names no data"),
        ('data = "digits"', "grid.toml, loss: no loss is named"),
        ('data = "digits"\nloss = "ce"\nnoises = "clean"', "grid.toml: unknown key 'noises'; did you mean 'noise'?"),
        ('data = "digits"\nloss = ["ce", "vcee"]', "grid.toml, loss: unknown loss 'vcee'; did you mean 'vce'?"),
        ('data = "digits"\nloss = 3', "grid.toml, loss: a string is expected, not 3"),
        ('data = "digits"\nloss = "ce"\nnoise = "symmetric"', "grid.toml, noise: symmetric needs rate"),
        ('data = "digits"\nloss = "ce"\nmodel = "cnn9"', "grid.toml, model: unknown model 'cnn9'"),
        ('data = "digits"\nloss = "ce"\nseed = [0, -1]', "grid.toml, seed: experiment: seed=-1 is not allowed"),
        ('data = "digits"\nloss = "ce"\nvalidation = 0.9', "grid.toml, validation: experiment: validation=0.9"),
        ('data = "digits"\nloss = "ce"\nrecipe = "paper/cifar"', "grid.toml, recipe: unknown recipe 'paper/cifar'"),
        ('data = "digits"\nloss = "ce"\nrecipe.lr = [0.1, -1]', "grid.toml, recipe: recipe: lr=-1 is not allowed"),
        ('data = "digits"\nloss = "ce"\nrecipe = 3', "grid.toml, recipe: unknown recipe '3'"),
        ('data = "digits"\nmethod = [["ce"]]', "grid.toml, method: a string is expected, not ['ce']"),
        ('data = "digits"\nloss = "ce"\nrecipe.rate = 1', "grid.toml, recipe: a recipe has no 'rate'"),
        ('data = "digits"\nmethod = "nce+vce"', "grid.toml, method: no published setting on data set 'digits'"),
        ('data = "mine"\nloss = "ce"', "grid.toml, model: mine has no usual model and recipe; name both"),
        ('data = "digits"\nloss = "ce"\ndatasets = 3', "grid.toml, datasets: write a table for each data set"),
        (
            'data = "digits"\nloss = "ce"\n[datasets.digit]\nseed = 1',
            "grid.toml, datasets: unknown key 'digit'; did you mean 'digits'?",
        ),
        (
            'data = "digits"\n[datasets.digits]\nloss = "vcee"',
            "grid.toml, datasets.digits.loss: unknown loss 'vcee'",
        ),
        ('data = "digits"\nloss = "ce"\n[exclude]\nloss = "ce"', "grid.toml, exclude: write [[exclude]]"),
        ('data = "digits"\nloss = "ce"\n[[exclude]]\nrate = 1', "grid.toml, exclude 1: unknown key 'rate'"),
        (
            'data = "digits"\nloss = "ce"\n[[exclude]]\nloss = "vce"',
            "nothing like {'loss': 'vce'} to leave out",
        ),
        ('data = "digits"\nloss = "ce"\n[[exclude]]\nloss = "*"', "grid.toml: everything is left out"),
    ],
)
def test_mistakes_name_the_file_and_the_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError) as error:
        grid(tmp_path, text)
    assert message in str(error.value)
    assert "grid.toml" in str(error.value)
