"""The losses that the suite runs over, with extreme settings, and a plain-float oracle for each of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import reference
import unswayed
from unswayed import Loss, info

Oracle = Callable[[Any, int], float]

SPECS = [
    "ce",
    "mae",
    "mae(scale=0.001)",
    "focal",
    "focal(gamma=0)",
    "focal(gamma=5)",
    "rce",
    "rce(A=-9.21)",
    "sce",
    "sce(alpha=0, beta=0.5, A=-1)",
    "gce",
    "gce(q=0.01)",
    "gce(q=1)",
    "taylor_ce",
    "taylor_ce(t=1)",
    "taylor_ce(t=9)",
    "js",
    "js(pi=0.001)",
    "js(pi=0.999)",
    "gjs",
    "gjs(pi=0.1)",
    "phuber_ce",
    "phuber_ce(tau=1)",
    "phuber_ce(tau=1000)",
    "phuber_gce",
    "phuber_gce(q=0.1, tau=3)",
    "nce",
    "nfl",
    "nfl(gamma=0)",
    "nfl(gamma=3)",
    "ngce",
    "ngce(q=0.01)",
    "nmae",
    "nrce",
    "nnce",
    "nnce(p_min=0.01)",
    "nnfl",
    "nnfl(gamma=2, p_min=0.01)",
    "agce",
    "agce(a=0.001, q=0.1)",
    "agce(a=4, q=3)",
    "aul",
    "aul(a=1.1, q=0.5)",
    "ael",
    "ael(a=0.1)",
    "amse",
    "amse(a=1)",
    "vce",
    "vce(a=0)",
    "vce(a=0.0001)",
    "vce(a=100)",
    "vel",
    "vel(a=1.001)",
    "vel(a=100)",
    "vsl",
    "vsl(a=0.01)",
    "vsl(a=1)",
    "label_smoothing",
    "label_smoothing(loss=vce(a=1), r=-0.3)",
    "label_smoothing(loss=nce, r=1)",
    "logit_clip",
    "logit_clip(loss=gce(q=0.5), norm=0.5)",
    "logit_clip(loss=ce, norm=2.5, published=true)",
    "eps_softmax",
    "eps_softmax(loss=mae(scale=2), m=3, p_min=0)",
    "sparse",
    "sparse(loss=gce(q=0.5), temperature=0.2, p=1, weight=2)",
    "bootstrap",
    "bootstrap(loss=gce(q=0.5), beta=0.3, hard=true)",
    "forward_correction(T={T})",
    "forward_correction(loss=nce, T={T})",
    "backward_correction(T={T})",
    "backward_correction(loss=vce(a=1), T={T})",
    'bounded(loss=ce, v=5, by="linear")',
    'bounded(loss=ce, v=3, by="shift")',
    'bounded(loss=gce(q=0.5), v=4, by="linear")',
    'bounded(loss=gce(q=0.5), v=4, by="shift")',
    'bounded(loss=ael(a=1), v=2, by="base")',
    'bounded(loss=ael(a=0.2), v=3, by="linear")',
    'bounded(loss=ce - 0.5*mae(scale=1), v=4, by="linear")',
    "nce + 10*vce(a=4)",
    "ce - 0.5*mae(scale=1)",
    "0.3*nfl + nce - 2*label_smoothing(loss=nce + vce(a=1), r=0.1)",
]
"""Canonical specs; ``{T}`` stands for a transition matrix of as many classes as the test has."""

DEFAULTS = {
    name: f"{name}(T={{T}})" if any(p.name == "T" for p in info(name).params) else name
    for name in unswayed.list_losses()
    if not info(name).wants
}
"""The spec of every registered loss that depends on nothing but its call's logits and target, with its defaults."""

SYMMETRIC = ["mae", "rce", "nce", "nfl", "nfl(gamma=3)", "ngce", "nmae", "nrce", "nnce", "nnce(p_min=0.01)", "nnfl"]
DEVICES = [
    "cpu",
    *(["cuda"] if torch.cuda.is_available() else []),
    *(["mps"] if torch.backends.mps.is_available() else []),
]


def matrix(classes: int) -> list[list[float]]:
    """A transition matrix that is neither symmetric nor uniform."""
    rows = []
    for i in range(classes):
        others = [float((i + 2 * j) % 5 + 1) for j in range(classes)]
        others[i], stay = 0.0, 0.65 + 0.01 * (i % 10)
        rows.append([stay if i == j else (1 - stay) * x / sum(others) for j, x in enumerate(others)])
    return rows


def spec(template: str, classes: int) -> str:
    return template.replace("{T}", str(matrix(classes))) if "{T}" in template else template


def build(template: str, classes: int, **options: Any) -> Loss:
    return unswayed.loss(spec(template, classes), **options)


def is_smooth(loss: Loss) -> bool:
    """Whether the loss, and all losses inside it, claim to be smooth."""
    parts = [part for part in loss.modules() if isinstance(part, Loss) and not isinstance(part, unswayed.Sum)]
    return all(info(part.name).smooth for part in parts)


def draw(*shape: int, scale: float = 2.0, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Random logits, the same on every call."""
    generator = torch.Generator().manual_seed(1000 * seed + shape[-1])
    return (scale * torch.randn(*shape, generator=generator, dtype=torch.float64)).to(dtype)


def labels(*shape: int, classes: int, seed: int = 0) -> Tensor:
    return torch.randint(classes, shape, generator=torch.Generator().manual_seed(seed))


def grad(loss: Callable[[Tensor], Tensor], logits: Tensor) -> Tensor:
    """The gradient of the summed loss with respect to the logits."""
    leaf = logits.detach().clone().requires_grad_()
    (result,) = torch.autograd.grad(loss(leaf).sum(), leaf)
    return result


def at(u: float) -> list[float]:
    """Log-probabilities of two classes, the first of which has probability ``u``."""
    return [reference.log(u), math.log1p(-u) if u < 1 else -math.inf]


def oracle(loss: Loss) -> Oracle:
    """The reference of ``tests/reference.py`` for a built loss."""
    if isinstance(loss, unswayed.Sum):
        terms = [(c, oracle(part)) for c, part in zip(loss.coefficients, loss.losses, strict=True)]
        return lambda z, y: math.fsum(c * term(z, y) for c, term in terms)
    params = dict(loss.params)
    if isinstance(loss, unswayed.Bounded):
        return _bounded(loss.loss, params["v"], params["by"])
    if "loss" in params:
        params["loss"] = oracle(params["loss"])
    if isinstance(loss, unswayed.EpsSoftmax):
        return _eps_softmax(**params)
    function = reference.REFERENCES[loss.name]
    if isinstance(loss, unswayed.GJS):
        return lambda z, y: function([z], y, pi=params["pi"])
    return lambda z, y: function(z, y, **params)


def _eps_softmax(loss: Oracle, m: float, p_min: float) -> Oracle:
    def value(z: Any, y: int) -> float:
        p = reference.probabilities(z)
        p[reference.argmax(z)] += m
        return loss(at(max(p[y] / (1 + m), p_min)), 0)

    return value


def _bounded(inner: Loss, v: float, by: str) -> Oracle:
    """Bounded versions of the convex losses of ``SPECS``, from slopes written by hand."""
    loss = oracle(inner)
    slope: Callable[[float], float]
    if isinstance(inner, unswayed.CE):
        slope = lambda u: 1 / u  # noqa: E731
    elif isinstance(inner, unswayed.GCE):
        slope = lambda u: u ** (inner.q - 1)  # noqa: E731
    elif isinstance(inner, unswayed.AEL):
        slope = lambda u: math.exp(-u / inner.a) / inner.a  # noqa: E731
    else:
        assert str(inner) == "ce - 0.5*mae(scale=1)"
        slope = lambda u: 1 / u - 0.5  # noqa: E731

    def crossing(excess: Callable[[float], float], low: float, high: float) -> float:
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        return low

    if by == "linear":
        u_c = crossing(lambda u: slope(u) - v * slope(1), 1e-12, 1)
        edge = loss(at(u_c), 0)
        return lambda z, y: (
            loss(z, y) if (u := reference.probabilities(z)[y]) > u_c else edge + v * slope(1) * (u_c - u)  # the tangent
        )
    if by == "shift":
        c = crossing(lambda c: slope(c) / slope(1 + c) - v, 1e-12, 100)
        if isinstance(inner, unswayed.CE):
            return lambda z, y: -math.log(reference.probabilities(z)[y] + c)
        assert isinstance(inner, unswayed.GCE)
        return lambda z, y: (1 - (reference.probabilities(z)[y] + c) ** inner.q) / inner.q
    assert by == "base"
    assert isinstance(inner, unswayed.AEL)
    return lambda z, y: v ** -reference.probabilities(z)[y]


def values(loss: Loss, logits: Tensor, target: Tensor) -> Tensor:
    """The oracle's loss of each row."""
    one = oracle(loss)
    return torch.tensor([one(z, int(y)) for z, y in zip(logits.tolist(), target, strict=True)], dtype=torch.float64)
