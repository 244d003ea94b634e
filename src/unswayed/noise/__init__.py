"""How labels go wrong."""

from unswayed._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
