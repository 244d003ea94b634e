"""What to minimise: every loss of the paper and its field, through one mechanism."""

from unswayed._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
