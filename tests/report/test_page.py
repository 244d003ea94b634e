"""The page: what is written into it, and how it behaves in a browser."""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser import CHROMIUM, Page, browser
from report_cases import made
from unswayed.report import Run, grouped, write_page
from unswayed.report.charts import charts

EVIL = '</script><script>window.broken = 1</script><img src=x onerror="window.broken = 1">{{data}}'
LOSSES = ("ce", "gce(q=0.7)", "vce(a=1)", "nce + 10*vce(a=4)")


def runs() -> list[Run]:
    """Four losses with three seeds each, of which the later ones end higher."""
    return [
        made(
            loss, seed, accuracy=[0.5 + 0.1 * i + 0.01 * seed + 0.02 * epoch for epoch in range(5)], memorised=[0.1] * 5
        )
        for i, loss in enumerate(LOSSES)
        for seed in range(3)
    ]


def data_of(page: Path) -> Any:
    text = page.read_text(encoding="utf-8")
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    return json.loads(found)


def test_a_page_refers_to_nothing_outside(tmp_path: Path) -> None:
    text = write_page(runs(), tmp_path / "r.html").read_text(encoding="utf-8")
    assert set(re.findall(r"\w+://[^\"'\s<]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in text
    assert len(text) < 100_000


def test_curves_are_means_with_deviations_in_percent() -> None:
    (group,) = grouped(runs())
    accuracy, memorised, slopes, noise, reliability = charts(group)
    assert accuracy["series"][0]["y"] == [51.0, 53.0, 55.0, 57.0, 59.0]
    assert accuracy["series"][0]["std"] == [1.0] * 5
    assert memorised["series"][3]["y"] == [10.0] * 5
    assert noise["rows"][2][:3] == [4.44, 4.44, 60.0]
    assert reliability["series"][1]["bins"][-2:] == [[30, 90.0, 50.0], [90, 99.0, 80.0]]
    assert slopes["rule"]["at"] == pytest.approx(13.5)


def test_slopes_are_those_of_the_losses_in_units_of_the_least() -> None:
    (group,) = grouped([made(loss) for loss in ("ce", "vce(a=1)", "nce + 10*vce(a=4)", "nce", "mine:Loss()")])
    (slopes,) = (chart for chart in charts(group) if "Slope" in chart["title"])
    u, by_loss = slopes["x"]["values"], {line["loss"]: line["y"] for line in slopes["series"]}
    assert sorted(by_loss) == [0, 1, 2]
    for loss, slope in ((0, lambda u: 1 / u), (1, lambda u: 2 / (1 + u)), (2, lambda u: 5 / (4 + u))):
        assert by_loss[loss] == pytest.approx([slope(x) for x in u], rel=2e-3)
    assert "10*vce(a=4) of nce + 10*vce(a=4)" in slopes["about"]
    assert "No function of u: nce." in slopes["about"]


def test_what_was_not_measured_is_not_drawn(tmp_path: Path) -> None:
    bare = made(memorised=None, noise="given")
    record = dict(bare.record) | {"noise": None, "calibration": None}
    (group,) = grouped([Run(record, bare.epochs)])
    assert [chart["title"] for chart in charts(group)] == ["Test accuracy", "Slope |l'(u)| of each loss"]
    write_page([Run(record, bare.epochs)], tmp_path / "r.html")


def test_a_class_without_examples_does_not_break_the_page(tmp_path: Path) -> None:
    run = made()
    matrix = [list(row) for row in run.noise["matrix"]]
    matrix[3] = [None] * 10
    page = write_page(
        [Run(dict(run.record) | {"noise": run.noise | {"matrix": matrix}}, run.epochs)], tmp_path / "r.html"
    )
    (noise,) = (chart for chart in data_of(page)[0]["charts"] if chart["kind"] == "heat")
    assert noise["rows"][3] == [0] * 10


def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a page whose every text from data is hostile."""
    monkeypatch.setattr("unswayed.report.runs.Group.classes", (EVIL, *"123456789"))
    hostile = made(loss=f"mine:{EVIL}", data=EVIL, model=EVIL)
    record = dict(hostile.record) | {"versions": {EVIL: EVIL}, "device": EVIL}
    return write_page([Run(record, hostile.epochs), made()], tmp_path / "evil.html", title=EVIL)


def test_text_from_data_stays_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = evil(tmp_path, monkeypatch)
    text = page.read_text(encoding="utf-8")
    assert len(re.findall("<script", text)) == 2
    assert "<img" not in text
    assert data_of(page)[0]["losses"] == [f"mine:{EVIL}"]


# In a browser


@pytest.fixture(scope="module")
def tab() -> Iterator[Page]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium on PATH to look at the page with")
    with browser() as page:
        yield page


@pytest.fixture
def page(tab: Page, tmp_path: Path) -> Iterator[Page]:
    """The page of four losses in a large window; it must neither complain nor ask for anything."""
    tab.requests.clear()
    tab.errors.clear()
    tab.window(1200, 900)
    file = write_page(runs(), tmp_path / "r.html")
    tab.open(file)
    yield tab
    assert tab.errors == []
    assert set(tab.requests) == {file.resolve().as_uri()}


FIRST_COLUMN = "[...document.querySelectorAll('.results tbody tr')].map(row => row.cells[0].textContent)"


def sort_by(page: Page, title: str) -> list[str]:
    found = f"[...document.querySelectorAll('.results th button')].find(b => b.textContent === {json.dumps(title)})"
    page.run(f"{found}.focus()")
    page.press("Enter")
    names: list[str] = page.run(FIRST_COLUMN)
    return names


def test_everything_is_drawn(page: Page) -> None:
    assert page.run("document.querySelectorAll('figure').length") == 5
    lines = page.run("[...document.querySelectorAll('#chart-0-0 .line')].map(line => line.getTotalLength())")
    assert len(lines) == 4
    assert all(length > 300 for length in lines)
    assert page.run("document.querySelectorAll('#chart-0-0 .band').length") == 4
    assert page.run("document.querySelectorAll('#chart-0-4 svg').length") == 4
    assert page.run("document.querySelector('.lead').textContent").startswith("nce + 10*vce(a=4) ends at 89.0 %")


def test_tables_sort_by_value_and_by_keyboard(page: Page) -> None:
    assert page.run(FIRST_COLUMN) == list(LOSSES)
    assert sort_by(page, "last epoch") == list(LOSSES[::-1])
    assert sort_by(page, "last epoch") == list(LOSSES)
    assert sort_by(page, "loss") == sorted(LOSSES)
    assert sort_by(page, "v")[-1] == "nce + 10*vce(a=4)"  # infinity comes first
    heads = page.run("[...document.querySelectorAll('.results th')].map(h => h.getAttribute('aria-sort'))")
    assert heads == ["none"] * 5 + ["descending", "none"]


def test_a_legend_hides_and_shows_in_all_figures(page: Page) -> None:
    shown = "[...document.querySelectorAll('[data-loss=\"1\"]')].filter(e => e.checkVisibility()).length"
    before = page.run(shown)
    page.run("document.querySelector('[data-key=\"1\"]').focus()")
    page.press("Space")
    assert page.run(shown) == 0
    pressed = "[...document.querySelectorAll('[data-key=\"1\"]')].map(b => b.getAttribute('aria-pressed'))"
    assert page.run(pressed) == ["false"] * 3
    page.press("Space")
    assert page.run(shown) == before == 5
    assert page.run(pressed) == ["true"] * 3


def test_values_are_read_by_pointer_and_by_keyboard(page: Page) -> None:
    box = "(() => { const b = document.querySelector('#chart-0-0 .readout'); return b.hidden ? null : b.innerText })()"
    assert page.run(box) is None
    x, y = page.run(
        "(() => { const h = document.querySelector('#chart-0-0'); h.scrollIntoView({block: 'center'});"
        " const r = h.getBoundingClientRect(); return [r.right - 12, r.top + r.height / 2] })()"
    )
    page.point(x, y)
    text = page.run(box)
    assert text.startswith("epoch 5")
    assert text.index("nce") < text.index("gce")  # in the order of the values
    assert "89.00 ± 1.00 %" in text
    page.run("document.querySelector('#chart-0-0').focus()")
    page.press("Home")
    page.press("ArrowRight")
    assert page.run(box).startswith("epoch 2")
    assert "epoch 2" in page.run("document.querySelector('#chart-0-0 [aria-live]').textContent")
    page.press("Escape")
    assert page.run(box) is None
    page.run("document.querySelector('#chart-0-3').focus()")
    for key in ("Home", "ArrowDown", "ArrowRight"):
        page.press(key)
    assert page.run("document.querySelector('#chart-0-3 .readout').innerText").startswith("60.00 %")


def test_a_phone_and_the_dark(page: Page) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.run(colour)
    page.window(375, 800, dark=True, phone=True)
    assert page.run(colour) != light
    page.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.run("document.documentElement.scrollWidth") == 375
    widths = page.run("[...document.querySelectorAll('figure svg')].map(s => s.getBoundingClientRect().width)")
    assert all(250 < width <= 375 for width in widths)
    # The plots are drawn anew, so that their letters keep their size.
    boxes = page.run("[...document.querySelectorAll('figure svg')].map(s => s.viewBox.baseVal.width)")
    assert boxes == pytest.approx(widths, abs=1)


def test_hostile_text_does_nothing(tab: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = evil(tmp_path, monkeypatch)
    tab.errors.clear()
    tab.requests.clear()
    tab.open(file)
    assert tab.run("window.broken") is None
    assert tab.errors == []
    assert set(tab.requests) == {file.resolve().as_uri()}
    assert tab.run("document.title") == EVIL
    assert tab.run("document.querySelectorAll('figure svg').length") > 5


def test_five_hundred_runs_of_120_epochs_open_in_two_seconds(tab: Page, tmp_path: Path) -> None:
    draw = random.Random(0)
    many = [
        made(
            f"vce(a={1 + a})", seed, recipe={"lr": lr}, accuracy=[0.5 + 0.4 * draw.random() for _ in range(120)],
            memorised=[draw.random() for _ in range(120)],
        )
        for lr in range(14)
        for a in range(12)
        for seed in range(3)
    ]  # fmt: skip
    file = write_page(many, tmp_path / "many.html")
    assert file.stat().st_size < 15e6
    tab.open(file)
    assert len(many) >= 500
    assert tab.run("document.querySelectorAll('figure svg').length") == 14 * (4 + 12)
    assert 0.01 < tab.busy < 2
