"""Words: how `Match` splits texts into words, in Python and, encoded so that both agree, in SQLite's FTS5.

>>> tokens("Ｇroße Wörter: 日本!")
['grosse', 'wörter', '日', '本']
>>> wanted = parse('wör* "a b"')
>>> wanted
(Term(words=('wör',), beginning=True), Term(words=('a', 'b'), beginning=False))
>>> matches(wanted, word_text(["Wörter a b"])), matches(wanted, word_text(["Wörter a", "b"]))
(True, False)

Case and Unicode normalisation forms do not matter. In scripts written without spaces, each character is a word.
FTS5 gets each word as the hex of its UTF-8, so its own tokenizer never matters.

The time is linear in the length of a text, also of a hostile one: normalisation is quadratic in the number of marks on
one letter, so it gets no more marks in a row than Unicode's stream-safe format allows.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from antiphon.core.errors import InvalidInput

LENGTH_MAX = 1 << 20  # characters of the texts of an item, as written or as words; the rest is ignored
WORD_LENGTH_MAX = 64  # characters; the rest of a longer word is ignored
MARKS_MAX = 30  # in a row; further ones are left out
TERMS_MAX = 32
ASKED_WORDS_MAX = 128  # in all terms: each word of a phrase is searched wherever the first occurs
TEXT_LENGTH_MAX = 4096  # of the text to match
RULES = f"2 {unicodedata.unidata_version}"  # words and case may change with the version of Unicode

_PIECE = 2048  # characters; longer texts are split into pieces of at least this length
_PIECE_MAX = 1 << 16
_KEPT_MAX = 1 << 22  # characters
_LINE = "\n"  # between two texts, so that no phrase spans both

# Han, kana, bopomofo, hangul, and the extensions of Han beyond the first 65536 characters.
_ALONE = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u318f\u31a0-\u31ff\u3400-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_TOKEN = re.compile(rf"[{_ALONE}]|[^\W{_ALONE}]+")
_PLAIN = re.compile(r"\w+", re.ASCII)  # the same for ASCII texts
_ASKED = re.compile(r'"([^"]*)(?:"|$)(\*?)|([^\s"]+)')
_BREAK = re.compile("[ \t\n\u3000-\u3002]")  # ends a word, and never combines with a mark that follows
_MARKS = re.compile(rf"[\W\uff9e\uff9f]{{{MARKS_MAX + 1},}}")  # all marks are such characters, and others too
_OPENING_MARKS = "\u0f73\u0f75\u0f81\uff9e\uff9f"  # no marks, but they decompose into marks only


class Term(NamedTuple):
    """Words in a row; with `beginning`, the last one is a prefix."""

    words: tuple[str, ...]
    beginning: bool


def tokens(text: str) -> list[str]:
    """The words of a text, in order."""
    return _word_text(text).split()


def word_text(texts: Iterable[str]) -> str:
    """The words of the texts of an item in one string, each between two blanks; empty if there are none."""
    lines: list[str] = []
    room = LENGTH_MAX
    for text in texts:
        line = _word_text(text) if len(text) <= _PIECE else " ".join(_long_word_text(text, room))
        room -= _length(text, line)
        if line:
            lines.append(f" {line} ")
        if room <= 0:
            break
    return _LINE.join(lines)


def _long_word_text(text: str, room: int) -> Iterator[str]:
    for piece in _pieces(text[:room]):
        spelled = WORD_CACHE.word_text(piece)
        if spelled:
            yield spelled
        room -= _length(piece, spelled)
        if room <= 0:
            return


def _length(text: str, spelled: str) -> int:
    """The length that counts against the limit: normalisation may turn one character into eighteen, and adds blanks."""
    return max(len(text), len(spelled) // 2)


def _pieces(text: str) -> Iterator[str]:
    """Split a text where a word ends, if possible: the words of the pieces are those of the text."""
    at = 0
    while at < len(text):
        found = _BREAK.search(text, at + _PIECE, at + _PIECE_MAX)
        end = at + _PIECE_MAX if found is None else found.end()
        yield text[at:end]
        at = end


class WordCache:
    """A cache of the words of pieces of long texts: an edit leaves most pieces as they were."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._size = 0
        self.made = 0  # the number of cache misses

    def word_text(self, piece: str) -> str:
        found = self._known.get(piece)
        if found is None:
            self.made += 1
            found = _word_text(piece)
            if self._size > _KEPT_MAX:
                self._known, self._size = {}, 0
            self._known[piece] = found
            self._size += len(piece) + len(found)
        return found


WORD_CACHE = WordCache()


def _word_text(text: str) -> str:
    if text.isascii():
        words = _PLAIN.findall(text.lower())
    else:
        folded = unicodedata.normalize("NFKC", stream_safe(text)).casefold()
        words = _TOKEN.findall(unicodedata.normalize("NFKC", folded))
    return " ".join([word[:WORD_LENGTH_MAX] for word in words])


def stream_safe(text: str) -> str:
    """A text without marks beyond `MARKS_MAX` in a row. (UAX #15 inserts a joiner between them instead.)"""
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
    """The terms of a text to match, all of which must be found."""
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
    """True if each term is in the words of an item (`word_text`)."""
    return all(needle(term.words, beginning=term.beginning) in spelled for term in wanted)


def needle(words: Iterable[str], *, beginning: bool) -> str:
    """The string to search in `word_text` for these words in a row."""
    return f" {' '.join(words)}{'' if beginning else ' '}"


# -- for FTS5


def to_fts(texts: Iterable[str]) -> str:
    """The encoded words of the texts of an item for FTS5, with an x between two texts; empty if there are none."""
    spelled = word_text(texts).replace(f" {_LINE} ", _LINE).strip(" ")
    return spelled.encode().hex("-").replace("-20-", " ").replace("-0a-", " x ").replace("-", "")


def fts_query(wanted: Sequence[Term]) -> str:
    """The FTS5 expression for some terms."""
    return " AND ".join(f'"{" ".join(map(_hex, term.words))}"{" *" if term.beginning else ""}' for term in wanted)


def _hex(word: str) -> str:
    return word.encode().hex()
