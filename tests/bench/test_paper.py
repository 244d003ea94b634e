"""The paper's tables as grids: every cell of them, with the settings that the paper states."""

from collections import Counter

import pytest

from unswayed.bench import PRESETS, Cell, paper_grid, published
from unswayed.bench.grid import settings
from unswayed.losses.presets import CODE_A

TABLES = {"paper/instance": "instance", "paper/benchmark": "benchmark", "paper/ablation": "ablation"}


def losses(name: str, data: str, **how: str) -> dict[str, set[str]]:
    """Return the losses of each method."""
    found: dict[str, set[str]] = {}
    for cell in paper_grid(name, **how).cells:  # type: ignore[arg-type]
        if cell.data == data:
            found.setdefault(cell.method, set()).add(cell.loss)
    return found


def cell(name: str, method: str, column: str, data: str = "cifar10", reading: str = "written") -> Cell:
    found = [
        c
        for c in paper_grid(name, seeds=1, reading=reading).cells
        if (c.data, c.method, c.column) == (data, method, column)
    ]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("name", TABLES)
def test_each_number_of_a_table_has_three_runs(name: str) -> None:
    wanted = {(n.dataset, n.method, n.noise): 3 for n in published(TABLES[name])}
    cells = paper_grid(name).cells
    assert Counter((c.data, c.method, c.column) for c in cells) == wanted
    assert {c.seed for c in cells} == {123, 124, 125}


def test_real_world_has_each_number_of_its_table_once_a_network() -> None:
    """ILSVRC12 is a second test set of the networks trained on WebVision."""
    wanted = {(n.dataset, n.method, n.noise): 3 for n in published("real_world") if n.dataset != "ilsvrc12"}
    assert Counter((c.data, c.method, c.column) for c in paper_grid("paper/real-world").cells) == wanted
    one = cell("paper/real-world", "VCE", "real", "clothing1m")
    assert (one.loss, one.noise, one.model) == ("0.1*vce(a=0.05)", "given", "timm:resnet50(pretrained=true)")
    assert (one.recipe.epochs, one.recipe.batch_size, one.recipe.lr) == (10, 32, 1e-3)
    web = cell("paper/real-world", "VCE", "real", "webvision")
    assert (web.loss, web.model, web.recipe.epochs, web.recipe.l1) == ("vce(a=0.015)", "resnet50", 250, 6e-5)
    assert any("1 is our choice" in note for note in paper_grid("paper/real-world").notes)


def test_benchmark_has_the_papers_settings() -> None:
    for data, model, recipe in (("cifar10", "cnn8", (120, 0.01, 5e-5)), ("cifar100", "resnet34", (200, 0.1, 5e-6))):
        cells = [c for c in paper_grid("paper/benchmark").cells if c.data == data]
        assert len(cells) == 11 * 8 * 3
        assert {c.model for c in cells} == {model}
        assert {(c.recipe.epochs, c.recipe.lr, c.recipe.l1) for c in cells} == {recipe}
        assert {c.noise for c in cells} == {c.column.replace("(worst", '("worst').replace("worst)", 'worst")').replace(
            "(noisy)", '("noisy")') for c in cells}  # fmt: skip
    assert losses("paper/benchmark", "cifar10") == {
        "CE": {"ce"},
        "GCE": {"gce(q=0.9)"},
        "SCE": {"sce(alpha=0.1, beta=1, A=-4)"},
        "NCE+RCE": {"nce + rce(A=-4)"},
        "NCE+AGCE": {"nce + 4*agce(a=6, q=1.5)"},
        "LC": {"logit_clip(loss=ce, norm=2.5, published=false)"},
        "NCE+NNCE": {"5*nce + 5*nnce(p_min=1e-07)"},
        "OGC": {f"ogc(loss=ce, budget={budget}, every=32, window=4096)" for budget in (5, 1)},
        "NCE+VCE": {"nce + 10*vce(a=4)"},
        "NCE+VEL": {"nce + 10*vel(a=1.2)"},
        "NCE+VSL": {"nce + 5*vsl(a=0.05)"},
    }
    hundred = losses("paper/benchmark", "cifar100")
    assert hundred["GCE"] == {"gce(q=0.7)"}
    assert hundred["SCE"] == {"sce(alpha=6, beta=0.1, A=-4)"}
    assert hundred["LC"] == {"logit_clip(loss=ce, norm=0.5, published=false)"}
    assert hundred["NCE+VSL"] == {"5*nce + vsl(a=0.65)"}


def test_budgets_of_ogc() -> None:
    budgets = {c.column: c.loss for c in paper_grid("paper/benchmark").cells if c.method == "OGC"}
    assert {column for column, spec in budgets.items() if "budget=1," in spec} == {"symmetric(0.6)", "symmetric(0.8)"}
    hard = {c.column for c in paper_grid("paper/instance").cells if c.method == "OGC" and "budget=1," in c.loss}
    assert hard == {"instance(0.6)"}
    assert "budget=20," in cell("paper/benchmark", "OGC", "clean", reading="published").loss


def test_as_published_takes_what_public_code_runs() -> None:
    def noise(column: str, data: str, name: str = "paper/benchmark") -> str:
        return cell(name, "CE", column, data, "published").noise

    assert noise("asymmetric(0.4)", "cifar10") == "asymmetric(rate=0.4, sequential=true)"
    assert noise("asymmetric(0.4)", "cifar100") == 'asymmetric(rate=0.4, map="index")'
    assert noise("symmetric(0.4)", "cifar10") == "symmetric(0.4)"
    assert noise("instance(0.4)", "cifar10", "paper/instance") == 'instance(rate=0.4, kind="projection")'
    changed = losses("paper/benchmark", "cifar10", reading="published")
    assert changed["SCE"] == {f"sce(alpha=0.1, beta=1, {CODE_A})"}
    assert changed["NCE+RCE"] == {f"nce + rce({CODE_A})"}
    assert changed["LC"] == {"logit_clip(loss=ce, norm=2.5, published=true)"}
    assert changed["OGC"] == {"ogc(loss=ce, budget=20, every=32, window=4096)"}
    hundred = losses("paper/benchmark", "cifar100", reading="published")
    assert hundred["LC"] == {"logit_clip(loss=ce, norm=0.5, published=true)"}
    assert changed["NCE+VCE"] == {"nce + 10*vce(a=4)"}
    written, published_ = (paper_grid("paper/benchmark", reading=reading) for reading in ("written", "published"))
    assert [(c.method, c.column) for c in written.cells] == [(c.method, c.column) for c in published_.cells]


def test_ablation_says_what_it_chose() -> None:
    assert losses("paper/ablation", "cifar10")["VCE"] == {"vce(a=5)"}
    assert losses("paper/ablation", "cifar100")["VCE"] == {"vce(a=0.4)"}
    assert losses("paper/ablation", "cifar100")["NCE"] == {"nce"}
    assert "vce(a=0.4)" in paper_grid("paper/ablation").notes[0]


def test_tables_share_their_runs() -> None:
    benchmark, ablation = (
        {c.experiment(c.data).id for c in paper_grid(name).cells} for name in ("paper/benchmark", "paper/ablation")
    )
    # CE and NCE+VCE: two methods, two data sets, four rates, three seeds.
    assert len(benchmark & ablation) == 2 * 2 * 4 * 3


def test_figures_have_the_losses_that_are_compared() -> None:
    grid = paper_grid("paper/figures")
    assert len({c.experiment(c.data).id for c in grid.cells}) == (12 + 4) * 3
    bounded = {c.loss for c in grid.cells if c.column == "symmetric(0.4)"}
    assert bounded == {"ce", "vce(a=5)", "vel(a=1.5)", "vsl(a=0.1)"}
    assert bounded < {c.loss for c in grid.cells if c.column == "symmetric(0.8)"}


def test_embeddings_have_a_head_and_other_data_a_recipe_of_its_own() -> None:
    grid = paper_grid("paper/benchmark", protocol="embeddings")
    assert {c.model for c in grid.cells} == {"mlp(hidden=256, depth=1)"}
    assert {(c.recipe.epochs, c.recipe.augment) for c in grid.cells} == {(30, "none")}
    with pytest.raises(ValueError, match="there is no recipe 'fast/"):
        settings("digits", "fast")


def test_what_is_not_there_says_so() -> None:
    with pytest.raises(ValueError, match="needs training methods that this version does not have"):
        paper_grid("paper/combination")
    with pytest.raises(ValueError, match="did you mean 'paper/benchmark'"):
        paper_grid("paper/bencmark")
    with pytest.raises(ValueError, match="--as code is not allowed"):
        paper_grid("paper/benchmark", reading="code")


def test_seeds_count_on() -> None:
    assert {c.seed for c in paper_grid("paper/figures", seeds=1).cells} == {123}
    assert {c.seed for c in paper_grid("paper/figures", seeds=4).cells} == {123, 124, 125, 126}
    assert set(PRESETS) >= {"paper/combination", *TABLES}
