"""Public names of a package, each loaded from its module when it is first used, so that importing the package is quick.

The names are written once, as imports in the package's `if TYPE_CHECKING:` block. Type checkers and editors read them
there, and so does this module when a name is first used.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


def lazy_exports(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package (PEP 562). They also provide `__all__`."""

    @cache
    def modules() -> dict[str, str]:
        """Return the module of each public name."""
        loader = sys.modules[package].__loader__
        source = loader.get_source(package)  # type: ignore[union-attr]
        if source is None:
            raise ImportError(
                f"the names of {package} are listed in its source, which is not installed; install that too"
            )
        tree = ast.parse(source)
        imports = [node for block in tree.body if isinstance(block, ast.If) for node in block.body]
        return {
            name.asname or name.name: node.module or ""
            for node in imports
            if isinstance(node, ast.ImportFrom)
            for name in node.names
        }

    def load(name: str) -> Any:
        if name == "__all__":
            return sorted(modules())
        if name.startswith("__") or name not in modules():
            raise AttributeError(f"{package} has no {name!r}")
        value = getattr(import_module(modules()[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted({*vars(sys.modules[package]), *modules()})
