"""What makes two runs the same run."""

import pytest

from unswayed.training import Recipe
from unswayed.training.experiment import Experiment, differences


def make(**changes: object) -> Experiment:
    common = {"data": "digits", "noise": "symmetric(rate=0.4)", "model": "linear", "loss": "ce"}
    return Experiment(**(common | changes))  # type: ignore[arg-type]


def test_the_id_hangs_on_what_decides_the_result_and_on_nothing_else() -> None:
    assert make().id == make(recipe=Recipe(source="elsewhere"), noise_seed=0).id
    others = [
        {"data": "mnist"}, {"noise": "given"}, {"model": "cnn4"}, {"loss": "mae"}, {"seed": 1}, {"noise_seed": 1},
        {"validation": 0.1}, {"recipe": Recipe(lr=0.2)},
    ]  # fmt: skip
    assert len({make(**changes).id for changes in [{}, *others]}) == len(others) + 1


def test_the_id_is_the_same_in_every_process() -> None:
    # A change of this value orphans all run folders: raise the format of folder.py with it.
    settings = make(recipe=Recipe(epochs=1)).settings
    assert set(settings) == {"data", "noise", "model", "loss", "recipe", "seed", "noise_seed", "validation"}
    assert len(make().id) == 12
    assert int(make().id, 16)


def test_the_noise_has_the_seed_of_the_run_unless_it_has_its_own() -> None:
    assert make(seed=7).noise_seed == 7
    assert make(seed=7, noise_seed=1).noise_seed == 1


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"validation": 0.6}, "validation=0.6 is not allowed; 0 <= validation <= 0.5"),
        ({"seed": -1}, "seed=-1 is not allowed"),
        ({"seed": 2**32}, "seed=4294967296 is not allowed"),
        ({"noise_seed": 1.5}, "noise_seed=1.5 is not allowed"),
    ],
)
def test_refusals(changes: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make(**changes)


def test_differences_are_told_by_name() -> None:
    old, new = make().settings, make(loss="mae", recipe=Recipe(lr=0.2)).settings
    assert differences(old, new) == ["loss: ce, not mae", "recipe.lr: 0.1, not 0.2"]
    assert differences({"a": 1}, {"b": 2}) == ["a: 1, not None", "b: None, not 2"]
    assert differences(old, old) == []
