"""How labels go wrong."""

from unswayed.noise.matrix import transition_matrix
from unswayed.noise.spec import NoiseSpec

__all__ = ["NoiseSpec", "transition_matrix"]
