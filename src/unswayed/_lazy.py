"""Names of a package that are imported when they are first used.

``import unswayed`` must not cost seconds, and ``unswayed --help`` must not import torch. Each package that re-exports
names therefore lists them once, in its ``__init__.pyi`` (which type checkers and editors read anyway), and this module
makes that list work at run time.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any


def attach(package: str, init_file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` for ``package``, from the stub beside its ``__init__``."""
    home: dict[str, tuple[str, str | None]] = {}
    for node in ast.parse(Path(init_file).with_suffix(".pyi").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                whole_module = node.module == package
                name = alias.asname or alias.name
                home[name] = (f"{package}.{name}", None) if whole_module else (str(node.module), alias.name)
    names = sorted(home)

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, attribute = home[name]
        loaded = importlib.import_module(module)
        value = loaded if attribute is None else getattr(loaded, attribute)
        # The cache saves the look-up from the second use on.
        setattr(importlib.import_module(package), name, value)
        return value

    return get, lambda: [*names, "__version__"] if package == "unswayed" else list(names), names
