"""Text of peers on its way to a terminal or into a folder: which characters command or mislead instead of being seen.

>>> plain_text("invoice\\u202efdp.exe")
'invoice\\\\u202efdp.exe'
"""

from __future__ import annotations

import re

#: Control characters but tab and newline, and marks that change the direction of the text around them.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def is_plain(text: str) -> bool:
    """True if no character of a text commands a terminal, or makes the text look like another."""
    return _CONTROLS.search(text) is None


def plain_text(text: str) -> str:
    """Return a text with every such character in its written form."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
