from unswayed.noise.labels import NoisyLabels as NoisyLabels
from unswayed.noise.making import make as make
from unswayed.noise.matrix import transition_matrix as transition_matrix
from unswayed.noise.spec import NoiseSpec as NoiseSpec
