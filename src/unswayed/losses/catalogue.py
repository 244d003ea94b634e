"""The losses that come with the package, as data: read through :mod:`unswayed.losses.registry`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from unswayed.losses.info import LossInfo
from unswayed.spec import REQUIRED, Param

Values = Mapping[str, Any]

VBL = "Wang et al., Variation-Bounded Loss for Noise-Tolerant Learning, AAAI 2026"
GHOSH = "Ghosh, Kumar and Sastry, Robust Loss Functions under Label Noise for Deep Neural Networks, AAAI 2017"
APL = "Ma et al., Normalized Loss Functions for Deep Learning with Noisy Labels, ICML 2020"
ALF = "Zhou et al., Asymmetric Loss Functions for Learning with Noisy Labels, ICML 2021"
ANL = "Ye et al., Active Negative Loss Functions for Learning with Noisy Labels, NeurIPS 2023"
GCE = "Zhang and Sabuncu, Generalized Cross Entropy Loss for Training Deep Neural Networks, NeurIPS 2018"
SCE = "Wang et al., Symmetric Cross Entropy for Robust Learning with Noisy Labels, ICCV 2019"
FOCAL = "Lin et al., Focal Loss for Dense Object Detection, ICCV 2017"
TAYLOR = "Feng et al., Can Cross Entropy Loss Be Robust to Label Noise?, IJCAI 2020"
JS = "Englesson and Azizpour, Generalized Jensen-Shannon Divergence Loss for Learning with Noisy Labels, NeurIPS 2021"
PHUBER = "Menon et al., Can Gradient Clipping Mitigate Label Noise?, ICLR 2020"
AMSE = "Wang et al., Joint Asymmetric Loss for Learning with Noisy Labels, ICCV 2025"
SMOOTHING = "Wei et al., To Smooth or Not? When Label Smoothing Meets Noisy Labels, ICML 2022"
LOGIT_CLIP = "Wei et al., Mitigating Memorization of Noisy Labels by Clipping the Model Prediction, ICML 2023"
EPS = "Wang et al., epsilon-Softmax: Approximating One-Hot Vectors for Mitigating Label Noise, NeurIPS 2024"
SPARSE = "Zhou et al., Learning with Noisy Labels via Sparse Regularization, ICCV 2021"
BOOTSTRAP = "Reed et al., Training Deep Neural Networks on Noisy Labels with Bootstrapping, ICLR 2015 workshop"
OGC = "Ye et al., Optimized Gradient Clipping for Noisy Label Learning, AAAI 2025"
ELR = "Liu et al., Early-Learning Regularization Prevents Memorization of Noisy Labels, NeurIPS 2020"
CORRECTION = "Patrini et al., Making Deep Neural Networks Robust to Label Noise: A Loss Correction Approach, CVPR 2017"

CONDITION = "if v <= w_t/w_i"
DOMINANT = "whenever the true label dominates"
IN_THE_LIMIT = "beside an asymmetric loss, in the limit"


def _one(_: Values) -> float:
    return 1.0


def _infinite(_: Values) -> float:
    return math.inf


def _vce_ratio(p: Values) -> float:
    return (1 + p["a"]) / p["a"] if p["a"] > 0 else math.inf


def vsl_ratio(a: float) -> float:
    """Return the variation ratio of VSL, ``(1+a) ln 2 / (ln 2 - ln(1+a))``.

    >>> round(vsl_ratio(0.05), 5)
    1.12951
    """
    return (1 + a) * math.log(2) / (math.log(2) - math.log1p(a)) if a < 1 else math.inf


def _agce_ratio(p: Values) -> float:
    return float(((p["a"] + 1) / p["a"]) ** abs(p["q"] - 1))


def _aul_ratio(p: Values) -> float:
    return float((p["a"] / (p["a"] - 1)) ** abs(p["q"] - 1))


def _ael_ratio(p: Values) -> float:
    return math.exp(min(1 / p["a"], 709.0)) if 1 / p["a"] < 709.0 else math.inf


def _sce_ratio(p: Values) -> float:
    return math.inf if p["alpha"] > 0 else 1.0


def _a(default: float, meaning: str, **bounds: Any) -> Param:
    return Param("a", default, meaning, **bounds)


# Far above, (1-u)^gamma is 0 for every class, and a normalised loss 0/0.
_GAMMA = Param("gamma", 0.5, "focusing exponent", low=0, high=100)
_A = Param("A", -4.0, "stands for log 0; papers say -4, their code uses ln 1e-4 = -9.2103", high=0, open_high=True)
_LOSS = Param("loss", "ce", "the loss inside", kind="loss")
_MATRIX = Param("T", REQUIRED, "T[i][j] = probability that true class i is labelled j", kind="matrix")


def _p_min(meaning: str, default: float, low_open: bool) -> Param:
    return Param("p_min", default, meaning, low=0, high=1, open_low=low_open, open_high=True)


CATALOGUE: list[LossInfo] = []


def _add(name: str, title: str, home: str, formula: str, latex: str, paper: str, **more: Any) -> None:
    CATALOGUE.append(LossInfo(name, title, f"unswayed.losses.{home}", formula, latex, paper, **more))


def _fill() -> None:
    """Enter the losses that come with the package."""
    _add(
        "ce",
        "cross entropy",
        "classic:CE",
        "-log u",
        r"-\log u",
        "maximum likelihood",
        bounded=False,
        ratio="inf",
        ratio_of=_infinite,
        reduces_to=("vce(a=0)", "focal(gamma=0)", "gce(q→0)", "torch.nn.CrossEntropyLoss"),
    )
    _add(
        "mae",
        "mean absolute error",
        "classic:MAE",
        "scale (1 - u)",
        r"s\,(1-u)",
        GHOSH,
        params=(
            Param(
                "scale",
                2.0,
                "2 is the L1 distance to the one-hot label; repositories use 1 or 2",
                low=0,
                open_low=True,
            ),
        ),
        symmetric=True,
        asymmetric=DOMINANT,
        ratio="1",
        ratio_of=_one,
        reduces_to=("mae(scale=1) = gce(q=1) = taylor_ce(t=1)",),
        why_default="2 is what the papers mean, though repositories that say MAE often have 1",
    )
    _add(
        "focal",
        "focal loss",
        "classic:Focal",
        "-(1-u)^gamma log u",
        r"-(1-u)^\gamma \log u",
        FOCAL,
        params=(_GAMMA,),
        bounded=False,
        ratio="inf",
        ratio_of=_infinite,
        reduces_to=("focal(gamma=0) = ce",),
        why_default="0.5 is what papers on noisy labels use; detection uses 2",
    )
    _add(
        "rce",
        "reverse cross entropy",
        "classic:RCE",
        "-A (1 - u)",
        r"-A\,(1-u)",
        SCE,
        params=(_A,),
        symmetric=True,
        asymmetric=DOMINANT,
        ratio="1",
        ratio_of=_one,
        reduces_to=("rce(A) = -A/2 * mae(scale=2)",),
        why_default="-4 is what the papers say",
    )
    _add(
        "sce",
        "symmetric cross entropy",
        "classic:SCE",
        "alpha (-log u) - beta A (1 - u)",
        r"-\alpha\log u-\beta A(1-u)",
        SCE,
        params=(
            Param("alpha", 0.1, "weight of cross entropy", low=0),
            Param("beta", 1.0, "weight of reverse cross entropy", low=0, open_low=True),
            _A,
        ),
        bounded=False,
        ratio="inf (1 if alpha = 0)",
        ratio_of=_sce_ratio,
        reduces_to=("sce = alpha*ce + beta*rce(A)",),
        why_default="published for CIFAR-10",
    )
    _add(
        "gce",
        "generalized cross entropy",
        "classic:GCE",
        "(1 - u^q) / q",
        r"\frac{1-u^q}{q}",
        GCE,
        params=(Param("q", 0.7, "0 is cross entropy, 1 is MAE", low=0, high=1, open_low=True),),
        ratio="inf (1 if q = 1)",
        ratio_of=lambda p: 1.0 if p["q"] == 1 else math.inf,
        reduces_to=("gce(q→0) = ce", "gce(q=1) = mae(scale=1)"),
        why_default="0.7 is what its authors use",
    )
    _add(
        "truncated_gce",
        "truncated generalized cross entropy",
        "adaptive:TruncatedGCE",
        "w [(1 - u^q)/q - (1 - k^q)/q],  w = [u > k], found for each example now and then",
        r"w\left[\tfrac{1-u^q}{q}-\tfrac{1-k^q}{q}\right],\ w=[u>k]",
        GCE,
        params=(
            Param("q", 0.7, "as in gce", low=0, high=1, open_low=True),
            Param("k", 0.5, "probability that an example must exceed", low=0, high=1, open_low=True, open_high=True),
            Param("start", 40, "epochs in which nothing is left out", kind="integer", low=0),
            Param("every", 10, "epochs after which it is decided anew", kind="integer", low=1),
        ),
        pointwise=False,
        wants=("index",),
        reduces_to=("truncated_gce = gce(q) - (1 - k^q)/q, while nothing is left out",),
        why_default="all four are published",
    )
    _add(
        "taylor_ce",
        "Taylor cross entropy",
        "classic:TaylorCE",
        "sum_{i=1..t} (1-u)^i / i",
        r"\sum_{i=1}^{t}\frac{(1-u)^i}{i}",
        TAYLOR,
        params=(Param("t", 2, "number of terms", kind="integer", low=1),),
        asymmetric=CONDITION,
        ratio="t",
        ratio_of=lambda p: float(p["t"]),
        reduces_to=("taylor_ce(t=1) = mae(scale=1)", "taylor_ce(t→∞) = ce"),
        why_default="the smallest that is not MAE; no value is published in code",
    )
    _add(
        "js",
        "Jensen-Shannon divergence",
        "classic:JS",
        "[pi KL(e_y || m) + (1-pi) KL(p || m)] / Z,  m = pi e_y + (1-pi) p,  Z = -(1-pi) log(1-pi)",
        r"\frac{1}{Z}\left[\pi\,\mathrm{KL}(e_y\|m)+(1-\pi)\,\mathrm{KL}(p\|m)\right]",
        JS,
        params=(Param("pi", 0.5, "weight of the label", low=0, high=1, open_low=True, open_high=True),),
        ratio="inf",
        ratio_of=_infinite,
        reduces_to=("js(pi→0) = ce", "js(pi→1) = mae(scale=1)", "js(pi) = gjs(pi) with one prediction"),
        why_default="the middle of what its authors use (0.1 to 0.9)",
    )
    _add(
        "gjs",
        "generalised Jensen-Shannon divergence",
        "classic:GJS",
        "[pi KL(e_y || m) + (1-pi)/M sum_i KL(p_i || m)] / Z",
        r"\frac{1}{Z}\Big[\pi\,\mathrm{KL}(e_y\|m)+\tfrac{1-\pi}{M}\sum_i\mathrm{KL}(p_i\|m)\Big]",
        JS,
        params=(
            Param(
                "pi",
                0.5,
                "weight of the label; the predictions share the rest",
                low=0,
                high=1,
                open_low=True,
                open_high=True,
            ),
            Param("views", 2, "augmentations of each example in training", kind="integer", low=1),
        ),
        pointwise=False,
        reduces_to=("gjs(pi) with one prediction = js(pi)",),
        why_default="as js; two views are its authors'",
    )
    _add(
        "phuber_ce",
        "partially Huberised cross entropy",
        "classic:PHuberCE",
        "-log u if u > 1/tau, else 1 + log tau - tau u",
        r"\begin{cases}-\log u & u>1/\tau\\ 1+\log\tau-\tau u & \text{else}\end{cases}",
        PHUBER,
        params=(Param("tau", 10.0, "largest slope", low=1),),
        asymmetric=CONDITION,
        ratio="tau",
        ratio_of=lambda p: float(p["tau"]),
        smooth=False,
        reduces_to=('phuber_ce(tau) = bounded(ce, v=tau, by="linear")',),
        why_default="10 is what public code uses",
    )
    _add(
        "phuber_gce",
        "partially Huberised generalized cross entropy",
        "classic:PHuberGCE",
        "gce(q) if u > u*, else its tangent at u* = tau^(1/(q-1))",
        r"\begin{cases}(1-u^q)/q & u>\tau^{1/(q-1)}\\ \text{its tangent} & \text{else}\end{cases}",
        PHUBER,
        params=(
            Param("q", 0.7, "as in gce", low=0, high=1, open_low=True),
            Param("tau", 10.0, "largest slope", low=1),
        ),
        asymmetric=CONDITION,
        ratio="tau (1 if q = 1)",
        ratio_of=lambda p: 1.0 if p["q"] == 1 else float(p["tau"]),
        smooth=False,
        reduces_to=('phuber_gce(q, tau) = bounded(gce(q), v=tau, by="linear")',),
        why_default="0.7 and 10 are what public code uses",
    )
    _add(
        "nce",
        "normalised cross entropy",
        "normalized:NCE",
        "log u / sum_k log p_k",
        r"\frac{\log u}{\sum_k\log p_k}",
        APL,
        symmetric=True,
        asymmetric=IN_THE_LIMIT,
        pointwise=False,
    )
    _add(
        "nfl",
        "normalised focal loss",
        "normalized:NFL",
        "focal(u) / sum_k focal(p_k)",
        r"\frac{(1-u)^\gamma\log u}{\sum_k(1-p_k)^\gamma\log p_k}",
        APL,
        params=(_GAMMA,),
        symmetric=True,
        asymmetric=IN_THE_LIMIT,
        pointwise=False,
        reduces_to=("nfl(gamma=0) = nce",),
        why_default="0.5 is published",
    )
    _add(
        "ngce",
        "normalised generalized cross entropy",
        "normalized:NGCE",
        "(1 - u^q) / (K - sum_k p_k^q)",
        r"\frac{1-u^q}{K-\sum_k p_k^q}",
        APL,
        params=(Param("q", 0.7, "as in gce", low=0, high=1, open_low=True),),
        symmetric=True,
        pointwise=False,
        reduces_to=("ngce(q→0) = nce", "ngce(q=1) = nmae"),
        why_default="as gce",
    )
    for name, title in (
        ("nmae", "normalised mean absolute error"),
        ("nrce", "normalised reverse cross entropy"),
    ):
        _add(
            name,
            title,
            f"normalized:{name.upper()}",
            "(1 - u) / (K - 1)",
            r"\frac{1-u}{K-1}",
            APL,
            symmetric=True,
            asymmetric=DOMINANT,
            pointwise=False,
            ratio="1",
            ratio_of=_one,
            reduces_to=("nmae = nrce = mae(scale=1) / (K-1)",),
        )
    _add(
        "nnce",
        "normalised negative cross entropy",
        "normalized:NNCE",
        "1 - (A + log u) / sum_k (A + log p_k),  A = -log p_min,  p clipped at p_min",
        r"1-\frac{A+\log u}{\sum_k(A+\log p_k)}",
        ANL,
        params=(_p_min("floor of the probabilities, part of the definition", 1e-7, True),),
        symmetric=True,
        asymmetric=DOMINANT,
        pointwise=False,
        smooth=False,
        why_default="1e-7 is its authors' (ANL); EPS and JAL code has 1e-8",
    )
    _add(
        "nnfl",
        "normalised negative focal loss",
        "normalized:NNFL",
        "1 - (A - focal(u)) / sum_k (A - focal(p_k)),  A = focal(p_min),  p clipped at p_min",
        r"1-\frac{A-\mathrm{FL}(u)}{\sum_k(A-\mathrm{FL}(p_k))}",
        ANL,
        params=(_GAMMA, _p_min("floor of the probabilities, part of the definition", 1e-7, True)),
        symmetric=True,
        asymmetric=DOMINANT,
        pointwise=False,
        smooth=False,
        reduces_to=("nnfl(gamma=0) = nnce",),
        why_default="as nfl and nnce",
    )
    _add(
        "agce",
        "asymmetric generalized cross entropy",
        "asymmetric:AGCE",
        "[(a+1)^q - (a+u)^q] / q",
        r"\frac{(a+1)^q-(a+u)^q}{q}",
        ALF,
        params=(
            _a(0.6, "shift", low=0, open_low=True),
            Param("q", 0.6, "exponent; above 1 the loss is concave", low=0, open_low=True),
        ),
        asymmetric=f"{CONDITION}; always for q >= 1",
        ratio="((a+1)/a)^|q-1|",
        ratio_of=_agce_ratio,
        reduces_to=("agce(a, q→0) = vce(a) + log(1+a)", "agce(a, q=1) = mae(scale=1)"),
        why_default="published for CIFAR",
    )
    _add(
        "aul",
        "asymmetric unhinged loss",
        "asymmetric:AUL",
        "[(a-u)^q - (a-1)^q] / q",
        r"\frac{(a-u)^q-(a-1)^q}{q}",
        ALF,
        params=(
            _a(5.5, "must exceed 1", low=1, open_low=True),
            Param("q", 3.0, "exponent; below 1 the loss is concave", low=0, open_low=True),
        ),
        asymmetric=f"{CONDITION}; always for q <= 1",
        ratio="(a/(a-1))^|q-1|",
        ratio_of=_aul_ratio,
        reduces_to=("aul(a, q=1) = mae(scale=1)",),
        why_default="published for CIFAR",
    )
    _add(
        "ael",
        "asymmetric exponential loss",
        "asymmetric:AEL",
        "exp(-u/a)",
        r"e^{-u/a}",
        ALF,
        params=(_a(2.5, "scale of the exponent", low=0, open_low=True),),
        asymmetric=CONDITION,
        ratio="e^(1/a)",
        ratio_of=_ael_ratio,
        reduces_to=("ael(a=1) = vel(a=e)", "ael(a) = vel(e^(1/a))"),
        why_default="published for CIFAR",
    )
    _add(
        "amse",
        "asymmetric mean square error",
        "asymmetric:AMSE",
        "(1/K) sum_k (p_k - a [k=y])^2",
        r"\frac1K\sum_k(p_k-a\,[k=y])^2",
        AMSE,
        params=(_a(30.0, "1 is the Brier score over K", low=1),),
        asymmetric="if a >= sum(w) / (w_t - max w_i)",
        pointwise=False,
        why_default="published for CIFAR-10",
    )
    _add(
        "vce",
        "variation cross entropy",
        "bounded:VCE",
        "-log(u + a)",
        r"-\log(u+a)",
        VBL,
        params=(_a(1.0, "shift; 0 is cross entropy", low=0),),
        asymmetric=CONDITION,
        ratio="(1+a)/a",
        ratio_of=_vce_ratio,
        reduces_to=("vce(a=0) = ce", "a (vce(a) + log(1+a)) → mae(scale=1) as a→∞"),
        why_default="v = 2: certified up to 81.8 % symmetric noise at K = 10, and still fits well in first tries",
    )
    _add(
        "vel",
        "variation exponential loss",
        "bounded:VEL",
        "a^-u",
        r"a^{-u}",
        VBL,
        params=(_a(2.0, "base", low=1, open_low=True),),
        asymmetric=CONDITION,
        ratio="a",
        ratio_of=lambda p: float(p["a"]),
        reduces_to=("vel(a=e) is the exponential loss", "vel(a) = ael(1/ln a)"),
        why_default="v = 2, as vce",
    )
    _add(
        "vsl",
        "variation square log",
        "bounded:VSL",
        "[log(a u + 1) - log 2]^2 / a",
        r"\frac{[\log(au+1)-\log2]^2}{a}",
        VBL,
        params=(_a(0.28, "1 is the square log loss", low=0, high=1, open_low=True),),
        asymmetric=CONDITION,
        ratio="(1+a) ln2 / (ln2 - ln(1+a))",
        ratio_of=lambda p: vsl_ratio(p["a"]),
        reduces_to=("vsl(a=1) is the square log loss",),
        why_default="v = 1.99, as vce",
    )
    _wrappers()
    _adaptive()


def _wrappers() -> None:
    """Enter the losses around losses."""

    def add(
        name: str,
        title: str,
        cls: str,
        formula: str,
        latex: str,
        paper: str,
        params: tuple[Param, ...],
        **more: Any,
    ) -> None:
        _add(
            name,
            title,
            f"wrapped:{cls}",
            formula,
            latex,
            paper,
            params=(_LOSS, *params),
            wrapper=True,
            **({"pointwise": False, "bounded": False} | more),
        )

    add(
        "label_smoothing",
        "label smoothing, negative too",
        "LabelSmoothing",
        "(1-r) L(p, y) + r/K sum_k L(p, k)",
        r"(1-r)L(p,y)+\frac rK\sum_kL(p,k)",
        SMOOTHING,
        (Param("r", 0.1, "share of the label that is spread; negative sharpens", high=1),),
        reduces_to=("label_smoothing(ce, r=0) = ce",),
        why_default="0.1 is the usual one",
    )
    add(
        "logit_clip",
        "logit clipping",
        "LogitClip",
        "L(z min(1, norm/||z||), y)",
        r"L\left(z\min(1,\tau/\|z\|_2),y\right)",
        LOGIT_CLIP,
        (
            Param("norm", 1.0, "largest L2 norm of the logits", low=0, open_low=True),
            Param("published", False, "clip above 1/norm instead of norm, as public code does", kind="flag"),
        ),
        bounded=True,
        smooth=False,
        why_default="1 is where its authors' code and paper agree",
    )
    add(
        "eps_softmax",
        "epsilon-softmax",
        "EpsSoftmax",
        "L(p~, y),  p~ = max((p + m e_argmax) / (1 + m), p_min)",
        r"L\left(\tfrac{p+m\,e_{\arg\max p}}{1+m},y\right)",
        EPS,
        (
            Param("m", 1e4, "how far p is pulled to its largest entry", low=0),
            _p_min("floor of p~ as published; 0 for none", 1e-8, False),
        ),
        bounded=True,
        smooth=False,
        reduces_to=("eps_softmax(loss, m=0, p_min=0) = loss",),
        why_default="1e4 is published for CIFAR-100",
    )
    add(
        "sparse",
        "sparse regularisation",
        "Sparse",
        "L(z/(temperature ||z||), y) + weight sum_k p_k^p",
        r"L(\tilde z/\tau,y)+\lambda\sum_kp_k^p",
        SPARSE,
        (
            Param("temperature", 0.5, "divides the normalised logits", low=0, open_low=True),
            Param("p", 0.1, "exponent of the penalty", low=0, high=1, open_low=True),
            Param("weight", 1.2, "weight of the penalty", low=0),
        ),
        bounded=True,
        why_default="published for CIFAR-10",
    )
    add(
        "bootstrap",
        "bootstrapping",
        "Bootstrap",
        "beta L(p, y) + (1-beta) sum_k t_k L(p, k),  t = p or e_argmax",
        r"\beta L(p,y)+(1-\beta)\sum_kt_kL(p,k)",
        BOOTSTRAP,
        (
            Param("beta", 0.95, "trust in the given label", low=0, high=1),
            Param("hard", False, "use the predicted class instead of the probabilities", kind="flag"),
        ),
        smooth=False,
        reduces_to=("bootstrap(loss, beta=1) = loss",),
        why_default="0.95 is published for soft, 0.8 for hard",
    )
    add(
        "forward_correction",
        "forward correction",
        "ForwardCorrection",
        "L(p^T T, y)",
        r"L(T^\top p,y)",
        CORRECTION,
        (_MATRIX,),
        reduces_to=("forward_correction(loss, T=identity) = loss",),
    )
    add(
        "backward_correction",
        "backward correction",
        "BackwardCorrection",
        "sum_k (T^-1)_yk L(p, k)",
        r"\sum_k(T^{-1})_{yk}L(p,k)",
        CORRECTION,
        (_MATRIX,),
        reduces_to=("backward_correction(loss, T=identity) = loss",),
    )
    _add(
        "bounded",
        "variation-bounded version of a loss",
        "bounded:Bounded",
        "l(u + c), l(c u), or l with its tangent below u_c",
        r"\ell(u+c),\ \ell(cu)\ \text{or}\ \ell\ \text{with its tangent below }u_c",
        VBL,
        params=(
            _LOSS,
            Param("v", 2.0, "the variation ratio wanted", low=1, open_low=True),
            Param(
                "by",
                "linear",
                "shift: l(u + c); base: l(c u); linear: tangent where the slope is v times its least",
                kind="choice",
                choices=("shift", "linear", "base"),
            ),
        ),
        asymmetric=CONDITION,
        ratio="v at most",
        wrapper=True,
        smooth=False,
        reduces_to=(
            'bounded(ce, v, "shift") = vce(1/(v-1))',
            'bounded(ce, v, "linear") = phuber_ce(v)',
            'bounded(ael(1), v, "base") = vel(v)',
        ),
        why_default="v = 2, as vce; linear works for every convex loss whose slope does not vanish",
    )


def _adaptive() -> None:
    """Enter the losses around losses that change while they train."""
    _add(
        "ogc",
        "optimised gradient clipping",
        "adaptive:OGC",
        "l(u) if u > u_c, else l(u_c) + |l'(u_c)| (u_c - u);  u_c follows the training",
        r"\begin{cases}\ell(u)&u>u_c\\ \ell(u_c)+|\ell'(u_c)|(u_c-u)&\text{else}\end{cases}",
        OGC,
        params=(
            _LOSS,
            Param("budget", 20.0, "excess of the noisy mean slope over the clean one, times the learning rate", low=0),
            Param("every", 32, "steps between fits", kind="integer", low=1),
            Param("window", 4096, "values of -log u that are fitted", kind="integer", low=2),
        ),
        pointwise=False,
        wrapper=True,
        smooth=False,
        wants=("lr",),
        bounded=False,
        reduces_to=("ogc(loss) = loss until the window is full",),
        why_default="all three are published; the VBL paper searched the budget with a learning rate of 0.01",
    )
    _add(
        "elr",
        "early-learning regularisation",
        "adaptive:ELR",
        "L(p, y) + weight log(1 - t.p),  t <- beta t + (1 - beta) p for each example",
        r"L(p,y)+\lambda\log(1-\langle t,p\rangle),\quad t\leftarrow\beta t+(1-\beta)p",
        ELR,
        params=(
            _LOSS,
            Param("beta", 0.7, "how slowly the memory changes", low=0, high=1, open_high=True),
            Param("weight", 3.0, "weight of the penalty", low=0),
            Param(
                "p_min",
                1e-4,
                "probabilities are kept between this and 1 - p_min",
                low=0,
                high=0.5,
                open_low=True,
                open_high=True,
            ),
        ),
        pointwise=False,
        wrapper=True,
        smooth=False,
        bounded=False,
        wants=("index",),
        reduces_to=("elr(loss, weight=0) = loss",),
        why_default="published for symmetric noise on CIFAR-10",
    )
    _add(
        "after",
        "one loss after another",
        "adaptive:After",
        "loss before an epoch, then from it on",
        r"L_1\text{ before an epoch},\ L_2\text{ from it on}",
        SMOOTHING,
        params=(
            _LOSS,
            Param("then", REQUIRED, "the loss from that epoch on", kind="loss"),
            Param("epoch", REQUIRED, "how many epochs the first loss lasts", kind="integer", low=1),
        ),
        pointwise=False,
        wrapper=True,
        bounded=False,
        wants=("epoch",),
    )


_fill()
