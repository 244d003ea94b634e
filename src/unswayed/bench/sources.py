"""Where a grid's data is: what ``--data NAME=PLACE`` says, read once in each process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from unswayed.data import Data, load
from unswayed.data.known import KNOWN
from unswayed.data.loading import NAMES
from unswayed.noise import make as make_noise
from unswayed.noise.human import KEYS
from unswayed.spec import did_you_mean
from unswayed.training.run import name_of_data

# Labels of people: under which name their file is given, and what it is called where it was published.
_HUMAN = {
    "cifar10": ("cifar10n", "CIFAR-10_human.pt", tuple(which for which in KEYS if which != "noisy")),
    "cifar100": ("cifar100n", "CIFAR-100_human.pt", ("noisy",)),
}
# Test sets that another data set brings along.
_TESTS = {"webvision": "ilsvrc12"}


@dataclass
class Sources:
    """Data sets by name. Under the protocol ``embeddings`` a place is a table of features.

    ``cifar10n`` and ``cifar100n`` name the files of human labels, which are also found in the folder of the images;
    ``ilsvrc12`` a second test set for ``webvision``.

    >>> Sources({}).load("digits").num_classes
    10
    """

    places: Mapping[str, str]
    embeddings: bool = False
    _loaded: dict[str, Data] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, given: Iterable[str], protocol: str) -> Sources:
        """Return what ``NAME=PLACE`` say.

        >>> Sources.of(["cifar10=images"], "paper").places
        {'cifar10': 'images'}
        """
        places: dict[str, str] = {}
        for text in given:
            name, _, place = (part.strip() for part in text.partition("="))
            if not name or not (place or name == "digits"):
                raise ValueError(f"--data {text!r} is not allowed; write NAME=PLACE, like cifar10=DIR")
            if name in places:
                raise ValueError(f"--data: {name} is given twice, as {places[name]!r} and as {place!r}")
            places[name] = place
        return cls(places, protocol == "embeddings")

    def check(self, names: Iterable[str]) -> None:
        """Raise a ``ValueError`` if something was given that nothing of ``names`` needs."""
        names = set(names)
        useful = names | {_HUMAN[n][0] for n in names if n in _HUMAN} | {_TESTS[n] for n in names if n in _TESTS}
        for name in self.places:
            if name not in useful:
                raise ValueError(
                    f"--data {name}={self.places[name]}: the grid has no data called {name!r}"
                    f"{did_you_mean(name, useful)}; it has: {', '.join(sorted(names))}"
                )

    def has(self, name: str) -> bool:
        """Whether it is known where a data set is."""
        return name == "digits" or name in self.places

    def knows(self, name: str) -> bool:
        """Whether :meth:`name` can tell."""
        return self.has(name) or (name in KNOWN and not self.embeddings)

    def name(self, name: str) -> str:
        """Return what experiments call a data set; for that, features and folders are read."""
        if name in KNOWN and (name == "digits" or not self.embeddings):
            return name
        return name_of_data(self.load(name))

    def load(self, name: str) -> Data:
        """Return a data set."""
        if name not in self._loaded:
            self._loaded[name] = self._read(name)
        return self._loaded[name]

    def _read(self, name: str) -> Data:
        if not self.has(name):
            kind = "FILE (a table of features)" if self.embeddings else "DIR"
            raise ValueError(f"it is not known where {name} is; say so with --data {name}={kind}")
        place = self.places.get(name) or None
        if self.embeddings and name != "digits":
            return self._with_human(name, _named(name, load("features", place)))
        if name not in NAMES:
            raise ValueError(f"unknown data set {name!r}{did_you_mean(name, NAMES)}; known: {', '.join(NAMES)}")
        data = self._with_human(name, load(name, place))
        more = _TESTS.get(name, "")
        if more in self.places:
            data = replace(data, tests=dict(data.tests) | {more: load(more, self.places[more]).test})
        return data

    def _with_human(self, name: str, data: Data) -> Data:
        """Return data with the labels of people, if there is a file of them and the data has not brought its own."""
        if name not in _HUMAN or data.train.human:
            return data
        given, published, whiches = _HUMAN[name]
        file = Path(self.places[given]) if given in self.places else Path(self.places[name]) / published
        if given in self.places and not file.is_file():
            raise FileNotFoundError(f"--data {given}={file}: there is no such file")
        if not file.is_file():
            return data
        human = {
            which: make_noise(
                f"human({which}, file={str(file)!r})", data.train.labels, data.num_classes, index=data.train.index
            ).labels
            for which in whiches
        }
        return replace(data, train=replace(data.train, human=human))


def _named(name: str, data: Data) -> Data:
    """Return features under the name of the data set that they are features of."""
    facts = KNOWN.get(name)
    if data.known is not None and data.known.name != name:
        raise ValueError(f"--data {name}: these are features of {data.known.name}, by the names of their classes")
    if facts is not None and data.num_classes != facts.num_classes:
        raise ValueError(
            f"--data {name}: these features have {data.num_classes} classes, where {facts.title} has "
            f"{facts.num_classes}"
        )
    return replace(data, name=f"{name}-features")
