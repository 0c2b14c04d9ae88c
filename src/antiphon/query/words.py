"""Words: what `Match` finds in texts, by Python's rules and, spelled so that it must agree, by SQLite's FTS5.

>>> tokens("Ｇroße Wörter: 日本!")
['grosse', 'wörter', '日', '本']
>>> wanted = parse('wör* "a b"')
>>> wanted
(Term(words=('wör',), beginning=True), Term(words=('a', 'b'), beginning=False))
>>> matches(wanted, [tokens("Wörter a b")]), matches(wanted, [tokens("Wörter a"), tokens("b")])
(True, False)

Upper and lower case and Unicode's ways to write one character are the same; characters of scripts that are written
without spaces are words of their own. FTS5 is given each word as the hex of its UTF-8, so its own rules never matter.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from antiphon.core.errors import InvalidInput

WORD_LENGTH_MAX = 64  # characters; of a longer word only these are looked at
TERMS_MAX = 32
TEXT_LENGTH_MAX = 4096  # of what is asked for
BETWEEN = "x"  # the word between two texts, so that no row of words spans both: it is no hex
UNICODE = unicodedata.unidata_version  # what is a word, and its case, may change with it

# Han, kana, bopomofo, hangul, and the extensions of Han beyond the first 65536 characters.
_ALONE = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u318f\u31a0-\u31ff\u3400-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_TOKEN = re.compile(rf"[{_ALONE}]|[^\W{_ALONE}]+")
_ASKED = re.compile(r'"([^"]*)(?:"|$)(\*?)|([^\s"]+)')


class Term(NamedTuple):
    """Words in a row; of the last one perhaps only its beginning."""

    words: tuple[str, ...]
    beginning: bool


def tokens(text: str) -> list[str]:
    """The words of a text, in their order."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return [word[:WORD_LENGTH_MAX] for word in _TOKEN.findall(folded)]


@lru_cache(maxsize=256)
def parse(text: str) -> tuple[Term, ...]:
    """What a text asks for: all of these."""
    if len(text) > TEXT_LENGTH_MAX:
        raise InvalidInput(f"words to match of {len(text)} characters; at most {TEXT_LENGTH_MAX}")
    found: list[Term] = []
    for quoted, star, bare in _ASKED.findall(text):
        words = tuple(tokens(bare or quoted))
        if words:
            found.append(Term(words, bool(star) or bare.endswith("*")))
    if not found:
        raise InvalidInput(f"there is no word to match in {text!r}")
    if len(found) > TERMS_MAX:
        raise InvalidInput(f"{len(found)} words to match; at most {TERMS_MAX}")
    return tuple(found)


def matches(wanted: Sequence[Term], texts: Iterable[Sequence[str]]) -> bool:
    """Whether each term is in one of the texts, given by their tokens."""
    found = [list(words) for words in texts]
    return all(any(_holds(words, term) for words in found) for term in wanted)


def _holds(words: list[str], term: Term) -> bool:
    *firsts, last = term.words
    count = len(firsts)
    for at in range(len(words) - count):
        end = words[at + count]
        if words[at : at + count] == firsts and (end.startswith(last) if term.beginning else end == last):
            return True
    return False


# -- for FTS5


def to_fts(texts: Iterable[str]) -> str:
    """What FTS5 gets for the texts of an item; empty if there is no word in them."""
    spelled = (" ".join(map(_hex, tokens(text))) for text in texts)
    return f" {BETWEEN} ".join(text for text in spelled if text)


def fts_query(wanted: Sequence[Term]) -> str:
    """The expression that FTS5 is asked."""
    return " AND ".join(f'"{" ".join(map(_hex, term.words))}"{" *" if term.beginning else ""}' for term in wanted)


def _hex(word: str) -> str:
    return word.encode().hex()
