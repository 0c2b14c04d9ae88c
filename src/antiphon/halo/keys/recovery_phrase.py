"""A recovery phrase: 32 secret bytes as 24 words that a person can print, keep in a drawer and type in again.

The words are BIP-39's English list, with its checksum of 8 bits. They encode the seed itself: nothing is derived,
and there is no extra passphrase to forget. A wrong word of the list passes the checksum once in 256 times, so compare
the public key of a recovered identity with the one printed beside the phrase.

>>> phrase = to_recovery_phrase(bytes(32))
>>> phrase.split()[0], phrase.split()[-1], from_recovery_phrase(phrase.upper()) == bytes(32)
('abandon', 'art', True)
>>> from_recovery_phrase(phrase.replace("art", "arm"))
Traceback (most recent call last):
antiphon.core.errors.InvalidInput: the checksum of the phrase is off: a word is wrong, or two are swapped
"""

from __future__ import annotations

import unicodedata
from difflib import get_close_matches
from functools import cache

from mnemonic import Mnemonic

from antiphon.core.errors import InvalidInput
from antiphon.core.keys import SEED_SIZE

PHRASE_WORDS = 24
_TEXT_MAX = 1024
_WORD_SHOWN_MAX = 20


@cache
def _words() -> Mnemonic:
    return Mnemonic("english")


def to_recovery_phrase(seed: bytes) -> str:
    """Return the 24 words of a seed. They are as secret as the seed."""
    if len(seed) != SEED_SIZE:
        raise InvalidInput(f"a phrase is made from a seed of {SEED_SIZE} bytes, not {len(seed)}")
    return _words().to_mnemonic(seed)


def from_recovery_phrase(text: str) -> bytes:
    """Return the seed of a recovery phrase. Case and white space do not matter."""
    if len(text) > _TEXT_MAX:
        raise InvalidInput(f"a phrase has {PHRASE_WORDS} words, this text has {len(text)} characters")
    words = unicodedata.normalize("NFKD", text).lower().split()
    known = _words()
    for position, word in enumerate(words, start=1):
        if word not in known.wordlist:
            raise InvalidInput(_unknown(position, word, known.wordlist))
    if len(words) != PHRASE_WORDS:
        raise InvalidInput(f"a phrase has {PHRASE_WORDS} words, not {len(words)}; type all of them, in their order")
    try:
        return bytes(known.to_entropy(words))
    except ValueError:
        raise InvalidInput("the checksum of the phrase is off: a word is wrong, or two are swapped") from None


def _unknown(position: int, word: str, known: list[str]) -> str:
    shown = word if len(word) <= _WORD_SHOWN_MAX else word[:_WORD_SHOWN_MAX] + "…"
    near = get_close_matches(word[:_WORD_SHOWN_MAX], known, n=1)
    hint = f"; {near[0]!r} is near" if near else ""
    return f"word {position} of the phrase, {shown!r}, is not in the list of words{hint}; check its spelling"
