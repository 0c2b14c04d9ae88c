"""The command line: what a home holds, whether it is whole, what was refused, who is in a party, and its epochs.

A home is a folder with `feeds/`, `keys` and `meta.db`. Every command takes `--json` for machines.
"""

from __future__ import annotations

from antiphon.cli.app import main

__all__ = ["main"]
