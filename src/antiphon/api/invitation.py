"""`Invitation`: the data that a device needs to join a party. It is no secret: only admitted identities can join.

>>> invitation = Invitation(PublicKey(b"p" * 32), PublicKey(b"g" * 32), "Book club")
>>> Invitation.parse(str(invitation)) == invitation
True
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote

from antiphon.api.key_text import from_text, is_unicode, to_text
from antiphon.core.errors import InvalidInput
from antiphon.core.keys import PublicKey

_SCHEME = "antiphon-join:"
_LABEL_SIZE_MAX = 200


@dataclass(frozen=True, slots=True)
class Invitation:
    """The key of the party, the key of its first feed, and a label for people. `str` gives its text."""

    party: PublicKey
    genesis: PublicKey
    label: str = ""

    @classmethod
    def parse(cls, text: str) -> Invitation:
        """Read the text of an invitation. `InvalidInput` if it is not valid."""
        if not is_unicode(text):  # a command line may hand in bytes that are no text
            raise InvalidInput(f"{text[:140]!r} is no invitation: it is not valid Unicode")
        body, _, label = text.strip().partition("?")
        parts = body.removeprefix(_SCHEME).split(".")
        if not body.startswith(_SCHEME) or len(parts) != 2:
            raise InvalidInput(f"{text[:140]!r} is no invitation; one begins with {_SCHEME}")
        party, genesis = from_text(parts[0], "a party's key"), from_text(parts[1], "the key of a party's first feed")
        return cls(party, genesis, unquote(label)[:_LABEL_SIZE_MAX])

    def __str__(self) -> str:
        label = f"?{quote(self.label[:_LABEL_SIZE_MAX])}" if self.label else ""
        return f"{_SCHEME}{to_text(self.party)}.{to_text(self.genesis)}{label}"
