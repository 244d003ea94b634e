"""Published loss settings: which numbers a paper or its code uses on a data set, and where they disagree.

A row says what its source says. A row of the VBL paper (Variation-Bounded Loss, AAAI 2026) keeps the paper's
numbers even where all public code has others; a row of public code keeps the code's. What the other side uses
stands in ``variants``, and why in ``notes``. Keys such as APL or ANL are resolved by :data:`REPOSITORIES`.

The table is plain data and imports nothing heavy; torch is imported when :meth:`Preset.loss` builds a loss.

>>> preset("nce+vce", dataset="cifar100").spec
'5*nce + vce(a=0.4)'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from unswayed.spec import did_you_mean

if TYPE_CHECKING:
    from unswayed.losses.base import Loss

__all__ = ["PRESETS", "REPOSITORIES", "Preset", "list_presets", "preset"]

REPOSITORIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "APL": "HanxunH/Active-Passive-Losses @04bce53",
        "ALFs": "hitcszx/ALFs @61245e9",
        "ANL": "Virusdoll/Active-Negative-Loss @0c50009",
        "EPS": "cswjl/eps-softmax @f81685c",
        "JAL": "cswjl/joint-asymmetric-loss @0f9eb7b",
        "LC": "hongxin001/LogitClip @7e45730",
        "SR": "hitcszx/lnl_sr @cd3ed32",
        "GJS": "ErikEnglesson/GJS @1a3c9e0",
        "PHuber": "dmizr/phuber @56e5f71",
        "OGC": "Virusdoll/OGC @a6b342a",
        "ELR": "shengliu66/ELR @934af53",
        "TL": "AlanChou/Truncated-Loss @fef5908",
    }
)
"""The public repositories that the rows cite, with the commit that was read: ``REPOSITORIES["ANL"]``."""


@dataclass(frozen=True)
class Preset:
    """One published setting of a method on a data set.

    ``method`` is what users type (lower-case, ``+`` without spaces), ``spec`` the loss in its canonical form,
    ``source`` where the numbers come from, and ``notes`` the known disagreements and gaps. ``variants`` pairs
    a label (who publishes it, or for which noise) with another spec. ``l1`` is the weight of an L1 penalty on
    all parameters that belongs to the published setting, and ``l2`` a weight decay that belongs to this
    method rather than to the general recipe; both are matters of training, so :meth:`loss` does not contain
    them.

    >>> one = preset("vce", dataset="clothing1m")
    >>> one.spec, one.source
    ('0.1*vce(a=0.05)', 'VBL paper (AAAI 2026), appendix, parameter settings')
    """

    method: str
    dataset: str
    spec: str
    source: str
    notes: tuple[str, ...] = ()
    variants: tuple[tuple[str, str], ...] = ()
    l1: float = 0.0
    l2: float = 0.0

    def loss(self, **options: Any) -> Loss:
        """Build the loss; ``options`` such as ``reduction`` go to :func:`unswayed.loss`. Imports torch.

        >>> str(preset("nce+vce", dataset="cifar10").loss())
        'nce + 10*vce(a=4)'
        """
        from unswayed.losses.expression import loss as build

        return build(self.spec, **options)


# --- What notes have in common ----------------------------------------------------------------------------

Variants = tuple[tuple[str, str], ...]

CODE_A = "A=-9.210340371976182"
"""The RCE constant of public code, ``math.log(1e-4)``."""
PAPER_A = "A=-4"

# A note belongs to every row whose spec matches the pattern.
_LOSS_NOTES: tuple[tuple[str, str], ...] = (
    (
        r"\b[rs]ce\(.*A=",
        "Papers write A = -4, but all public code clips the one-hot label at 1e-4 and takes the natural "
        "logarithm, which makes A = ln 1e-4 = -9.2103 and the RCE term 2.3 times as large.",
    ),
    (
        r"\b(focal|nfl|nnfl)\(",
        "Public code keeps the factor (1-p)^gamma out of the gradient; only the value is the same.",
    ),
    (
        r"^mae\(",
        "MAE alone has scale 2 in ALFs, EPS and JAL code and scale 1 in APL and ANL code.",
    ),
    (
        r"(nce|nfl|ngce)[^+]* \+ [\d.*]*mae\(scale=1\)",
        "The weight multiplies 1 - p in APL, ALFs, ANL, EPS and SR code: even where MAE alone has scale 2, "
        "the weight takes the place of that scale.",
    ),
    (
        r"\bnn(ce|fl)\(",
        "p_min is part of the loss: 1e-7 in the code of its authors (ANL), 1e-8 in EPS and JAL code.",
    ),
    (
        r"\bv(ce|el|sl)\(",
        "No public code of this paper was found, so the row rests on its text alone.",
    ),
    (
        r"eps_softmax\(.*mae\(scale=2\)",
        "MAE has scale 2 here, unlike in NCE+MAE of the same repository.",
    ),
)

_L1: Mapping[str, float] = {"cifar10": 5e-5, "cifar100": 5e-6, "webvision": 6e-5}
_L1_NOTES: Mapping[str, str] = {
    "cifar10": "The paper states L1 5e-5 for every method; JAL code, by the same first author, has L1 with "
    "AMSE, NNCE and NNFL only, and L2 1e-4 with the rest.",
    "cifar100": "The paper states L1 5e-6 for every method; JAL code, by the same first author, has L1 with "
    "AMSE, NNCE (5e-7) and NNFL only, and L2 1e-5 with the rest.",
    "webvision": "The paper states L1 6e-5; ANL code has L1 5e-6, with its own losses only, and public "
    "recipes have L2 3e-5.",
}
_QUOTED = "The paper quotes the accuracy of this baseline from the ANL paper."
_ALPHA_ZERO = "The published weight of NCE is 0 on MNIST, so only the other loss is left."
_CONCAVE = "With q above 1 this AGCE is concave in p, a kind of loss that the paper elsewhere sets aside."
_ALPHA_100 = "ALFs and SR configs weigh the passive loss ten times as much."
_AUL_BUG = "AUL in EPS and JAL code is fixed to ten classes and fails on CIFAR-100."
_AT_04 = "The setting depends on the noise; the spec is the one for symmetric 0.4."
_LC_CODE = (
    "EPS and JAL code rescales the logits to delta when their norm exceeds 1/delta, not delta: published=true is that."
)
_LC_DELTA = "{} gives delta = {} without defining it; the spec takes it for the largest norm of the logits."
_LC_STRETCH = "At {0} it stretches norms from {1} to {0} up to {0}, and clips longer ones like the spec."
_LC_AXIS = "If delta was read off a 1/tau axis in the LC paper, the bound is 1/delta (plausible, unproven)."
_LC_OFFICIAL = (
    "The authors' own code (LC) tests the norm against temp but rescales to 1/temp, which is the same rule with "
    "delta = 1/temp and agrees with the definition only at temp = 1; its example for symmetric 0.5 has temp = 1.5."
)
_RATIO = (
    "VCE has ratio {} here, so the asymmetric condition holds only where the true label is at least "
    "that many times as likely as any other."
)
_FAILS = "{} here, above what the paper's own asymmetric condition allows at asymmetric {}."
_UNSCALED = "WebVision configs do not divide by Z = -(1-pi) log(1-pi), so the coefficient is Z."
_GJS_VIEWS = "Its authors draw the two views by RandAugment and cutout, which is for the recipe to say (augment)."
_ABLATION = "The table that tests VCE alone does not say which a it used."
_FIGURE = "This is the setting of the t-SNE and calibration figures, not of a table of results."


def _row(
    source: str,
    method: str,
    dataset: str,
    spec: str,
    *notes: str,
    variants: Variants = (),
    l1: float = 0.0,
    l2: float = 0.0,
) -> Preset:
    """Make a row: add the notes that follow from its losses, and the other value of A where there is one."""
    notes += tuple(text for pattern, text in _LOSS_NOTES if re.search(pattern, spec))
    if PAPER_A in spec:
        variants = (("all public code: A = ln 1e-4", spec.replace(PAPER_A, CODE_A)), *variants)
    elif CODE_A in spec:
        variants = (("A as papers write it", spec.replace(CODE_A, PAPER_A)), *variants)
    return Preset(method, dataset, spec, source, notes, variants, l1, l2)


def _paper(
    method: str,
    dataset: str,
    spec: str,
    *notes: str,
    variants: Variants = (),
    place: str = "appendix, parameter settings",
) -> Preset:
    """Make a row of the VBL paper, with the L1 penalty that it states for the data set."""
    l1 = _L1.get(dataset, 0.0)
    if l1:
        notes += (_L1_NOTES[dataset],)
    return _row(f"VBL paper (AAAI 2026), {place}", method, dataset, spec, *notes, variants=variants, l1=l1)


def _code(
    repository: str,
    method: str,
    dataset: str,
    spec: str,
    *notes: str,
    variants: Variants = (),
    l1: float = 0.0,
    l2: float = 0.0,
    what: str = "configs",
) -> Preset:
    """Make a row of public code."""
    source = f"{repository} {what} ({REPOSITORIES[repository]})"
    return _row(source, method, dataset, spec, *notes, variants=variants, l1=l1, l2=l2)


def _by_noise(template: str, values: Mapping[str, str]) -> Variants:
    """Write one spec for each noise: its label, and the template with the value for that noise."""
    return tuple((noise, template.format(value)) for noise, value in values.items())


# --- The rows ---------------------------------------------------------------------------------------------


def _vbl() -> list[Preset]:
    """The paper's own losses."""
    return [
        _paper("nce+vce", "cifar10", "nce + 10*vce(a=4)"),
        _paper(
            "nce+vce",
            "cifar100",
            "5*nce + vce(a=0.4)",
            _FAILS.format("VCE has ratio 3.5", "0.4 (1.5), though not at 0.2 (4)"),
        ),
        _paper(
            "nce+vce",
            "webvision",
            "5*nce + 0.5*vce(a=0.03)",
            _RATIO.format("34.3"),
        ),
        _paper(
            "nce+vce",
            "clothing1m",
            "nce + 0.1*vce(a=0.2)",
            _RATIO.format("6"),
        ),
        _paper("nce+vel", "cifar10", "nce + 10*vel(a=1.2)"),
        _paper(
            "nce+vel",
            "cifar100",
            "5*nce + vel(a=5)",
            _FAILS.format("VEL has ratio 5", "0.2 (4) and 0.4 (1.5)"),
        ),
        _paper("nce+vsl", "cifar10", "nce + 5*vsl(a=0.05)"),
        _paper(
            "nce+vsl",
            "cifar100",
            "5*nce + vsl(a=0.65)",
            _FAILS.format("VSL has ratio 5.945", "0.2 (4) and 0.4 (1.5)"),
        ),
        _paper("vce", "cifar10", "vce(a=5)", _FIGURE, _ABLATION, place="feature visualisation"),
        _paper(
            "vce",
            "webvision",
            "vce(a=0.015)",
            "The paper's sentence breaks off before the number that scales this loss; 1 is our choice.",
            _RATIO.format("67.7"),
        ),
        _paper(
            "vce",
            "clothing1m",
            "0.1*vce(a=0.05)",
            _RATIO.format("21"),
        ),
        _paper("vel", "cifar10", "vel(a=1.5)", _FIGURE, place="feature visualisation"),
        _paper("vsl", "cifar10", "vsl(a=0.1)", _FIGURE, place="feature visualisation"),
    ]


def _baselines() -> list[Preset]:
    """The losses that the paper compares with, on its data sets and on those its relatives add."""
    compared = "baselines"
    return [
        _code("APL", "ce", "mnist", "ce"),
        _paper("ce", "cifar10", "ce", place=compared),
        _paper("ce", "cifar100", "ce", place=compared),
        _paper("ce", "webvision", "ce", _QUOTED, place=compared),
        _paper("ce", "clothing1m", "ce", _QUOTED, place=compared),
        _code("APL", "gce", "mnist", "gce(q=0.7)"),
        _paper(
            "gce",
            "cifar10",
            "gce(q=0.9)",
            "The paper has q = 0.9; the five public repositories that were read have 0.7.",
            variants=(("APL, ANL, ALFs, EPS and JAL configs", "gce(q=0.7)"),),
        ),
        _paper("gce", "cifar100", "gce(q=0.7)"),
        _paper(
            "gce",
            "webvision",
            "gce(q=0.7)",
            "The paper, APL, ANL and EPS have q = 0.7, JAL has 0.6.",
            _QUOTED,
            variants=(("JAL configs", "gce(q=0.6)"),),
        ),
        _paper("gce", "clothing1m", "gce(q=0.6)", _QUOTED),
        _code(
            "APL",
            "sce",
            "mnist",
            f"sce(alpha=0.01, beta=1, {CODE_A})",
            variants=(("ALFs configs", f"sce(alpha=1, beta=1, {CODE_A})"),),
        ),
        _paper(
            "sce",
            "cifar10",
            "sce(alpha=0.1, beta=1, A=-4)",
            "ALFs configs keep alpha = beta = 1 on every data set.",
            variants=(("ALFs configs", f"sce(alpha=1, beta=1, {CODE_A})"),),
        ),
        _paper(
            "sce",
            "cifar100",
            "sce(alpha=6, beta=0.1, A=-4)",
            "ALFs configs keep alpha = beta = 1 on every data set.",
            variants=(("ALFs configs", f"sce(alpha=1, beta=1, {CODE_A})"),),
        ),
        _paper("sce", "webvision", "sce(alpha=10, beta=1, A=-4)", _QUOTED),
        _code(
            "EPS",
            "sce",
            "clothing1m",
            f"sce(alpha=10, beta=1, {CODE_A})",
            "JAL has the same values; the paper reports no SCE on Clothing1M.",
        ),
        _code(
            "APL",
            "nce+rce",
            "mnist",
            f"nce + 10*rce({CODE_A})",
            _ALPHA_100,
            variants=(("ALFs and SR configs", f"nce + 100*rce({CODE_A})"),),
        ),
        _paper("nce+rce", "cifar10", "nce + rce(A=-4)"),
        _paper(
            "nce+rce",
            "cifar100",
            "10*nce + 0.1*rce(A=-4)",
            _ALPHA_100,
            variants=(("ALFs and SR configs", f"10*nce + rce({CODE_A})"),),
        ),
        _paper(
            "nce+rce",
            "webvision",
            "50*nce + 0.1*rce(A=-4)",
            "The paper does not repeat A for NCE+RCE on WebVision; -4 is what it says everywhere else.",
            _QUOTED,
        ),
        _paper("nce+rce", "clothing1m", "10*nce + rce(A=-4)", _QUOTED),
        _code("ALFs", "nce+agce", "mnist", "agce(a=4, q=0.2)", _ALPHA_ZERO),
        _paper("nce+agce", "cifar10", "nce + 4*agce(a=6, q=1.5)", _CONCAVE),
        _paper("nce+agce", "cifar100", "10*nce + 0.1*agce(a=1.8, q=3)", _CONCAVE),
        _paper("nce+agce", "webvision", "50*nce + 0.1*agce(a=2.5, q=3)", _CONCAVE, _QUOTED),
        _code(
            "EPS",
            "nce+agce",
            "clothing1m",
            "50*nce + 0.1*agce(a=2.5, q=3)",
            "JAL has the same values; the paper reports no NCE+AGCE on Clothing1M.",
        ),
        _paper(
            "lc",
            "cifar10",
            "logit_clip(loss=ce, norm=2.5, published=false)",
            _LC_DELTA.format("The paper", 2.5),
            _LC_CODE,
            _LC_STRETCH.format(2.5, 0.4),
            _LC_AXIS,
            _LC_OFFICIAL,
            variants=(
                ("as published (EPS and JAL code)", "logit_clip(loss=ce, norm=2.5, published=true)"),
                ("delta read as 1/tau", "logit_clip(loss=ce, norm=0.4, published=false)"),
                *_by_noise(
                    "logit_clip(loss=ce, norm={}, published=true)",
                    {
                        "as published, symmetric below 0.5 (EPS)": "1",
                        "as published, symmetric 0.5 and above (EPS)": "1.5",
                        "as published, instance-dependent (EPS)": "2",
                    },
                ),
            ),
        ),
        _paper(
            "lc",
            "cifar100",
            "logit_clip(loss=ce, norm=0.5, published=false)",
            _LC_DELTA.format("The paper", 0.5),
            _LC_CODE,
            "At 0.5 it leaves norms up to 2 alone and shrinks the larger ones to 0.5.",
            _LC_AXIS,
            _LC_OFFICIAL,
            "A norm of 0.5 at 100 classes keeps every probability of the label between 0.006 and 0.016.",
            variants=(
                ("as published (EPS and JAL code)", "logit_clip(loss=ce, norm=0.5, published=true)"),
                ("delta read as 1/tau", "logit_clip(loss=ce, norm=2, published=false)"),
                ("as published, not symmetric (EPS)", "logit_clip(loss=ce, norm=2.5, published=true)"),
            ),
        ),
        _code(
            "EPS",
            "lc",
            "webvision",
            "logit_clip(loss=ce, norm=1.2, published=true)",
            _LC_DELTA.format("EPS code", 1.2),
            _LC_CODE,
            _LC_STRETCH.format(1.2, 0.83),
            variants=(("as written: the definition", "logit_clip(loss=ce, norm=1.2, published=false)"),),
        ),
        _code("ANL", "nce+nnce", "mnist", "nce + nnce(p_min=1e-07)", l1=1e-6),
        _paper(
            "nce+nnce",
            "cifar10",
            "5*nce + 5*nnce(p_min=1e-07)",
            variants=(("p_min of EPS and JAL code", "5*nce + 5*nnce(p_min=1e-08)"),),
        ),
        _paper(
            "nce+nnce",
            "cifar100",
            "10*nce + nnce(p_min=1e-07)",
            "ANL configs have L1 5e-7 with this loss, a tenth of what the paper states.",
            variants=(("p_min of EPS and JAL code", "10*nce + nnce(p_min=1e-08)"),),
        ),
        _paper("nce+nnce", "webvision", "20*nce + nnce(p_min=1e-07)", _QUOTED),
        _paper(
            "nce+nnce",
            "clothing1m",
            "5*nce + 0.1*nnce(p_min=1e-07)",
            "The L1 weight that belongs to ANL is published nowhere for Clothing1M, so the row has none.",
            _QUOTED,
            variants=(("p_min of EPS and JAL code", "5*nce + 0.1*nnce(p_min=1e-08)"),),
        ),
        _code("ANL", "nfl+nnfl", "mnist", "nfl(gamma=0.5) + nnfl(gamma=0.5, p_min=1e-07)", l1=1e-6),
        _code("ANL", "nfl+nnfl", "cifar10", "5*nfl(gamma=0.5) + 5*nnfl(gamma=0.5, p_min=1e-07)", l1=5e-5),
        _code("ANL", "nfl+nnfl", "cifar100", "10*nfl(gamma=0.5) + nnfl(gamma=0.5, p_min=1e-07)", l1=5e-7),
        _paper(
            "nfl+nnfl",
            "webvision",
            "20*nfl(gamma=0.5) + nnfl(gamma=0.5, p_min=1e-07)",
            "The paper gives the weights only; gamma = 0.5 is what all public code has.",
            _QUOTED,
        ),
        _code(
            "EPS",
            "nfl+nnfl",
            "clothing1m",
            "5*nfl(gamma=0.5) + 0.1*nnfl(gamma=0.5, p_min=1e-08)",
            "Neither the paper nor ANL configs have this on Clothing1M; the weights are those of NCE+NNCE.",
            "The L1 weight that belongs to ANL is published nowhere for Clothing1M, so the row has none.",
            variants=(("p_min of ANL code", "5*nfl(gamma=0.5) + 0.1*nnfl(gamma=0.5, p_min=1e-07)"),),
            what="and JAL configs",
        ),
    ]


def _active_passive() -> list[Preset]:
    """Focal and normalised losses, and the sums of an active and a passive loss (APL)."""
    ngce_rce = "The APL configs named NGCE+RCE build NGCE+MAE {}."
    return [
        _code("APL", "focal", "mnist", "focal(gamma=0.5)"),
        _code("APL", "focal", "cifar10", "focal(gamma=0.5)"),
        _code("APL", "focal", "cifar100", "focal(gamma=0.5)"),
        _code("EPS", "focal", "webvision", "focal(gamma=0.5)"),
        _code("EPS", "focal", "clothing1m", "focal(gamma=0.5)"),
        *(
            _code("ALFs", "mae", dataset, "mae(scale=2)", variants=(("APL and ANL configs", "mae(scale=1)"),))
            for dataset in ("mnist", "cifar10", "cifar100")
        ),
        _code(
            "APL",
            "nce",
            "mnist",
            "10*nce",
            "Only APL multiplies NCE by 10 on MNIST.",
            variants=(("other public configs", "nce"),),
        ),
        _paper("nce", "cifar10", "nce", place="ablation table"),
        _paper("nce", "cifar100", "nce", place="ablation table"),
        _code("APL", "nfl", "mnist", "nfl(gamma=0.5)"),
        _code(
            "APL",
            "nfl",
            "cifar10",
            "10*nfl(gamma=0.5)",
            "APL multiplies NFL by 10 on symmetric noise only.",
            variants=(("APL configs, asymmetric noise; other public configs", "nfl(gamma=0.5)"),),
        ),
        _code("APL", "nfl", "cifar100", "nfl(gamma=0.5)"),
        _code(
            "APL",
            "ngce",
            "mnist",
            "10*ngce(q=0.1)",
            "APL multiplies NGCE by 10 on symmetric noise only.",
            variants=(("APL configs, asymmetric noise", "ngce(q=0.1)"), ("ALFs configs", "ngce(q=0.7)")),
        ),
        _code("APL", "ngce", "cifar10", "ngce(q=0.1)", variants=(("ALFs configs", "ngce(q=0.7)"),)),
        _code("APL", "ngce", "cifar100", "ngce(q=0.7)"),
        _code(
            "APL",
            "nce+mae",
            "mnist",
            "nce + 10*mae(scale=1)",
            "ALFs configs weigh MAE ten times as much.",
            variants=(("ALFs configs", "nce + 100*mae(scale=1)"),),
        ),
        _code("APL", "nce+mae", "cifar10", "nce + mae(scale=1)"),
        _code(
            "APL",
            "nce+mae",
            "cifar100",
            "10*nce + mae(scale=1)",
            "ALFs and SR agree with APL; ANL, EPS and JAL weigh MAE a tenth as much.",
            variants=(("ANL and EPS configs", "10*nce + 0.1*mae(scale=1)"),),
        ),
        _code("APL", "nce+mae", "webvision", "50*nce + mae(scale=1)"),
        _code("APL", "nfl+mae", "mnist", "nfl(gamma=0.5) + 10*mae(scale=1)"),
        _code("APL", "nfl+mae", "cifar10", "nfl(gamma=0.5) + mae(scale=1)"),
        _code("APL", "nfl+mae", "cifar100", "10*nfl(gamma=0.5) + mae(scale=1)"),
        _code("APL", "nfl+mae", "webvision", "50*nfl(gamma=0.5) + mae(scale=1)"),
        _code(
            "APL",
            "nfl+rce",
            "mnist",
            f"nfl(gamma=0.5) + 10*rce({CODE_A})",
            _ALPHA_100,
            variants=(("ALFs and SR configs", f"nfl(gamma=0.5) + 100*rce({CODE_A})"),),
        ),
        _code("APL", "nfl+rce", "cifar10", f"nfl(gamma=0.5) + rce({CODE_A})"),
        _code(
            "APL",
            "nfl+rce",
            "cifar100",
            f"10*nfl(gamma=0.5) + 0.1*rce({CODE_A})",
            _ALPHA_100,
            variants=(("ALFs and SR configs", f"10*nfl(gamma=0.5) + rce({CODE_A})"),),
        ),
        _code("APL", "nfl+rce", "webvision", f"50*nfl(gamma=0.5) + 0.1*rce({CODE_A})"),
        _code("APL", "ngce+mae", "mnist", "ngce(q=0.1) + 10*mae(scale=1)"),
        _code("APL", "ngce+mae", "cifar10", "ngce(q=0.1) + mae(scale=1)"),
        _code("APL", "ngce+mae", "cifar100", "10*ngce(q=0.7) + mae(scale=1)"),
        _code("APL", "ngce+rce", "mnist", f"ngce(q=0.1) + 10*rce({CODE_A})"),
        _code(
            "APL",
            "ngce+rce",
            "cifar10",
            f"ngce(q=0.1) + rce({CODE_A})",
            ngce_rce.format("for asymmetric noise on CIFAR-10"),
            variants=(("APL configs, asymmetric noise, as they run", "ngce(q=0.1) + mae(scale=1)"),),
        ),
        _code(
            "APL",
            "ngce+rce",
            "cifar100",
            f"10*ngce(q=0.7) + 0.1*rce({CODE_A})",
            ngce_rce.format("on CIFAR-100, whatever the noise"),
            variants=(("APL configs, as they run", "10*ngce(q=0.7) + 0.1*mae(scale=1)"),),
        ),
    ]


def _asymmetric() -> list[Preset]:
    """Asymmetric losses, alone and with NCE (ALFs), and the joint asymmetric losses (JAL)."""
    return [
        _code("ALFs", "agce", "mnist", "agce(a=4, q=0.2)"),
        _code("ALFs", "agce", "cifar10", "agce(a=0.6, q=0.6)"),
        _code("ALFs", "agce", "cifar100", "agce(a=0.6, q=0.6)"),
        _code("EPS", "agce", "webvision", "agce(a=1e-05, q=0.5)", "JAL has the same values."),
        _code("EPS", "agce", "clothing1m", "agce(a=1e-05, q=0.5)", "JAL has the same values."),
        _code("ALFs", "aul", "mnist", "aul(a=3, q=0.1)"),
        _code("ALFs", "aul", "cifar10", "aul(a=5.5, q=3)"),
        _code("ALFs", "aul", "cifar100", "aul(a=5.5, q=3)"),
        _code("ALFs", "ael", "mnist", "ael(a=3.5)"),
        _code("ALFs", "ael", "cifar10", "ael(a=2.5)"),
        _code("ALFs", "ael", "cifar100", "ael(a=2.5)"),
        _code("ALFs", "nce+aul", "mnist", "aul(a=3, q=0.1)", _ALPHA_ZERO),
        _code("ALFs", "nce+aul", "cifar10", "nce + 4*aul(a=6.3, q=1.5)"),
        _code("ALFs", "nce+aul", "cifar100", "10*nce + 0.015*aul(a=6, q=3)", _AUL_BUG),
        _code("ALFs", "nce+ael", "mnist", "ael(a=3.5)", _ALPHA_ZERO),
        _code("ALFs", "nce+ael", "cifar10", "nce + 4*ael(a=5)"),
        _code("ALFs", "nce+ael", "cifar100", "10*nce + 0.1*ael(a=1.5)"),
        *(
            _code("JAL", method, dataset, spec.format(active), l1=l1, l2=l2)
            for method, active in (("nce+amse", "nce"), ("nfl+amse", "nfl(gamma=0.5)"))
            for dataset, spec, l1, l2 in (
                ("cifar10", "{} + amse(a=30)", 5e-5, 0.0),
                ("cifar100", "5*{} + amse(a=20)", 5e-6, 0.0),
                ("webvision", "50*{} + amse(a=30)", 0.0, 3e-5),
                ("clothing1m", "5*{} + 0.1*amse(a=5)", 0.0, 1e-3),
            )
        ),
    ]


def _divergences() -> list[Preset]:
    """Jensen-Shannon losses and partially Huberised losses."""
    js, gjs, z = "js(pi={})", "gjs(pi={}, views=2)", "0.09482446409204366"
    decay = "L2 is the authors' for symmetric noise; for asymmetric noise they have {}."
    return [
        _code(
            "GJS",
            "js",
            "cifar10",
            js.format("0.7"),
            _AT_04,
            decay.format("1e-3"),
            variants=_by_noise(
                js,
                {
                    "symmetric 0": "0.1",
                    "symmetric 0.2": "0.7",
                    "symmetric 0.6": "0.9",
                    "symmetric 0.8": "0.9",
                    "asymmetric": "0.3",
                },
            ),
            l2=5e-4,
        ),
        _code(
            "GJS",
            "js",
            "cifar100",
            js.format("0.3"),
            _AT_04,
            decay.format("1e-4 too"),
            variants=_by_noise(
                js,
                {
                    "symmetric 0": "0.1",
                    "symmetric 0.2": "0.1",
                    "symmetric 0.6": "0.5",
                    "symmetric 0.8": "0.3",
                    "asymmetric": "0.5",
                },
            ),
            l2=1e-4,
        ),
        _code(
            "GJS",
            "js",
            "webvision",
            f"{z}*js(pi=0.1)",
            _UNSCALED,
            variants=(("scaled as on CIFAR", "js(pi=0.1)"),),
        ),
        _code(
            "GJS",
            "gjs",
            "cifar10",
            gjs.format("0.9"),
            _AT_04,
            _GJS_VIEWS,
            decay.format("1e-3"),
            variants=_by_noise(
                gjs,
                {
                    "symmetric 0": "0.5",
                    "symmetric 0.2": "0.3",
                    "symmetric 0.6": "0.1",
                    "symmetric 0.8": "0.1",
                    "asymmetric": "0.3",
                },
            ),
            l2=5e-4,
        ),
        _code(
            "GJS",
            "gjs",
            "cifar100",
            gjs.format("0.5"),
            _AT_04,
            _GJS_VIEWS,
            decay.format("1e-4"),
            variants=_by_noise(
                gjs,
                {
                    "symmetric 0": "0.3",
                    "symmetric 0.2": "0.3",
                    "symmetric 0.6": "0.9",
                    "symmetric 0.8": "0.1",
                    "asymmetric 0.2": "0.5",
                    "asymmetric 0.4": "0.1",
                },
            ),
            l2=5e-5,
        ),
        _code(
            "GJS",
            "gjs",
            "webvision",
            f"{z}*gjs(pi=0.1, views=2)",
            _UNSCALED,
            _GJS_VIEWS,
            variants=(("scaled as on CIFAR", "gjs(pi=0.1, views=2)"),),
        ),
        _code("PHuber", "phuber_ce", "mnist", "phuber_ce(tau=10)", what="README, results"),
        _code("PHuber", "phuber_ce", "cifar10", "phuber_ce(tau=2)", what="README, results"),
        _code(
            "PHuber",
            "phuber_ce",
            "cifar100",
            "phuber_ce(tau=10)",
            "The README reports two values of tau on CIFAR-100, 10 and 50; 10 is the default of the code.",
            variants=(("PHuber README, results", "phuber_ce(tau=50)"),),
            what="README, results",
        ),
        *(
            _code("PHuber", "phuber_gce", dataset, "phuber_gce(q=0.7, tau=10)", what="README, results")
            for dataset in ("mnist", "cifar10", "cifar100")
        ),
    ]


def _wrapped() -> list[Preset]:
    """Losses around losses: epsilon-softmax and sparse regularisation."""
    eps = "{}*eps_softmax(loss=ce, m={}, p_min=1e-08) + {}mae(scale=2)"
    high, low = eps.format("{}", "10000", ""), eps.format("{}", "100", "")
    grows = "The authors multiply the weight by {} as training goes on; a spec holds only the first value."
    unnormalised = "The authors do not normalise the logits on MNIST; our sparse loss does."
    focal = "focal(gamma=0.5)"
    mnist, cifar10, cifar100 = ("2 every 5 epochs", "1.03 every epoch", "1.02 every epoch")
    rows = [
        _code(
            "EPS",
            "eps_softmax+mae",
            "cifar10",
            eps.format("0.01", "100000", "5*"),
            "The setting depends on the kind of noise, not its rate; the spec is that for symmetric noise.",
            variants=(
                ("asymmetric", eps.format("0.02", "1000", "5*")),
                ("dependent", eps.format("0.045", "100000", "10*")),
            ),
        ),
        _code(
            "EPS",
            "eps_softmax+mae",
            "cifar100",
            high.format("0.03"),
            _AT_04,
            "Instance-dependent noise has the values of symmetric noise of the same rate.",
            "The weight at symmetric 0.6 is out of line with its neighbours and may be a slip for 0.0125.",
            variants=(
                *_by_noise(
                    high,
                    {
                        "symmetric 0": "0.1",
                        "symmetric 0.2": "0.05",
                        "symmetric 0.6": "0.00125",
                        "symmetric 0.8": "0.0075",
                    },
                ),
                *_by_noise(
                    low,
                    {
                        "asymmetric 0.1": "0.015",
                        "asymmetric 0.2": "0.007",
                        "asymmetric 0.3": "0.005",
                        "asymmetric 0.4": "0.004",
                    },
                ),
            ),
        ),
        _code("EPS", "eps_softmax+mae", "webvision", eps.format("0.015", "1000", "0.3*")),
        _code("EPS", "eps_softmax+mae", "clothing1m", eps.format("0.012", "1000", "0.1*")),
    ]
    for method, inner, temperature, weight in (
        ("ce+sr", "ce", "0.1", "4"),
        ("focal+sr", focal, "0.1", "4"),
        ("gce+sr", "gce(q=0.01)", "0.5", "3"),
    ):
        spec = f"sparse(loss={inner}, temperature={temperature}, p=0.1, weight={weight})"
        rows.append(_code("SR", method, "mnist", spec, grows.format(mnist), unnormalised))
    for method, inner in (("ce+sr", "ce"), ("focal+sr", focal), ("gce+sr", "gce(q=0.01)")):
        spec = f"sparse(loss={inner}, temperature=0.5, p=0.1, weight=1.2)"
        rows.append(_code("SR", method, "cifar10", spec, grows.format(cifar10)))
    for method, inner in (("ce+sr", "ce"), ("focal+sr", focal), ("gce+sr", "gce(q=0.001)")):
        template = f"sparse(loss={inner}, temperature=0.5, p=0.01, weight={{}})"
        rows.append(
            _code(
                "SR",
                method,
                "cifar100",
                template.format("4"),
                "The config says weight 10, but the training script replaces it: by 4 for symmetric noise "
                "(the spec), by 10 for asymmetric noise.",
                grows.format(cifar100),
                variants=(("asymmetric", template.format("10")),),
            )
        )
    return rows


def _adaptive() -> list[Preset]:
    """Losses that change while they train."""
    ogc = "ogc(loss={}, budget={}, every=32, window=4096)"
    elr = "elr(loss=ce, beta={}, weight={}, p_min=0.0001)"
    continuous = (
        "OGC code leaves a step at the threshold of focal loss and GCE (the gradient is right); here there is none."
    )
    steps = "OGC code finds the threshold to 0.001, by ten halvings, and never clips the slope of CE above about 1000."
    rows = []
    for data, rate in (("cifar10", "0.01, where OGC scripts have 0.1"), ("cifar100", "0.1, as in OGC scripts")):
        rows.append(
            _paper(
                "ogc",
                data,
                ogc.format("ce", 5),
                f"The budget is multiplied by the learning rate, which is {rate}.",
                steps,
                variants=(
                    ("noise of 0.6 and 0.8", ogc.format("ce", 1)),
                    ("as published (OGC scripts)", ogc.format("ce", 20)),
                ),
            )
        )
        rows += [
            _code("OGC", f"{name}+ogc", data, ogc.format(inner, 20), continuous, steps, l2=5e-4, what="scripts")
            for name, inner in (("focal", "focal(gamma=0.5)"), ("gce", "gce(q=0.7)"))
        ]
    rows.append(
        _code("ELR", "elr", "cifar10", elr.format(0.7, 3), variants=(("asymmetric", elr.format(0.9, 1)),), l2=1e-3)
    )
    rows.append(_code("ELR", "elr", "cifar100", elr.format(0.9, 7), l2=1e-3))
    rows.append(
        _code(
            "TL",
            "truncated_gce",
            "cifar10",
            "truncated_gce(q=0.7, k=0.5, start=40, every=10)",
            "TL code is not by the authors of the loss. It decides who is left out by a pass of the best checkpoint "
            "over all examples; here each is judged by its own prediction in the step in which it is due.",
            l2=1e-4,
            what="code",
        )
    )
    return rows


PRESETS: Final[tuple[Preset, ...]] = (
    *_vbl(),
    *_baselines(),
    *_active_passive(),
    *_asymmetric(),
    *_divergences(),
    *_wrapped(),
    *_adaptive(),
)
"""All published settings, the paper's own methods first.

>>> PRESETS[0].method, PRESETS[0].dataset, PRESETS[0].spec
('nce+vce', 'cifar10', 'nce + 10*vce(a=4)')
"""

# --- Looking up ---------------------------------------------------------------------------------------------

_TABLE: dict[str, dict[str, Preset]] = {
    method: {row.dataset: row for row in PRESETS if row.method == method}
    for method in dict.fromkeys(row.method for row in PRESETS)
}
_DATASETS = ("mnist", "cifar10", "cifar100", "webvision", "clothing1m")

_OTHER_METHOD_NAMES: Mapping[str, str] = {
    "fl": "focal",
    "anl_ce": "nce+nnce",
    "anl_fl": "nfl+nnfl",
    "jal_ce": "nce+amse",
    "jal_fl": "nfl+amse",
    "ce+lc": "lc",
    "logit_clip": "lc",
    "ce+ogc": "ogc",
    "ece+mae": "eps_softmax+mae",
    "eps_softmax": "eps_softmax+mae",
    "sr": "ce+sr",
    "sparse": "ce+sr",
    "fl+sr": "focal+sr",
}


def _method(name: str) -> str:
    """Return the method as the table spells it, or raise a ``ValueError`` that lists the methods."""
    key = re.sub(r"\s+", "", name.lower()).replace("-", "_")
    key = _OTHER_METHOD_NAMES.get(key, key)
    if key not in _TABLE:
        near = did_you_mean(key, list(_TABLE))
        raise ValueError(f"no published setting of method {name!r}{near} (known: {', '.join(_TABLE)})")
    return key


def _dataset(name: str, known: tuple[str, ...], who: str) -> str:
    """Return the data set as the table spells it, or raise a ``ValueError`` that lists the known ones."""
    key = re.sub(r"[\s_-]+", "", name.lower())
    key = "webvision" if key in ("webvisionmini", "miniwebvision") else key
    if key not in known:
        near = "" if key in _DATASETS else did_you_mean(key, known)
        raise ValueError(f"no published setting on data set {name!r}{near} ({who}: {', '.join(known)})")
    return key


def list_presets(method: str | None = None, dataset: str | None = None) -> list[Preset]:
    """Return the published settings, of one method or on one data set if you say so.

    A method or data set that nothing is known about is a ``ValueError``; a pair that nobody published is an
    empty list.

    >>> [one.dataset for one in list_presets("nce+vce")]
    ['cifar10', 'cifar100', 'webvision', 'clothing1m']
    >>> [one.method for one in list_presets(dataset="CIFAR-100")][:3]
    ['nce+vce', 'nce+vel', 'nce+vsl']
    """
    found: Iterable[Preset] = PRESETS
    if method is not None:
        found = _TABLE[_method(method)].values()
    if dataset is not None:
        wanted = _dataset(dataset, _DATASETS, "known")
        found = (one for one in found if one.dataset == wanted)
    return list(found)


def preset(method: str, dataset: str) -> Preset:
    """Return the published setting of ``method`` on ``dataset``.

    Case, spaces, and hyphens or underscores do not matter, and methods may go by the name of their paper
    (``anl-ce``, ``ece+mae``, ``sr``).

    >>> preset("NCE + VCE", dataset="CIFAR-10").spec
    'nce + 10*vce(a=4)'
    >>> preset("gce", dataset="cifar10").variants
    (('APL, ANL, ALFs, EPS and JAL configs', 'gce(q=0.7)'),)
    >>> preset("nce+vel", dataset="webvision")
    Traceback (most recent call last):
    ValueError: no published setting on data set 'webvision' (nce+vel has: cifar10, cifar100)
    """
    name = _method(method)
    rows = _TABLE[name]
    return rows[_dataset(dataset, tuple(rows), f"{name} has")]
