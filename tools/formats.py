"""Regenerate the examples in docs/design/formats.md with the real encoders, from fixed inputs.

tools/formats.py            rewrite every example on the page
tools/formats.py --check    list the outdated ones, and change nothing
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.example import Example
from tools.examples import examples

PAGE = Path(__file__).resolve().parent.parent / "docs" / "design" / "formats.md"
HEX_DIGITS_A_LINE = 64
TEXT_WIDTH = 100
#: `<!-- example: name -->` and the fence that follows it.
BLOCK = re.compile(r"(^<!-- example: ([a-z0-9-]+) -->\n```\w+\n)(.*?)(^```$)", re.MULTILINE | re.DOTALL)


def shown(example: Example) -> str:
    """An example as on the page: hex, 64 digits a line, or text."""
    if not example.text:
        return "\n".join(textwrap.wrap(example.data.hex(), HEX_DIGITS_A_LINE)) + "\n"
    text = example.data.decode()
    if "\n" not in text:
        text = textwrap.fill(text, TEXT_WIDTH, break_long_words=False, break_on_hyphens=False)
    return text + "\n"


def read(shown: str, example: Example) -> bytes:
    """The bytes of a block of the page."""
    if not example.text:
        return bytes.fromhex(shown)
    return shown.strip().encode() if b"\n" in example.data else " ".join(shown.split()).encode()


def on_page(text: str) -> dict[str, str]:
    """The examples of the page, by name."""
    found = [(match[2], match[3]) for match in BLOCK.finditer(text)]
    twice = {name for name, _ in found if [other for other, _ in found].count(name) > 1}
    if twice or len(found) != text.count("<!-- example: "):
        raise SystemExit(f"{PAGE.name}: named twice, or not followed by a fence: {sorted(twice) or 'see the markers'}")
    return dict(found)


def rewritten(text: str) -> str:
    """Return the page with every example regenerated; an example without a generator is left as it is."""
    made = examples()
    return BLOCK.sub(
        lambda match: match[1] + (shown(made[match[2]]) if match[2] in made else match[3]) + match[4], text
    )


def main(arguments: list[str]) -> int:
    text = PAGE.read_text()
    named, made = on_page(text), examples()
    for name in sorted(named.keys() ^ made.keys()):
        print(f"{name}: {'nobody makes it' if name in named else 'not on the page'}", file=sys.stderr)
    stale = sorted(name for name in named.keys() & made.keys() if named[name] != shown(made[name]))
    if "--check" not in arguments:
        PAGE.write_text(rewritten(text))
    for name in stale:
        print(f"{name}: {'not current' if '--check' in arguments else 'rewritten'}", file=sys.stderr)
    return int(named.keys() != made.keys() or ("--check" in arguments and bool(stale)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
