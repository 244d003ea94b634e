"""Many losses in one computation give what each gives alone."""

import pytest
import torch

import unswayed
from unswayed.losses.together import Together

SPECS = (
    "ce", "vce(a=1)", "vce(a=4)", "vce(a=0)", "gce(q=0.5)", "gce(q=0.7)", "nce + vce(a=1)", "nce + 10*vce(a=4)",
    "agce(a=1, q=2)", "agce(a=0.6, q=0.6)", "aul(a=5.5, q=3)", "aul(a=2, q=0.5)", "ael(a=2)", "ael(a=3)", "vel(a=2)",
    "vel(a=3)", "vsl(a=0.3)", "vsl(a=0.5)", "nnce", "nfl(gamma=1)", "nfl(gamma=2)", "focal(gamma=0)", "focal(gamma=1)",
    "focal(gamma=2)", "taylor_ce(t=2)", "taylor_ce(t=3)", "js(pi=0.3)", "js(pi=0.5)", "phuber_ce(tau=2)",
    "phuber_ce(tau=10)", "sce(alpha=0.1, beta=1)", "sce(alpha=1, beta=2)", "nce + rce", "nce - 0.5*rce", "amse(a=2)",
    "label_smoothing(gce(q=0.7), r=0.1)", "logit_clip(ce, norm=1)", "eps_softmax(ce)", "bootstrap(ce)", "gjs(pi=0.4)",
    "bounded(ce, v=3)", "bounded(ce, v=5)", "ce",
)  # fmt: skip


@pytest.mark.parametrize("examples", [40, 400])
def test_values_and_gradients(examples: int) -> None:
    torch.manual_seed(0)
    together = Together([unswayed.loss(spec) for spec in SPECS])
    assert sorted(together.order) == list(range(len(SPECS)))
    logits = (3 * torch.randn(len(SPECS), 10, examples)).requires_grad_()
    target = torch.randint(10, (len(SPECS), examples))
    found = together(logits, target)
    (slopes,) = torch.autograd.grad(found.sum(), logits)
    for row, place in enumerate(together.order):
        own = logits.detach()[row].T.clone().requires_grad_()
        values = unswayed.loss(SPECS[place], reduction="none")(own, target[row])
        (slope,) = torch.autograd.grad(values.sum(), own)
        for mine, alone in ((found[row], values), (slopes[row], slope.T)):
            torch.testing.assert_close(mine, alone, atol=2e-5, rtol=1e-4, msg=SPECS[place])


@pytest.mark.parametrize("family", ["vce(a={})", "vel(a=1{})", "gce(q=0.{})", "nce + {}*vce(a={})", "agce(a={}, q=2)"])
def test_a_family_is_one_expression(family: str) -> None:
    specs = [family.replace("{}", str(number)) for number in (1, 2, 3, 4)]
    together = Together([unswayed.loss(spec) for spec in specs])
    assert together.groups == 1


def test_what_cannot_be_one_expression_takes_turns() -> None:
    assert Together([unswayed.loss(f"phuber_ce(tau={tau})") for tau in (2, 3, 3)]).groups == 2
