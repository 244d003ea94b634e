"""Where examples come from: one call reads a data set, whatever layout its folder has."""

from unswayed._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
