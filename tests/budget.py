"""Budgets of tests: a small one for every run, and a large one for `make soak`."""

from __future__ import annotations

import os
from typing import TypeVar

import pytest

T = TypeVar("T")

SOAK = os.environ.get("ANTIPHON_SOAK") == "1"

#: Where tests with seeds begin: `make soak` sets it to the time, prints it, and so explores other seeds in each run.
FIRST_SEED = int(os.environ.get("ANTIPHON_FIRST_SEED", "0"))

#: Mark of a test, or of one of its parameters, that runs in `make soak` only.
only_in_soak = pytest.mark.skipif(not SOAK, reason="long, and rarely finds anything: `make soak`")


def budget(usual: T, soak: T) -> T:
    """Return the first value in every run, and the second in `make soak`."""
    return soak if SOAK else usual
