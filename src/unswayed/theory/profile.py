"""A loss as a curve ``l(u)``: its slopes, its variation ratio and its shape, in float64."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from unswayed.losses.base import Loss
from unswayed.losses.expression import loss as build
from unswayed.losses.registry import info

Array = NDArray[np.float64]
Curve = Callable[[Any], Any]

# The interval is closed: its lower end is reached as closely as float64 can.
_LOWEST = 1e-300
# A plain float function only gives differences, which need room above the rounding of float64.
_LOWEST_BY_DIFFERENCES = 1e-8


class NotPointwise(TypeError):
    """A loss that is no function of the given class's probability alone, so that it has no slope ``l'(u)``.

    >>> from unswayed import theory
    >>> theory.variation_ratio("nce")
    Traceback (most recent call last):
    unswayed.theory.profile.NotPointwise: nce is no function of the given class's probability alone: it has no ...
    """


@dataclass(frozen=True)
class Profile:
    """What the theory needs to know of ``l(u)`` on ``[0, 1]``.

    ``shape`` is ``linear``, ``strictly convex``, ``convex``, ``concave`` or ``mixed``; ``at_0`` and ``at_1`` are the
    values of ``l``; ``least`` and ``largest`` bound ``|l'|``; ``exact`` tells that the ratio is a closed form.

    >>> from unswayed import theory
    >>> theory.profile("vce(a=4)").shape
    'strictly convex'
    """

    name: str
    ratio: float
    shape: str
    least: float
    largest: float
    at_0: float
    at_1: float
    exact: bool
    curve: Curve

    def value(self, u: float) -> float:
        """Return ``l(u)``."""
        return float(self.curve([u])[0][0])


def profile(loss: Loss | str | Curve) -> Profile:
    """Analyse a loss, a spec, or any Python function ``l(u)`` of a tensor or a float.

    >>> profile(lambda u: -torch.log(u + 4)).ratio
    1.25
    """
    loss = build(loss) if isinstance(loss, str) else loss
    if isinstance(loss, Loss):
        if not loss.is_pointwise:
            raise NotPointwise(
                f"{loss} is no function of the given class's probability alone: it has no slope l'(u), "
                f"and so no variation ratio"
            )
        curve, lowest = _of_loss(loss), _LOWEST
    elif callable(loss):
        curve, lowest = _of_function(loss)
    else:
        raise ValueError(f"{loss!r} is neither a loss, nor a spec, nor a function l(u)")
    return _analyse(loss, curve, lowest)


def _of_loss(loss: Loss) -> Curve:
    def curve(u: Any) -> tuple[Array, Array]:
        points = torch.as_tensor(u, dtype=torch.float64).reshape(-1)
        log_u = points.log().requires_grad_()
        values = loss.pointwise(log_u)
        (gradient,) = torch.autograd.grad(values.sum(), log_u)
        return values.detach().numpy(), (gradient / points).numpy()

    return curve


def _of_function(function: Curve) -> tuple[Curve, float]:
    def by_autograd(u: Any) -> tuple[Array, Array]:
        points = torch.as_tensor(u, dtype=torch.float64).reshape(-1).clone().requires_grad_()
        values = function(points)
        (gradient,) = torch.autograd.grad(values.sum(), points)
        return values.detach().numpy(), gradient.numpy()

    def by_differences(u: Any) -> tuple[Array, Array]:
        points = np.asarray(u, dtype=np.float64).reshape(-1)
        values = np.array([float(function(float(x))) for x in points])
        slopes = []
        for x in points:
            step = min(1e-3 * x, 1e-5)
            left, right = x - step, min(x + step, 1.0)
            slopes.append((float(function(float(right))) - float(function(float(left)))) / (right - left))
        return values, np.array(slopes)

    try:
        with warnings.catch_warnings():
            # NumPy's and Python's own functions may grumble at tensors before they fail, which is what is asked here.
            warnings.simplefilter("ignore")
            function(torch.tensor([0.3, 0.6], dtype=torch.float64))
        values, slopes = by_autograd([0.3, 0.6])
        if values.shape == slopes.shape == (2,):
            return by_autograd, _LOWEST
    except (TypeError, ValueError, RuntimeError, AttributeError):
        pass
    return by_differences, _LOWEST_BY_DIFFERENCES


def _analyse(loss: Loss | Curve, curve: Curve, lowest: float) -> Profile:
    low_end = np.logspace(math.log10(lowest), -2, 1200)
    u = np.unique(np.concatenate([low_end, np.linspace(0.01, 1, 2001), 1 - np.logspace(-12, -2, 200)]))
    values, signed = curve(u)
    name = str(loss) if isinstance(loss, Loss) else getattr(loss, "__name__", "l(u)").replace("<lambda>", "l(u)")
    if not np.isfinite(signed).all() or not np.isfinite(values).all():
        bad = u[~(np.isfinite(signed) & np.isfinite(values))][0]
        raise ValueError(f"{name}: the value or slope at u = {bad:.3g} is not finite")
    size = np.abs(signed)
    least, largest = (_refine(curve, u, int(pick), sign) for pick, sign in ((size.argmin(), 1), (size.argmax(), -1)))
    # A slope that still grows where float64 ends, as a power or a logarithm of u, grows without bound.
    growth = math.log(size[0] / size[1]) / math.log(u[1] / u[0]) if size[0] > 0 and size[1] > 0 else 0.0
    diverges = growth > (1e-6 if lowest == _LOWEST else 2e-2)
    turns = bool((signed > 1e-9 * largest).any() and (signed < -1e-9 * largest).any())
    vanishes = least <= 1e-12 * float(np.median(size))
    known = _known(loss)
    if diverges:
        largest = math.inf
    ratio = known if known is not None else math.inf if diverges or turns or vanishes else largest / least
    # And so does the value, if the slope grows as 1/u or faster.
    at_0 = math.inf if growth > 1 - (1e-6 if lowest == _LOWEST else 1e-3) else float(values[0])
    return Profile(
        name, ratio, _shape(loss, curve), 0.0 if vanishes or turns else least, largest, at_0, float(values[-1]),
        known is not None, curve,
    )  # fmt: skip


def _refine(curve: Curve, u: Array, pick: int, sign: int) -> float:
    """Return the extreme of ``|l'|`` next to a grid point, by zooming in."""
    left, right = u[max(pick - 1, 0)], u[min(pick + 1, len(u) - 1)]
    best = math.inf
    for _ in range(6):
        grid = np.linspace(left, right, 41)
        sizes = sign * np.abs(curve(grid)[1])
        place = int(sizes.argmin())
        best = min(best, float(sizes[place]))
        left, right = grid[max(place - 1, 0)], grid[min(place + 1, len(grid) - 1)]
    return sign * best


def _known(loss: Loss | Curve) -> float | None:
    """Return the closed form of the ratio, where the registry has one."""
    if not isinstance(loss, Loss) or not hasattr(loss, "name"):
        return None
    try:
        entry = info(loss.name)
    except ValueError:
        return None
    return None if entry.ratio_of is None else entry.ratio_of(loss.params)


def _shape(loss: Loss | Curve, curve: Curve) -> str:
    _, slopes = curve(np.linspace(1e-6, 1, 2001))
    steps, scale = np.diff(slopes), float(np.abs(slopes).max())
    rising, falling = bool((steps > -1e-9 * scale).all()), bool((steps < 1e-9 * scale).all())
    if rising and falling and abs(slopes[-1] - slopes[0]) <= 1e-7 * scale:
        return "linear"
    if rising:
        return "strictly convex" if (steps > 1e-13 * scale).all() else "convex"
    return "concave" if falling else "mixed"


def variation_ratio(loss: Loss | str | Curve) -> float:
    """Return ``v = sup|l'| / inf|l'|`` on the closed interval: a closed form where one is known, else numeric.

    ``inf`` when the slope diverges or vanishes. A loss that is no function of ``u`` alone raises :class:`NotPointwise`
    (the normalised losses that are scaled MAE have ratio 1).

    >>> variation_ratio("vce(a=4)"), variation_ratio("ce")
    (1.25, inf)
    """
    loss = build(loss) if isinstance(loss, str) else loss
    known = _known(loss)
    return known if known is not None else profile(loss).ratio
