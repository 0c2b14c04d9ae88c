"""The ledger (docs/SPEC-LEDGER.md) is well formed, maps every line of the specification, and names tests that exist."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
LEDGER = REPO / "docs" / "SPEC-LEDGER.md"
DOCUMENTS = ("000", "001", "002", "003", "004")
STATES = ("✓", "◐", "✗")
COLUMNS = ("where", "what it names", "our answer", "state", "test")

_SECTION = re.compile(r"## (\d{3})_")
_WHERE = re.compile(r"(\d{3}):([1-9]\d*)(?:-([1-9]\d*))?")
_TEST_ID = re.compile(r"`(tests/[\w/]+\.py(?:::\w+){1,2})`")
_SOURCE = r"(?:issue [1-9]\d*|later: [a-z]+)"
_SOURCES = re.compile(rf"{_SOURCE}(?:, {_SOURCE})*")
# A heading, a bullet (also "1." and the terms in bold), a picture; and a TODO anywhere in a line.
_BEGINS_A_ROW = re.compile(r"\s*(?:#|-\s|\*|\d+\.\s|!\[)|.*\bTODO\b")

Seeds = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Place:
    """Lines `first` to `last`, both included and counted from 1, of a document."""

    document: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table; `section` is the number of the document in the heading above it."""

    line: int
    section: str
    cells: tuple[str, ...]

    @property
    def whole(self) -> bool:
        return len(self.cells) == len(COLUMNS)

    @property
    def place(self) -> Place | None:
        match = _WHERE.fullmatch(self.cells[0])
        if match is None:
            return None
        first = int(match[2])
        place = Place(match[1], first, int(match[3] or first))
        return place if place.document in DOCUMENTS and place.first <= place.last else None

    @property
    def state(self) -> str:
        return self.cells[3] if self.whole else ""

    @property
    def test(self) -> str:
        return self.cells[4] if self.whole else ""

    def __str__(self) -> str:
        return f"SPEC-LEDGER.md:{self.line} ({self.cells[0]})"


def parse(text: str) -> list[Row]:
    """All rows of all tables, without their headers."""
    rows: list[Row] = []
    section = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("## "):
            match = _SECTION.match(line)
            section = match[1] if match else ""
        elif line.startswith("|"):
            inner = line.rstrip().removeprefix("|").removesuffix("|")
            cells = tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", inner))
            if cells != COLUMNS and not all(set(cell) <= set("-:") and cell for cell in cells):
                rows.append(Row(number, section, cells))
    return rows


def malformed(rows: Iterable[Row]) -> list[str]:
    found: list[str] = []
    for row in rows:
        if not row.whole:
            found.append(f"{row}: {len(row.cells)} cells, not {len(COLUMNS)}")
            continue
        if row.place is None:
            found.append(f"{row}: `where` is like 000:17 or 000:45-46")
        elif row.place.document != row.section:
            found.append(f"{row}: stands in the table of {row.section or 'no document'}")
        if row.state not in STATES:
            found.append(f"{row}: state {row.state!r} is none of {' '.join(STATES)}")
        found += [f"{row}: {COLUMNS[i]!r} is empty" for i in (1, 2) if not row.cells[i]]
    return found


def without_test(rows: Iterable[Row], root: Path) -> list[str]:
    found: list[str] = []
    for row in rows:
        if row.state in ("✓", "◐"):
            tests = _TEST_ID.findall(row.test)
            if not tests:
                found.append(
                    f"{row}: is {row.state} and names no test like `tests/feed/store/test_feed_store.py::test_name`"
                )
            found += [f"{row}: there is no {test}" for test in tests if not exists(test, root)]
    return found


def without_source(rows: Iterable[Row]) -> list[str]:
    return [
        f"{row}: is ✗ and names no `issue n` or `later: …`, but {row.test!r}"
        for row in rows
        if row.state == "✗" and _SOURCES.fullmatch(row.test) is None
    ]


def exists(test: str, root: Path) -> bool:
    """Whether `path::name` or `path::Class::name` is defined in that file under `root`."""
    path, *names = test.split("::")
    return ".".join(names) in defined(root / path)


@cache
def defined(path: Path) -> frozenset[str]:
    """The functions and classes of a module, and the methods of its classes as `Class.name`."""
    if not path.is_file():
        return frozenset()
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = (inner for inner in node.body if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef))
            names.update(f"{node.name}.{method.name}" for method in methods)
    return frozenset(names)


def unmapped(rows: Iterable[Row], seeds: Seeds) -> list[str]:
    """The lines that are not blank and that no row covers."""
    covered = {
        (place.document, number)
        for place in places(rows)
        for number in range(place.first, min(place.last, len(seeds[place.document])) + 1)
    }
    return [
        f"{document}:{number} is not mapped: {line.strip()[:80]}"
        for document, lines in seeds.items()
        for number, line in enumerate(lines, start=1)
        if line.strip() and (document, number) not in covered
    ]


def beyond_the_end(rows: Iterable[Row], seeds: Seeds) -> list[str]:
    return [
        f"{row}: the document has {len(seeds[row.place.document])} lines"
        for row in rows
        if row.place is not None and row.place.last > len(seeds[row.place.document])
    ]


def without_a_row_of_their_own(rows: Iterable[Row], seeds: Seeds) -> list[str]:
    """The headings, bullets, pictures and TODOs that are not the first line of a row."""
    begun = {(place.document, place.first) for place in places(rows)}
    return [
        f"{document}:{number} begins no row: {line.strip()[:80]}"
        for document, lines in seeds.items()
        for number, line in enumerate(lines, start=1)
        if _BEGINS_A_ROW.match(line) and (document, number) not in begun
    ]


def places(rows: Iterable[Row]) -> list[Place]:
    return [row.place for row in rows if row.place is not None]


def report(found: list[str]) -> str:
    return "\n".join([f"{len(found)} found:", *found])


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    parsed = parse(LEDGER.read_text(encoding="utf-8"))
    assert {row.section for row in parsed} == set(DOCUMENTS), "one table for each document"
    return parsed


@pytest.fixture(scope="module")
def seeds() -> Seeds:
    named = os.environ.get("ANTIPHON_SEEDS")
    folder = Path(named) if named else REPO.parent / "shared" / "seeds"
    if not folder.is_dir():
        pytest.skip("the specification is not here: name its folder in ANTIPHON_SEEDS")
    found: dict[str, tuple[str, ...]] = {}
    for document in DOCUMENTS:
        (path,) = folder.glob(f"{document}_*.txt")
        found[document] = tuple(path.read_text(encoding="utf-8").split("\n"))
        if found[document][-1] == "":
            found[document] = found[document][:-1]
    return found


def test_rows_are_well_formed(rows: list[Row]) -> None:
    found = malformed(rows)
    assert not found, report(found)


def test_what_works_names_tests_that_exist(rows: list[Row]) -> None:
    found = without_test(rows, REPO)
    assert not found, report(found)


def test_what_is_missing_names_what_brings_it(rows: list[Row]) -> None:
    found = without_source(rows)
    assert not found, report(found)


def test_every_line_of_the_seeds_is_mapped(rows: list[Row], seeds: Seeds) -> None:
    found = unmapped(rows, seeds)
    assert not found, report(found)


def test_no_row_names_a_line_beyond_its_document(rows: list[Row], seeds: Seeds) -> None:
    found = beyond_the_end(rows, seeds)
    assert not found, report(found)


def test_headings_bullets_and_todos_begin_a_row(rows: list[Row], seeds: Seeds) -> None:
    found = without_a_row_of_their_own(rows, seeds)
    assert not found, report(found)


# The checks themselves: each finds the fault that it is for.

_TABLE = "## 000_seed.txt\n\n| where | what it names | our answer | state | test |\n|---|---|---|---|---|\n"
_SEED: Seeds = {"000": ("# Title", "", "- a bullet", "  and its end", "text", "more TODO text")}


def table(*lines: str) -> list[Row]:
    return parse(_TABLE + "\n".join(lines))


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("| 000:1 | a title | an answer | ✗ |", "4 cells, not 5"),
        ("| 000 | a title | an answer | ✗ | issue 2 |", "`where` is like"),
        ("| 000:3-1 | a title | an answer | ✗ | issue 2 |", "`where` is like"),
        ("| 005:1 | a title | an answer | ✗ | issue 2 |", "`where` is like"),
        ("| 001:1 | a title | an answer | ✗ | issue 2 |", "in the table of 000"),
        ("| 000:1 | a title | an answer | ✓? | ? |", "state '✓?'"),
        ("| 000:1 |  | an answer | ✗ | issue 2 |", "'what it names' is empty"),
        ("| 000:1 | a title |  | ✗ | issue 2 |", "'our answer' is empty"),
    ],
)
def test_a_malformed_row_is_found(line: str, fault: str) -> None:
    (found,) = malformed(table(line))
    assert fault in found


def test_a_good_row_passes_every_check() -> None:
    here = "tests/docs/test_ledger.py"
    good = table(
        "| 000:1 | a title | an answer | ✗ | issue 12, later: mesh |",
        rf"| 000:3-4 | a \| b | an answer | ◐ | `{here}::Row::place`, `{here}::parse`; rest: issue 5 |",
    )
    assert malformed(good) == without_test(good, REPO) == without_source(good) == []


@pytest.mark.parametrize("state", ["✓", "◐"])
@pytest.mark.parametrize(
    ("test", "fault"),
    [
        ("?", "names no test"),
        ("issue 2", "names no test"),
        ("`tests/docs/test_nowhere.py::test_a`", "there is no tests/docs/test_nowhere.py::test_a"),
        ("`tests/docs/test_ledger.py::test_nothing`", "there is no tests/docs/test_ledger.py::test_nothing"),
        ("`tests/docs/test_ledger.py::Row::nothing`", "there is no tests/docs/test_ledger.py::Row::nothing"),
        ("`tests/docs/test_ledger.py::parse`, `tests/docs/test_ledger.py::gone`", "test_ledger.py::gone"),
    ],
)
def test_a_test_that_is_not_there_is_found(state: str, test: str, fault: str) -> None:
    (found,) = without_test(table(f"| 000:1 | a title | an answer | {state} | {test} |"), REPO)
    assert fault in found


@pytest.mark.parametrize("source", ["", "?", "soon", "issue", "issue 3 and more", "later:"])
def test_a_missing_source_is_found(source: str) -> None:
    assert len(without_source(table(f"| 000:1 | a title | an answer | ✗ | {source} |"))) == 1


def test_lines_left_out_are_found() -> None:
    rows = table("| 000:1-3 | a title | an answer | ✗ | issue 2 |", "| 000:5-9 | a text | an answer | ✗ | issue 2 |")
    assert [line.split()[0] for line in unmapped(rows, _SEED)] == ["000:4"]
    assert [line.split()[0] for line in without_a_row_of_their_own(rows, _SEED)] == ["000:3", "000:6"]
    (beyond,) = beyond_the_end(rows, _SEED)
    assert "(000:5-9): the document has 6 lines" in beyond
