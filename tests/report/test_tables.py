"""The table of a group, and the sentences about it."""

import io

import pytest
from rich.console import Console

from report_cases import made
from unswayed.report import Group, Run, Table, findings, grouped, headline, results
from unswayed.report.tables import for_terminal


def one_group(*runs: Run) -> Group:
    (group,) = grouped(runs)
    return group


def cells(table: Table, title: str) -> list[tuple[str, bool]]:
    column = [column.title for column in table.columns].index(title)
    return [(row[column].text, row[column].best) for row in table.rows]


def ends_at(loss: str, *accuracies: float) -> list[Run]:
    """Runs of one loss, a seed each, which end at these accuracies and have memorised the rest."""
    return [made(loss, seed, accuracy=(end,), memorised=(1 - end,)) for seed, end in enumerate(accuracies)]


def test_last_and_best_epoch_and_what_was_memorised() -> None:
    group = one_group(made("ce", 0), made("ce", 1, accuracy=(0.5, 0.6, 0.4)), made("vce(a=1)", 0), made("vce(a=1)", 1))
    table = results(group)
    assert [column.title for column in table.columns] == [
        "loss", "last epoch", "best epoch", "memorised", "ECE", "v", "proved",
    ]  # fmt: skip
    assert cells(table, "last epoch") == [("50.00 ± 14.14", False), ("60.00 ± 0.00", True)]
    assert cells(table, "best epoch") == [("65.00 ± 7.07", False), ("70.00 ± 0.00", True)]
    assert cells(table, "memorised") == [("20.00 ± 0.00", True), ("20.00 ± 0.00", True)]
    assert cells(table, "ECE") == [("25.00 ± 7.07", False), ("20.00 ± 0.00", True)]
    assert cells(table, "v") == [("∞", False), ("2", False)]
    assert cells(table, "proved") == [("no", False), ("yes", False)]
    assert "n = 2, ddof = 1" in table.note
    assert "chosen by the test set" in table.note


def test_unrounded_values_decide_which_is_best() -> None:
    table = results(one_group(*ends_at("ce", 0.900001), *ends_at("mae", 0.900002)))
    assert cells(table, "last epoch") == [("90.00", False), ("90.00", True)]


def test_unequal_numbers_of_seeds_are_told() -> None:
    table = results(one_group(*ends_at("ce", 0.5, 0.6), *ends_at("vce(a=1)", 0.9)))
    assert cells(table, "n") == [("2", False), ("1", False)]
    assert "n as given" in table.note
    partly = one_group(made("ce", 0), made("ce", 1, memorised=None))
    assert cells(results(partly), "memorised") == [("20.00 (n = 1)", True)]


def test_columns_of_which_nothing_is_known_are_left_out() -> None:
    titles = [column.title for column in results(one_group(made(memorised=None, noise="given"))).columns]
    assert "memorised" not in titles
    assert "proved" not in titles
    assert results(one_group(made())).note.startswith("One seed")


@pytest.mark.parametrize(
    ("runs", "sentence"),
    [
        (
            ends_at("ce", 0.6) + ends_at("gce", 0.8) + ends_at("vce", 0.9),
            "vce ends at 90.0 % test accuracy, ce at 60.0 %; of the wrong labels, vce has memorised 10.0 %, ce 40.0 %.",
        ),
        (
            ends_at("ce", 0.9) + ends_at("vce", 0.8),
            "ce ends at 90.0 % test accuracy, vce at 80.0 %; of the wrong labels, ce has memorised 10.0 %, vce 20.0 %.",
        ),
        (ends_at("ce", 0.9) + ends_at("vce", 0.9), "ce and vce end at the same test accuracy, 90.0 %."),
        (
            ends_at("ce", 0.9),
            "ce ends at 90.0 % test accuracy; of the wrong labels, ce has memorised 10.0 %.",
        ),
        ([made("ce", memorised=None)], "ce ends at 60.0 % test accuracy."),
    ],
)
def test_the_headline_says_what_the_values_say(runs: list[Run], sentence: str) -> None:
    assert headline(one_group(*runs)) == sentence


def test_the_headline_tells_when_seeds_differ_as_much() -> None:
    far = one_group(*ends_at("ce", 0.50, 0.52), *ends_at("vce", 0.90, 0.92))
    near = one_group(*ends_at("ce", 0.80, 0.90), *ends_at("vce", 0.82, 0.92))
    assert "within the spread" not in headline(far)
    assert "a difference within the spread of the seeds" in headline(near)


def test_findings() -> None:
    group = one_group(made("ce", accuracy=(0.9, 0.6, 0.5)), *(made(loss, accuracy=(0.7, 0.8, 0.8)) for loss in "ab"))
    assert findings(group) == ["ce reached 90.0 % on the way, and lost 40.0 points by the last epoch."]
    group = one_group(*ends_at("a", 0.7), *ends_at("b", 0.8), *ends_at("c", 0.5))
    assert findings(group) == ["b is 10.0 points above a, the next."]


def test_a_terminal_80_wide_shows_every_digit() -> None:
    group = one_group(*(made(loss, seed) for loss in ("ce", "nce + 10*vce(a=4)") for seed in range(3)))
    shown = Console(file=io.StringIO(), width=80)
    shown.print(for_terminal(results(group)))
    text = shown.file.getvalue()  # type: ignore[attr-defined]
    assert "…" not in text
    assert "60.00±0.00" in text
    assert len([line for line in text.splitlines() if line.strip()]) == 4
