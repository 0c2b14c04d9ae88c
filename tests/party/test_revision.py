"""Which messages are looked at again when an epoch moves what lies below them."""

from __future__ import annotations

import numpy as np

from antiphon.feed.header import Kind
from antiphon.party.revision import decides


def test_geneses_and_changes_decide_about_other_messages_and_what_commutes_does_not() -> None:
    kinds = np.array([Kind.GENESIS, Kind.MUTATION, Kind.CHANGE, Kind.METADATA], dtype=np.uint8)
    assert decides(kinds).tolist() == [True, False, True, False]
