"""Grids of experiments: the paper's tables and one's own, run by one command, resumable."""

from unswayed._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
