"""Every loss from its formula in plain floats and loops: the oracle the real losses are tested against.

A reference takes the logits of ONE example and a class y (its given label) and returns L(p, y), where
p = softmax(logits). There are no clamps, except where a clamp is part of the definition (nnce, nnfl), and no
checks of parameters. Plain floats are the limit: a probability below about 1e-323 is 0, and 1 - p_y has no
digits left where p_y rounds to 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

Logits = Sequence[float]
Loss = Callable[[Logits, int], float]
Matrix = Sequence[Sequence[float]]


def probabilities(logits: Logits) -> list[float]:
    """p_k = exp(z_k) / sum_j exp(z_j)."""
    top = max(logits)
    exponentials = [math.exp(z - top) for z in logits]
    total = math.fsum(exponentials)
    return [e / total for e in exponentials]


def log_probabilities(logits: Logits) -> list[float]:
    """log p_k = z_k - log sum_j exp(z_j)."""
    top = max(logits)
    log_total = math.log(math.fsum(math.exp(z - top) for z in logits))
    return [z - top - log_total for z in logits]


def log(x: float) -> float:
    """log x, with log 0 = -inf."""
    return math.log(x) if x > 0 else -math.inf


def argmax(values: Sequence[float]) -> int:
    """Index of the largest value, the first one when several are equal."""
    best = 0
    for k in range(len(values)):
        if values[k] > values[best]:
            best = k
    return best


def l2_norm(values: Sequence[float]) -> float:
    """sqrt(sum_k v_k^2)."""
    return math.sqrt(math.fsum(v * v for v in values))


def soft(reference: Callable[..., float], logits: Logits, q: Sequence[float], **params: object) -> float:
    """Expected loss under a soft label q: sum_k q_k L(p, k)."""
    total = 0.0
    for k in range(len(q)):
        total += q[k] * reference(logits, k, **params)
    return total


# Basic losses


def ce(logits: Logits, y: int) -> float:
    """-log p_y."""
    return -log_probabilities(logits)[y]


def mae(logits: Logits, y: int, *, scale: float) -> float:
    """scale * (1 - p_y)."""
    return scale * (1 - probabilities(logits)[y])


def focal(logits: Logits, y: int, *, gamma: float) -> float:
    """-(1 - p_y)^gamma log p_y."""
    return -((1 - probabilities(logits)[y]) ** gamma) * log_probabilities(logits)[y]


def rce(logits: Logits, y: int, *, A: float) -> float:
    """-sum_k p_k log e_y[k], where log 0 is A: -A sum_{k != y} p_k."""
    p = probabilities(logits)
    total = 0.0
    for k in range(len(p)):
        if k != y:
            total += -A * p[k]
    return total


def sce(logits: Logits, y: int, *, alpha: float, beta: float, A: float) -> float:
    """alpha * CE + beta * RCE."""
    return alpha * ce(logits, y) + beta * rce(logits, y, A=A)


def gce(logits: Logits, y: int, *, q: float) -> float:
    """(1 - p_y^q) / q."""
    return (1 - probabilities(logits)[y] ** q) / q


# Normalised losses


def nce(logits: Logits, y: int) -> float:
    """log p_y / sum_k log p_k."""
    log_p = log_probabilities(logits)
    return log_p[y] / math.fsum(log_p)


def nfl(logits: Logits, y: int, *, gamma: float) -> float:
    """FL_y / sum_k FL_k, FL_k = -(1 - p_k)^gamma log p_k."""
    total = 0.0
    for k in range(len(logits)):
        total += focal(logits, k, gamma=gamma)
    return focal(logits, y, gamma=gamma) / total


def ngce(logits: Logits, y: int, *, q: float) -> float:
    """(1 - p_y^q) / (K - sum_k p_k^q)."""
    p = probabilities(logits)
    return (1 - p[y] ** q) / (len(p) - math.fsum(p_k**q for p_k in p))


def nmae(logits: Logits, y: int) -> float:
    """(1 - p_y) / (K - 1)."""
    return (1 - probabilities(logits)[y]) / (len(logits) - 1)


def nrce(logits: Logits, y: int) -> float:
    """RCE_y / sum_k RCE_k, in which A cancels."""
    total = 0.0
    for k in range(len(logits)):
        total += rce(logits, k, A=-1.0)
    return rce(logits, y, A=-1.0) / total


# Asymmetric and negative losses


def agce(logits: Logits, y: int, *, a: float, q: float) -> float:
    """[(a + 1)^q - (a + p_y)^q] / q."""
    return ((a + 1) ** q - (a + probabilities(logits)[y]) ** q) / q


def aul(logits: Logits, y: int, *, a: float, q: float) -> float:
    """[(a - p_y)^q - (a - 1)^q] / q."""
    return ((a - probabilities(logits)[y]) ** q - (a - 1) ** q) / q


def ael(logits: Logits, y: int, *, a: float) -> float:
    """exp(-p_y / a)."""
    return math.exp(-probabilities(logits)[y] / a)


def amse(logits: Logits, y: int, *, a: float) -> float:
    """(1 / K) sum_k (p_k - a [k = y])^2."""
    p = probabilities(logits)
    total = 0.0
    for k in range(len(p)):
        target = a if k == y else 0.0
        total += (p[k] - target) ** 2
    return total / len(p)


def nnce(logits: Logits, y: int, *, p_min: float) -> float:
    """1 - (A + log p_y) / sum_k (A + log p_k), p_k at least p_min, A = -log p_min."""
    A = -math.log(p_min)
    terms = [A + math.log(max(p_k, p_min)) for p_k in probabilities(logits)]
    return 1 - terms[y] / math.fsum(terms)


def nnfl(logits: Logits, y: int, *, gamma: float, p_min: float) -> float:
    """1 - (A - FL_y) / sum_k (A - FL_k), FL = -(1 - p)^gamma log p, p at least p_min, A = FL at p_min."""
    A = -((1 - p_min) ** gamma) * math.log(p_min)
    terms = []
    for p_k in probabilities(logits):
        p_k = max(p_k, p_min)
        terms.append(A + (1 - p_k) ** gamma * math.log(p_k))
    return 1 - terms[y] / math.fsum(terms)


# Other losses


def taylor_ce(logits: Logits, y: int, *, t: int) -> float:
    """sum_{i=1..t} (1 - p_y)^i / i."""
    p_y = probabilities(logits)[y]
    total = 0.0
    for i in range(1, t + 1):
        total += (1 - p_y) ** i / i
    return total


def js(logits: Logits, y: int, *, pi: float) -> float:
    """[-pi log s + w (p_y log(p_y / s) - (1 - p_y) log w)] / Z, w = 1 - pi, s = pi + w p_y, Z = -w log w."""
    p_y = probabilities(logits)[y]
    w = 1 - pi
    s = pi + w * p_y
    p_log_ratio = p_y * math.log(p_y / s) if p_y > 0 else 0.0
    return (-pi * math.log(s) + w * (p_log_ratio - (1 - p_y) * math.log(w))) / (-w * math.log(w))


def gjs(logits: Sequence[Logits], y: int, *, pi: float) -> float:
    """sum_i pi_i KL(d_i || m) / Z, m = sum_i pi_i d_i, Z = -(1 - pi) log(1 - pi).

    d_0 is the label e_y with weight pi; d_1 .. d_M are the M predictions with weight (1 - pi) / M each.
    """
    classes = len(logits[0])
    distributions = [[1.0 if k == y else 0.0 for k in range(classes)]]
    weights = [pi]
    for prediction in logits:
        distributions.append(probabilities(prediction))
        weights.append((1 - pi) / len(logits))
    mean = [0.0] * classes
    for weight, d in zip(weights, distributions, strict=True):
        for k in range(classes):
            mean[k] += weight * d[k]
    total = 0.0
    for weight, d in zip(weights, distributions, strict=True):
        for k in range(classes):
            if d[k] > 0:
                total += weight * d[k] * math.log(d[k] / mean[k])
    return total / (-(1 - pi) * math.log(1 - pi))


def phuber_ce(logits: Logits, y: int, *, tau: float) -> float:
    """-log p_y where p_y > 1/tau; its tangent at 1/tau, -tau p_y + log tau + 1, below."""
    p_y = probabilities(logits)[y]
    if p_y <= 1 / tau:
        return -tau * p_y + math.log(tau) + 1
    return -math.log(p_y)


def phuber_gce(logits: Logits, y: int, *, q: float, tau: float) -> float:
    """GCE where p_y > u = tau^(1/(q-1)); its tangent at u, -tau p_y + tau u + (1 - u^q)/q, below."""
    p_y = probabilities(logits)[y]
    u = tau ** (1 / (q - 1))
    if p_y <= u:
        return -tau * p_y + tau * u + (1 - u**q) / q
    return (1 - p_y**q) / q


# Variation-bounded losses


def vce(logits: Logits, y: int, *, a: float) -> float:
    """-log(p_y + a)."""
    return -log(probabilities(logits)[y] + a)


def vel(logits: Logits, y: int, *, a: float) -> float:
    """a^(-p_y)."""
    return a ** -probabilities(logits)[y]


def vsl(logits: Logits, y: int, *, a: float) -> float:
    """[log(a p_y + 1) - log 2]^2 / a."""
    return (math.log(a * probabilities(logits)[y] + 1) - math.log(2)) ** 2 / a


# Losses around a loss


def label_smoothing(logits: Logits, y: int, *, loss: Loss, r: float) -> float:
    """(1 - r) L(p, y) + (r / K) sum_k L(p, k); the sum includes y, and r may be negative."""
    total = 0.0
    for k in range(len(logits)):
        total += loss(logits, k)
    return (1 - r) * loss(logits, y) + r / len(logits) * total


def logit_clip(logits: Logits, y: int, *, loss: Loss, norm: float, published: bool = False) -> float:
    """L at z where ||z||_2 <= norm (1 / norm in public code), at norm * z / ||z||_2 otherwise."""
    length = l2_norm(logits)
    if length <= (1 / norm if published else norm):
        return loss(logits, y)
    return loss([norm * z / length for z in logits], y)


def eps_softmax(logits: Logits, y: int, *, loss: Loss, m: float) -> float:
    """L of the probabilities (p + m e_argmax) / (1 + m)."""
    p = probabilities(logits)
    p[argmax(logits)] += m
    return loss([log(p_k / (1 + m)) for p_k in p], y)


def sparse(logits: Logits, y: int, *, loss: Loss, temperature: float, p: float, weight: float) -> float:
    """L(u, y) + weight * sum_k softmax(u)_k^p, u = z / ||z||_2 / temperature (u = 0 where z = 0)."""
    length = l2_norm(logits)
    scaled = [z / length / temperature if length > 0 else 0.0 for z in logits]
    penalty = 0.0
    for p_k in probabilities(scaled):
        penalty += p_k**p
    return loss(scaled, y) + weight * penalty


def bootstrap(logits: Logits, y: int, *, loss: Loss, beta: float, hard: bool) -> float:
    """beta L(p, y) + (1 - beta) sum_k t_k L(p, k), t = p (soft) or e_argmax (hard)."""
    if hard:
        return beta * loss(logits, y) + (1 - beta) * loss(logits, argmax(logits))
    return beta * loss(logits, y) + (1 - beta) * soft(loss, logits, probabilities(logits))


def forward_correction(logits: Logits, y: int, *, loss: Loss, T: Matrix) -> float:
    """L of the probabilities p^T T, T_ij = P(given label j | true label i)."""
    p = probabilities(logits)
    log_given = []
    for j in range(len(p)):
        log_given.append(log(math.fsum(p[i] * T[i][j] for i in range(len(p)))))
    return loss(log_given, y)


def backward_correction(logits: Logits, y: int, *, loss: Loss, T: Matrix) -> float:
    """sum_k (T^-1)_{y,k} L(p, k)."""
    return soft(loss, logits, inverse(T)[y])


def inverse(matrix: Matrix) -> list[list[float]]:
    """Inverse by Gauss-Jordan elimination with the largest pivot of each column."""
    size = len(matrix)
    rows = [[float(x) for x in matrix[i]] + [float(i == j) for j in range(size)] for i in range(size)]
    for column in range(size):
        pivot = column
        for i in range(column, size):
            if abs(rows[i][column]) > abs(rows[pivot][column]):
                pivot = i
        rows[column], rows[pivot] = rows[pivot], rows[column]
        divisor = rows[column][column]
        rows[column] = [x / divisor for x in rows[column]]
        for i in range(size):
            if i != column:
                factor = rows[i][column]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[column], strict=True)]
    return [row[size:] for row in rows]


# Losses that change while they train: what they remember comes in and goes out


def ogc(logits: Logits, y: int, *, loss: Loss, edge: float) -> float:
    """L where p_y > edge, and its tangent at edge where not (the slope from a central difference)."""
    p_y = probabilities(logits)[y]
    if p_y > edge:
        return loss(logits, y)
    return _at(loss, edge) + _steepness(loss, edge) * (edge - p_y)


def _at(loss: Loss, u: float) -> float:
    return loss([log(u), log(1 - u)], 0)


def _steepness(loss: Loss, u: float) -> float:
    step = 1e-5 * min(u, 1 - u)
    return (_at(loss, u - step) - _at(loss, u + step)) / (2 * step)


def clip_point(
    loss: Loss, means: Sequence[float], deviations: Sequence[float], target: float, points: int = 1000
) -> float:
    """The u whose slope, as a limit of all slopes, leaves noisy examples `target` times the mean slope of clean ones.

    As it is published, but to the last digit: truncated normal densities at equally spaced -log p, and bisection.
    """
    low, high = -math.log(1 - 1e-7), -math.log(1e-7)
    grid = [low + (high - low) * i / (points - 1) for i in range(points)]
    slopes = [_steepness(loss, math.exp(-h)) for h in grid]
    densities = []
    for mean_, deviation in zip(means, deviations, strict=True):
        inside = math.erf((high - mean_) / deviation / math.sqrt(2)) - math.erf(
            (low - mean_) / deviation / math.sqrt(2)
        )
        scale = deviation * math.sqrt(2 * math.pi) * inside / 2
        densities.append([math.exp(-((h - mean_) ** 2) / (2 * deviation**2)) / scale for h in grid])

    def ratio(u: float) -> float:
        limit = _steepness(loss, u)
        clean, noisy = (
            mean([d * min(g, limit) for d, g in zip(density, slopes, strict=True)]) for density in densities
        )
        return noisy / clean * mean(densities[0]) / mean(densities[1])

    left, right = 1e-7, 1 - 1e-7
    if ratio(left) <= target:
        return 0.0
    for _ in range(40):
        middle = (left + right) / 2
        left, right = (middle, right) if ratio(middle) > target else (left, middle)
    return (left + right) / 2


def two_normals(values: Sequence[float], rounds: int = 10) -> tuple[list[float], list[float]]:
    """Means and deviations of a mixture of two normal distributions, by EM from the best split in two."""
    ordered = sorted(values)
    total, below, best, split = math.fsum(ordered), 0.0, -math.inf, 0
    for i in range(1, len(ordered)):
        below += ordered[i - 1]
        between = below**2 / i + (total - below) ** 2 / (len(ordered) - i)
        if between > best:
            best, split = between, i
    share = [[1.0 if (j < split) == (side == 0) else 0.0 for j in range(len(ordered))] for side in (0, 1)]
    before = -math.inf
    for turn in range(rounds + 1):
        sizes = [math.fsum(row) for row in share]
        means = [
            math.fsum(r * x for r, x in zip(row, ordered, strict=True)) / n for row, n in zip(share, sizes, strict=True)
        ]
        deviations = [
            math.sqrt(math.fsum(r * (x - m) ** 2 for r, x in zip(row, ordered, strict=True)) / n + 1e-3)
            for row, n, m in zip(share, sizes, means, strict=True)
        ]
        if turn == rounds:
            break
        likelihood = 0.0
        for j, x in enumerate(ordered):
            joint = [
                n / len(ordered) / s * math.exp(-((x - m) ** 2) / (2 * s**2)) / math.sqrt(2 * math.pi)
                for n, m, s in zip(sizes, means, deviations, strict=True)
            ]
            share[0][j], share[1][j] = joint[0] / sum(joint), joint[1] / sum(joint)
            likelihood += math.log(sum(joint))
        if abs(likelihood / len(ordered) - before) < 1e-3:
            rounds = turn + 1
        before = likelihood / len(ordered)
    return means, deviations


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean."""
    return math.fsum(values) / len(values)


def elr(
    logits: Logits, y: int, memory: Sequence[float], *, loss: Loss, beta: float, weight: float, p_min: float
) -> tuple[float, list[float]]:
    """L + weight log(1 - t.p) and t = beta memory + (1 - beta) p / sum(p), with p within p_min and 1 - p_min."""
    p = [min(max(p_k, p_min), 1 - p_min) for p_k in probabilities(logits)]
    t = [beta * past + (1 - beta) * p_k / math.fsum(p) for past, p_k in zip(memory, p, strict=True)]
    return loss(logits, y) + weight * math.log(1 - math.fsum(a * b for a, b in zip(t, p, strict=True))), t


def truncated_gce(
    logits: Logits, y: int, memory: tuple[int, bool], *, q: float, k: float, start: int, every: int
) -> tuple[float, tuple[int, bool]]:
    """gce(p_y) - gce(k), or 0 for who is left out, and how often it was seen and whether it is left out."""
    seen, left_out = memory
    p_y = probabilities(logits)[y]
    if seen >= start and (seen - start) % every == 0:
        left_out = p_y <= k
    value = 0.0 if left_out else (1 - p_y**q) / q - (1 - k**q) / q
    return value, (seen + 1, left_out)


REFERENCES: dict[str, Callable[..., float]] = {
    "ce": ce,
    "mae": mae,
    "focal": focal,
    "rce": rce,
    "sce": sce,
    "gce": gce,
    "nce": nce,
    "nfl": nfl,
    "ngce": ngce,
    "nmae": nmae,
    "nrce": nrce,
    "agce": agce,
    "aul": aul,
    "ael": ael,
    "amse": amse,
    "nnce": nnce,
    "nnfl": nnfl,
    "taylor_ce": taylor_ce,
    "js": js,
    "gjs": gjs,
    "phuber_ce": phuber_ce,
    "phuber_gce": phuber_gce,
    "vce": vce,
    "vel": vel,
    "vsl": vsl,
    "label_smoothing": label_smoothing,
    "logit_clip": logit_clip,
    "eps_softmax": eps_softmax,
    "sparse": sparse,
    "bootstrap": bootstrap,
    "forward_correction": forward_correction,
    "backward_correction": backward_correction,
}
