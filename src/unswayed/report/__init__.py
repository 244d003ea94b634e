"""What is shown of runs and losses: figures, tables, and a page that is one file."""

from unswayed._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
