"""Words: what `Match` finds in texts, by Python's rules and, spelled so that it must agree, by SQLite's FTS5.

>>> tokens("Ｇroße Wörter: 日本!")
['grosse', 'wörter', '日', '本']
>>> wanted = parse('wör* "a b"')
>>> wanted
(Term(words=('wör',), beginning=True), Term(words=('a', 'b'), beginning=False))
>>> matches(wanted, spell(["Wörter a b"])), matches(wanted, spell(["Wörter a", "b"]))
(True, False)

Upper and lower case and Unicode's ways to write one character are the same; characters of scripts that are written
without spaces are words of their own. FTS5 is given each word as the hex of its UTF-8, so its own rules never matter.

All of it takes time in proportion to the text, whoever wrote that: normalising, which is quadratic in marks on one
letter, gets no more of them in a row than Unicode's stream-safe texts have.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from antiphon.core.errors import InvalidInput

LENGTH_MAX = 1 << 20  # characters of an item's texts, as written or as words; what follows is not looked at
WORD_LENGTH_MAX = 64  # characters; of a longer word only these are looked at
MARKS_MAX = 30  # in a row; further ones are left out
TERMS_MAX = 32
ASKED_WORDS_MAX = 128  # in all terms: each word of a row is looked for wherever the first is
TEXT_LENGTH_MAX = 4096  # of what is asked for
RULES = f"2 {unicodedata.unidata_version}"  # what is a word, and its case, may change with Unicode

_PIECE = 2048  # characters; longer texts are looked at in pieces of at least so many
_PIECE_MAX = 1 << 16
_KEPT_MAX = 1 << 22  # characters
_LINE = "\n"  # between two texts, so that no row of words spans both

# Han, kana, bopomofo, hangul, and the extensions of Han beyond the first 65536 characters.
_ALONE = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u318f\u31a0-\u31ff\u3400-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_TOKEN = re.compile(rf"[{_ALONE}]|[^\W{_ALONE}]+")
_PLAIN = re.compile(r"\w+", re.ASCII)  # the same where there is nothing but ASCII
_ASKED = re.compile(r'"([^"]*)(?:"|$)(\*?)|([^\s"]+)')
_BREAK = re.compile("[ \t\n\u3000-\u3002]")  # what ends a word, and is never one with a mark that follows
_MARKS = re.compile(rf"[\W\uff9e\uff9f]{{{MARKS_MAX + 1},}}")  # such are all marks, and other characters too
_OPENING_MARKS = "\u0f73\u0f75\u0f81\uff9e\uff9f"  # no marks themselves, but taken apart they are nothing else


class Term(NamedTuple):
    """Words in a row; of the last one perhaps only its beginning."""

    words: tuple[str, ...]
    beginning: bool


def tokens(text: str) -> list[str]:
    """The words of a text, in their order."""
    return _spell(text).split()


def spell(texts: Iterable[str]) -> str:
    """The words of an item's texts in one string, each between two blanks; empty if there is no word in them."""
    lines: list[str] = []
    room = LENGTH_MAX
    for text in texts:
        line = _spell(text) if len(text) <= _PIECE else " ".join(_spell_long(text, room))
        room -= _length(text, line)
        if line:
            lines.append(f" {line} ")
        if room <= 0:
            break
    return _LINE.join(lines)


def _spell_long(text: str, room: int) -> Iterator[str]:
    for piece in _pieces(text[:room]):
        spelled = KEPT.spell(piece)
        if spelled:
            yield spelled
        room -= _length(piece, spelled)
        if room <= 0:
            return


def _length(text: str, spelled: str) -> int:
    """What counts of a text: one character may be eighteen, and a blank follows a word."""
    return max(len(text), len(spelled) // 2)


def _pieces(text: str) -> Iterator[str]:
    """A text, cut where a word ends, if it can be: the words of the whole are those of its pieces."""
    at = 0
    while at < len(text):
        found = _BREAK.search(text, at + _PIECE, at + _PIECE_MAX)
        end = at + _PIECE_MAX if found is None else found.end()
        yield text[at:end]
        at = end


class Kept:
    """The words of pieces of long texts, of which most are as they were when the text was last looked at."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._size = 0
        self.made = 0  # how often words were looked for

    def spell(self, piece: str) -> str:
        found = self._known.get(piece)
        if found is None:
            self.made += 1
            found = _spell(piece)
            if self._size > _KEPT_MAX:
                self._known, self._size = {}, 0
            self._known[piece] = found
            self._size += len(piece) + len(found)
        return found


KEPT = Kept()


def _spell(text: str) -> str:
    if text.isascii():
        words = _PLAIN.findall(text.lower())
    else:
        folded = unicodedata.normalize("NFKC", stream_safe(text)).casefold()
        words = _TOKEN.findall(unicodedata.normalize("NFKC", folded))
    return " ".join([word[:WORD_LENGTH_MAX] for word in words])


def stream_safe(text: str) -> str:
    """A text without the marks that follow so many others (as UAX #15 has it, but it parts them)."""
    return _MARKS.sub(_fewer_marks, text)


def _fewer_marks(found: re.Match[str]) -> str:
    kept: list[str] = []
    marks = 0
    for character in found[0]:
        is_mark = unicodedata.combining(character) or character in _OPENING_MARKS
        marks = marks + 1 if is_mark else 0
        if marks <= MARKS_MAX:
            kept.append(character)
    return "".join(kept)


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
    count = sum(len(term.words) for term in found)
    if count > ASKED_WORDS_MAX:
        raise InvalidInput(f"{count} words to match; at most {ASKED_WORDS_MAX}, also in a row")
    return tuple(found)


def matches(wanted: Sequence[Term], spelled: str) -> bool:
    """Whether each term is in one of the texts that were spelled."""
    return all(needle(term.words, beginning=term.beginning) in spelled for term in wanted)


def needle(words: Iterable[str], *, beginning: bool) -> str:
    """What is in spelled texts if these words in a row are."""
    return f" {' '.join(words)}{'' if beginning else ' '}"


# -- for FTS5


def to_fts(texts: Iterable[str]) -> str:
    """What FTS5 gets for the texts of an item; empty if there is no word in them. Between two texts it gets an x."""
    spelled = spell(texts).replace(f" {_LINE} ", _LINE).strip(" ")
    return spelled.encode().hex("-").replace("-20-", " ").replace("-0a-", " x ").replace("-", "")


def fts_query(wanted: Sequence[Term]) -> str:
    """The expression that FTS5 is asked."""
    return " AND ".join(f'"{" ".join(map(_hex, term.words))}"{" *" if term.beginning else ""}' for term in wanted)


def _hex(word: str) -> str:
    return word.encode().hex()
