"""`Locator`: the permanent global address of a view: the key of its party and its inception key.

>>> locator = Locator(PublicKey(b"p" * 32), PublicKey(b"v" * 32))
>>> str(locator)[:30]
'echo://obyha4dqobyha4dqobyha4d'
>>> Locator.parse(str(locator)) == locator
True
"""

from __future__ import annotations

from dataclasses import dataclass

from antiphon.api.key_text import from_text, to_text
from antiphon.core.errors import InvalidInput
from antiphon.core.keys import PublicKey

_SCHEME = "echo://"


@dataclass(frozen=True, slots=True)
class Locator:
    """The address of one view of one party. `Store.resolve` returns the view, if the store holds the party."""

    party: PublicKey
    key: PublicKey

    @classmethod
    def parse(cls, text: str) -> Locator:
        """Read the text of a locator. `InvalidInput` if it is not valid."""
        parts = text.strip().removeprefix(_SCHEME).split("/")
        if not text.strip().startswith(_SCHEME) or len(parts) != 2:
            raise InvalidInput(f"{text[:140]!r} is no locator of a view; one looks like {_SCHEME}<party>/<view>")
        return cls(from_text(parts[0], "a party's key"), from_text(parts[1], "a view's inception key"))

    def __str__(self) -> str:
        return f"{_SCHEME}{to_text(self.party)}/{to_text(self.key)}"
