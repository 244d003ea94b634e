"""Where a grid's data is."""

from pathlib import Path

import numpy as np
import pytest

from unswayed.bench.sources import Sources
from unswayed.data import Data
from unswayed.data.known import known
from unswayed.noise import make

SHARED = Path(__file__).parents[3] / "shared" / "data"


def table(path: Path, names: int = 10, classes: tuple[str, ...] = (), **more: np.ndarray) -> Path:
    x, y = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32), np.arange(40) % names
    if classes:
        more["class_names"] = np.array(classes)
    np.savez(path, x_train=x, y_train=y, x_test=x, y_test=y, **more)
    return path


def test_what_is_given_is_read_once(tmp_path: Path) -> None:
    sources = Sources.of([f"cifar10={table(tmp_path / 't.npz')}"], "embeddings")
    data = sources.load("cifar10")
    assert sources.load("cifar10") is data
    assert data.name == "cifar10-features"
    name = sources.name("cifar10")
    assert name.startswith("cifar10-features#")
    # The name hangs on what is in the file, not on where it is.
    assert Sources.of([f"cifar10={table(tmp_path / 'u.npz')}"], "embeddings").name("cifar10") == name


def test_images_have_their_published_name_without_being_read() -> None:
    sources = Sources({})
    assert (sources.name("cifar10"), sources.name("digits")) == ("cifar10", "digits")
    assert not sources.has("cifar10")
    assert not Sources({}, embeddings=True).knows("cifar10")


def test_features_of_something_else_are_refused(tmp_path: Path) -> None:
    sources = Sources.of([f"cifar100={table(tmp_path / 't.npz')}"], "embeddings")
    with pytest.raises(ValueError, match="have 10 classes, where CIFAR-100 has 100"):
        sources.load("cifar100")
    names = known("cifar10").classes
    sources = Sources.of([f"mnist={table(tmp_path / 't.npz', classes=names)}"], "embeddings")
    with pytest.raises(ValueError, match="these are features of cifar10"):
        sources.load("mnist")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["cifar10"], "--data 'cifar10' is not allowed; write NAME=PLACE"),
        (["cifar10="], "write NAME=PLACE"),
        (["=x"], "write NAME=PLACE"),
        (["a=x", "a=y"], "a is given twice, as 'x' and as 'y'"),
    ],
)
def test_places_that_cannot_be_read(given: list[str], message: str) -> None:
    with pytest.raises(ValueError) as error:
        Sources.of(given, "paper")
    assert message in str(error.value)


def test_places_that_nothing_needs() -> None:
    sources = Sources.of(["cifar=x"], "paper")
    with pytest.raises(ValueError, match="the grid has no data called 'cifar'; did you mean 'cifar10'"):
        sources.check(["cifar10"])
    Sources.of(["cifar10=x", "cifar10n=y"], "paper").check(["cifar10"])
    Sources.of(["webvision=x", "ilsvrc12=y"], "paper").check(["webvision"])


def test_data_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="say so with --data cifar10=DIR"):
        Sources({}).load("cifar10")
    with pytest.raises(ValueError, match=r"--data cifar10=FILE \(a table of features\)"):
        Sources({}, embeddings=True).load("cifar10")
    with pytest.raises(ValueError, match="unknown data set 'cifar'; did you mean 'cifar10'"):
        Sources({"cifar": str(tmp_path)}).load("cifar")
    table(tmp_path / "t.npz")
    sources = Sources({"cifar10": str(tmp_path / "t.npz"), "cifar10n": str(tmp_path / "no.pt")}, embeddings=True)
    with pytest.raises(FileNotFoundError, match=r"no\.pt: there is no such file"):
        sources.load("cifar10")


@pytest.mark.skipif(not (SHARED / "cifar-n").is_dir(), reason=f"needs {SHARED}")
def test_human_labels_come_from_their_file(tmp_path: Path) -> None:
    """Experiments say human(worst) then, and not where the file is: the same run on each machine."""
    embedded = SHARED / "embeddings" / "cifar100.npz"
    with np.load(embedded) as content:
        y, index = content["y_train"], content["index_train"]
    x = np.zeros((len(y), 1), np.float32)
    np.savez(tmp_path / "t.npz", x_train=x, y_train=y, index_train=index, x_test=x[:100], y_test=np.arange(100))
    places = {"cifar100": str(tmp_path / "t.npz"), "cifar100n": str(SHARED / "cifar-n" / "CIFAR-100_human.pt")}
    data: Data = Sources(places, embeddings=True).load("cifar100")
    noisy = make("human(noisy)", data.train.labels, 100, human=data.train.human)
    assert noisy.rate == pytest.approx(0.402, abs=0.002)
    own = Sources({"cifar100": str(embedded)}, embeddings=True).load("cifar100")
    assert np.array_equal(own.train.human["noisy"], noisy.labels)
