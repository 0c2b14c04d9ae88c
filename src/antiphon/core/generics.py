"""`TypeVar` with a `default`, as in `typing` from Python 3.13 on. Type checkers read the default; Python ignores it."""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVar
else:

    def TypeVar(name: str, *, default: Any = None, **options: Any) -> typing.TypeVar:  # noqa: N802 - stands in for it
        """A type variable without its default."""
        return typing.TypeVar(name, **options)
