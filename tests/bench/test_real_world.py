"""Table 5's grid on tiny trees of files in the published layout."""

import json
from pathlib import Path

import pytest

pytest.importorskip("PIL")

from PIL import Image

from unswayed.bench import Grid, Store, paper_grid
from unswayed.bench.sources import Sources
from unswayed.bench.store import plan_of
from unswayed.bench.work import tasks, work


def draw(path: Path, value: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (40, 30), (value, 100, 200)).save(path, "PNG")


def write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    """WebVision with ILSVRC12 in a folder of its own, and Clothing1M: an image a class and split."""
    root = tmp_path_factory.mktemp("real")
    web, clothes = root / "webvision", root / "clothing1m"
    for label in range(50):
        draw(web / f"google/q{label}/0.jpg", 4 * label)
        draw(web / f"val_images_256/{label}.jpg", 4 * label)
        draw(root / f"ilsvrc12/val/{label}/0.JPEG", 4 * label)
    write(web / "info/train_filelist_google.txt", [f"google/q{label}/0.jpg {label}" for label in range(50)])
    write(web / "info/val_filelist.txt", [f"{label}.jpg {label}" for label in range(50)])
    for kind, splits in (("noisy", ("train",)), ("clean", ("val", "test"))):
        names = {(split, label): f"images/{split}{label}.jpg" for split in splits for label in range(14)}
        for (_, label), name in names.items():
            draw(clothes / name, 15 * label)
        write(clothes / f"{kind}_label_kv.txt", [f"{name} {label}" for (_, label), name in names.items()])
        for split in splits:
            write(clothes / f"{kind}_{split}_key_list.txt", [name for (s, _), name in names.items() if s == split])
    return Sources({"webvision": str(web), "clothing1m": str(clothes), "ilsvrc12": str(root / "ilsvrc12")})


def run(grid: Grid, sources: Sources, out: Path) -> Store:
    store = Store(out)
    store.add(plan_of(grid, {cell.data: sources.name(cell.data) for cell in grid.cells}))
    for task in tasks((cell.data, cell.experiment(sources.name(cell.data))) for cell in grid.cells):
        work(task, sources, store)
    return store


def check(store: Store) -> None:
    for id, planned in store.cells().items():
        assert store.state(id).name == "done", store.state(id).detail
        assert json.loads((store.folder(id) / "result.json").read_text())["id"] == id
        epochs = store.epochs(id)
        assert len(epochs) == 2
        # WebVision's networks are measured on ILSVRC12 too.
        more = [name for name in epochs[-1] if "ilsvrc12" in name and name.endswith("accuracy")]
        assert len(more) == (planned.data == "webvision"), epochs[-1]


def test_two_epochs_of_each_data_set(sources: Sources, tmp_path: Path) -> None:
    grid = paper_grid("paper/real-world", seeds=1).only(["loss=nce+vce"]).set(["recipe.epochs=2", "model=linear"])
    assert [cell.data for cell in grid.cells] == ["webvision", "clothing1m"]
    check(run(grid, sources, tmp_path))


@pytest.mark.slow
def test_two_epochs_of_the_whole_table(sources: Sources, tmp_path: Path) -> None:
    grid = paper_grid("paper/real-world", seeds=1).set(["recipe.epochs=2", "model=linear"])
    store = run(grid, sources, tmp_path)
    assert len(store.cells()) == 15
    check(store)


@pytest.mark.slow
def test_two_epochs_with_the_network_of_the_paper(sources: Sources, tmp_path: Path) -> None:
    """From random weights on Clothing1M: those of ImageNet come with timm."""
    changes = ["recipe.epochs=2", "recipe.batch_size=7", "model=resnet50"]
    grid = paper_grid("paper/real-world", seeds=1).only(["loss=nce+vce", "data=clothing1m"]).set(changes)
    check(run(grid, sources, tmp_path))
