"""The tree of errors that the module draws is the one that it defines."""

from __future__ import annotations

import re

import pytest

from antiphon.core import errors
from antiphon.core.errors import AntiphonError


def drawn() -> dict[str, str | None]:
    """Each error in the docstring's tree with its parent."""
    assert errors.__doc__ is not None
    parents: dict[str, str | None] = {}
    path: list[str] = []
    for line in errors.__doc__.splitlines():
        found = re.match(r"([│ ]*[├└]── )([A-Z]\w+) ", line) or re.fullmatch("()(AntiphonError)", line)
        if found is None:
            continue
        depth = len(found[1]) // 4
        path[depth:] = [found[2]]
        parents[found[2]] = path[depth - 1] if depth else None
    return parents


def defined() -> dict[str, type[AntiphonError]]:
    return {
        name: value
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, AntiphonError)
    }


def test_the_drawing_is_the_tree() -> None:
    real = {
        name: next((base.__name__ for base in error.__bases__ if issubclass(base, AntiphonError)), None)
        for name, error in defined().items()
    }

    assert drawn() == real


@pytest.mark.parametrize("error", defined().values())
def test_each_says_in_its_docstring_what_happened(error: type[AntiphonError]) -> None:
    assert error.__doc__ is not None
    assert error.__doc__.endswith(".")


@pytest.mark.parametrize("error", [errors.UnknownFeed, errors.UnknownKey])
def test_lookup_errors_show_their_message_plainly(error: type[AntiphonError]) -> None:
    """KeyError would show it in quotes, escaped."""
    assert str(error("no feed 'a'; create it")) == "no feed 'a'; create it"
    assert issubclass(error, KeyError)


def test_errors_carry_the_place() -> None:
    broken = errors.BrokenChain("gap", feed=b"f" * 32, seq=3)
    corrupt = errors.CorruptBlock("flipped", feed=b"f" * 32, seq=4)
    forked = errors.Equivocation("two heads", feed=b"f" * 32, seq=5, evidence=b"proof")

    assert (broken.feed, broken.seq, corrupt.seq, forked.seq, forked.evidence) == (b"f" * 32, 3, 4, 5, b"proof")
    assert errors.BadSignature("no place known").feed is None


def test_bad_input_is_a_value_error_too() -> None:
    assert issubclass(errors.BadEncoding, ValueError)
    assert issubclass(errors.TooLarge, ValueError)
