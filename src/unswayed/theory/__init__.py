"""What can be proved about a loss: its variation ratio, the conditions it meets, and the noise it is certified against.

>>> from unswayed import theory
>>> theory.variation_ratio("vsl(a=0.05)")
1.1295...
>>> theory.certify("nce + 10*vce(a=4)", "symmetric(0.8)", num_classes=10).holds
True
"""

from unswayed.theory.certificate import Certificate, ExcessRisk, certify, excess_risk_bound
from unswayed.theory.conditions import (
    Asymmetry,
    Parts,
    SymmetryGap,
    Tolerated,
    is_asymmetric,
    split,
    symmetry_gap,
    tolerated,
)
from unswayed.theory.profile import NotPointwise, Profile, profile, variation_ratio

__all__ = [
    "Asymmetry",
    "Certificate",
    "ExcessRisk",
    "NotPointwise",
    "Parts",
    "Profile",
    "SymmetryGap",
    "Tolerated",
    "certify",
    "excess_risk_bound",
    "is_asymmetric",
    "profile",
    "split",
    "symmetry_gap",
    "tolerated",
    "variation_ratio",
]
