"""Facts about the data sets that the field uses: sizes, classes, normalisation and which class is taken for which."""

from __future__ import annotations

from dataclasses import dataclass

from unswayed.spec import did_you_mean


@dataclass(frozen=True)
class Known:
    """What is known of a data set before a byte of it is read.

    ``flips[i]`` is the class that examples of class ``i`` are mistaken for under asymmetric noise (``i`` itself where
    they are not), ``flip_order`` the order in which public code goes through the classes, where that is not 0, 1, ...;
    ``superclasses[i]`` is the group of class ``i``. Each is empty where the data set has none.

    >>> known("cifar10").classes[known("cifar10").flips[9]]     # trucks are taken for cars
    'automobile'
    """

    name: str
    title: str
    num_classes: int
    in_shape: tuple[int, ...]
    train_size: int
    test_size: int
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    classes: tuple[str, ...] = ()
    flips: tuple[int, ...] = ()
    flip_order: tuple[int, ...] = ()
    superclasses: tuple[int, ...] = ()


def circle(groups: tuple[int, ...]) -> tuple[int, ...]:
    """Return the map that takes each class to the next one of its group, and the last to the first.

    >>> circle((0, 1, 0, 0))
    (2, 1, 3, 0)
    """
    members: dict[int, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    return tuple(
        members[group][(members[group].index(index) + 1) % len(members[group])] for index, group in enumerate(groups)
    )


def _flips(num_classes: int, pairs: dict[int, int]) -> tuple[int, ...]:
    return tuple(pairs.get(i, i) for i in range(num_classes))


_CIFAR10 = "airplane automobile bird cat deer dog frog horse ship truck"
_CIFAR100 = """
    apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
    castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin
    elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster
    man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck
    pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk
    skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television tiger
    tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""
_SUPERCLASSES = (
    4, 1, 14, 8, 0, 6, 7, 7, 18, 3, 3, 14, 9, 18, 7, 11, 3, 9, 7, 11, 6, 11, 5, 10, 7, 6, 13, 15, 3, 15, 0, 11, 1,
    10, 12, 14, 16, 9, 11, 5, 5, 19, 8, 8, 15, 13, 14, 17, 18, 10, 16, 4, 17, 4, 2, 0, 17, 4, 18, 17, 10, 3, 2, 12,
    12, 16, 12, 1, 9, 19, 2, 10, 0, 1, 16, 12, 9, 13, 15, 13, 16, 19, 2, 4, 6, 19, 5, 5, 8, 19, 18, 1, 2, 15, 6, 0,
    17, 8, 14, 13
)  # fmt: skip
# The digits that look alike; Fashion-MNIST has no map of its own in public code, which uses this one for it too.
_MNIST = {7: 1, 2: 7, 5: 6, 6: 5, 3: 8}
_FASHION = "t-shirt/top trouser pullover dress coat sandal shirt sneaker bag ankle-boot"
_IMAGENET_MEAN, _IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_DIGITS = tuple(map(str, range(10)))

KNOWN = {
    entry.name: entry
    for entry in (
        Known(
            "digits", "handwritten digits, 8 x 8, of scikit-learn", 10, (1, 8, 8), 1437, 360,
            classes=_DIGITS, flips=_flips(10, _MNIST), flip_order=tuple(_MNIST),
        ),
        Known(
            "mnist", "MNIST", 10, (1, 28, 28), 60000, 10000, (0.1307,), (0.3081,), _DIGITS, _flips(10, _MNIST),
            tuple(_MNIST),
        ),
        Known(
            "fashion_mnist", "Fashion-MNIST", 10, (1, 28, 28), 60000, 10000, (0.2860,), (0.3530,),
            tuple(_FASHION.split()), _flips(10, _MNIST), tuple(_MNIST),
        ),
        Known(
            "cifar10", "CIFAR-10", 10, (3, 32, 32), 50000, 10000,
            (0.49139968, 0.48215827, 0.44653124), (0.24703233, 0.24348505, 0.26158768),
            tuple(_CIFAR10.split()), _flips(10, {9: 1, 2: 0, 3: 5, 5: 3, 4: 7}),
        ),
        Known(
            "cifar100", "CIFAR-100", 100, (3, 32, 32), 50000, 10000,
            (0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762),
            tuple(_CIFAR100.split()), circle(_SUPERCLASSES), superclasses=_SUPERCLASSES,
        ),
        Known(
            "webvision", "WebVision 1.0 mini (Google, 50 classes)", 50, (3, 224, 224), 65944, 2500,
            _IMAGENET_MEAN, _IMAGENET_STD,
        ),
        Known(
            "ilsvrc12", "ILSVRC12 validation, the same 50 classes", 50, (3, 224, 224), 0, 2500,
            _IMAGENET_MEAN, _IMAGENET_STD,
        ),
        Known(
            "clothing1m", "Clothing1M", 14, (3, 224, 224), 1000000, 10526,
            (0.6959, 0.6537, 0.6371), (0.3113, 0.3192, 0.3214),
        ),
    )
}  # fmt: skip


def known(name: str) -> Known:
    """Return the facts about a data set, by its name.

    >>> known("cifar100").num_classes
    100
    """
    if name not in KNOWN:
        raise ValueError(f"unknown data set {name!r}{did_you_mean(name, KNOWN)}; known: {', '.join(KNOWN)}")
    return KNOWN[name]
