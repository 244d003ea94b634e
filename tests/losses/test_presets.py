"""Published settings are specs as the losses write them."""

import pytest

from unswayed import Preset, list_presets, loss, preset


@pytest.mark.parametrize("setting", list_presets(), ids=lambda one: f"{one.method}-{one.dataset}")
def test_every_setting_is_a_canonical_spec(setting: Preset) -> None:
    for spec in (setting.spec, *(spec for _, spec in setting.variants)):
        assert str(loss(spec)) == spec


def test_logit_clipping_is_there_as_written_and_as_published() -> None:
    setting = preset("lc", "cifar10")
    assert setting.spec == "logit_clip(loss=ce, norm=2.5, published=false)"
    assert dict(setting.variants)["as published (EPS and JAL code)"] == "logit_clip(loss=ce, norm=2.5, published=true)"


def test_budgets_of_the_paper_and_of_its_authors() -> None:
    setting = preset("CE+OGC", "cifar10")
    assert "budget=5," in setting.spec
    assert {label: loss(spec).budget for label, spec in setting.variants} == {
        "noise of 0.6 and 0.8": 1,
        "as published (OGC scripts)": 20,
    }
