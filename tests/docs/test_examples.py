"""Every Python example in the documents runs, by itself in an empty folder; what must not run is fenced as text."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

REPO = Path(__file__).resolve().parents[2]
SPARK_PAGES = [REPO / "docs" / "pipeline.md"]  # they need a Spark session: tests/pipeline/test_docs.py runs them
DOCS = [page for page in sorted((REPO / "docs").rglob("*.md")) if page not in SPARK_PAGES]
PAGES = [REPO / "README.md", REPO / "CONTRIBUTING.md", *DOCS]
FENCE = re.compile(r"^```python\n(.*?)^```\s*?$", re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    """A block of code; `line` is that of its first line on the page."""

    page: str
    line: int
    code: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def examples_in(page: str, text: str) -> Iterator[Example]:
    for match in FENCE.finditer(text):
        yield Example(page, text.count("\n", 0, match.start(1)) + 1, match[1])


def run_example(example: Example) -> None:
    """Run it as doctest does if it has prompts, and as a script otherwise."""
    names: dict[str, object] = {"__name__": "__main__"}
    if re.search(r"^>>> ", example.code, re.MULTILINE):
        test = doctest.DocTestParser().get_doctest(example.code, names, str(example), example.page, example.line - 1)
        results = doctest.DocTestRunner().run(test)
        assert results.attempted > 0
        assert results.failed == 0, f"{example}: {results.failed} of {results.attempted} failed; printed above"
    else:
        # Lines above it are left empty, so that a traceback names the page's own line.
        padded = "\n" * (example.line - 1) + example.code
        exec(compile(padded, example.page, "exec"), names)  # our own pages


EXAMPLES = [
    example for page in PAGES if page.exists() for example in examples_in(str(page.relative_to(REPO)), page.read_text())
]


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_the_example_runs(example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_example(example)


def test_the_pages_have_examples() -> None:
    assert {"README.md", "docs/design/feeds.md"} <= {example.page for example in EXAMPLES}


SAMPLE = """Text.

```python
x = 1
assert x == 2
```

```python
>>> 1 + 1
3
```

```text
not python
```
"""


def test_a_wrong_example_fails_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    script, session = examples_in("page.md", SAMPLE)
    assert (script.line, session.line) == (4, 9)

    with pytest.raises(AssertionError) as failure:
        run_example(script)
    assert failure.traceback[-1].lineno == 4, "counted from 0"
    with pytest.raises(AssertionError, match="1 of 1 failed"):
        run_example(session)
    assert 'File "page.md", line 9' in capsys.readouterr().out
