"""The budgets of a party. They are part of the format: all peers must count alike, so they never change.

Each counts where order is total: feeds and devices by stamp, grants by their place in a feed. None depends on the order
of arrival, nor on verdicts (docs/design/parties.md has the rule and its reasons).
"""

from __future__ import annotations

DEVICE_FEEDS_MAX = 8  # control feeds of a device in a party, and as many data feeds; the first by stamp count
IDENTITY_DEVICES_MAX = 32  # devices of an identity in a party; the first by stamp count
GIVEN_MAX = 1024  # grants in a control feed, beyond the last final cut, and as many admissions of data feeds
EDITOR_ADMISSIONS_MAX = 64  # admissions of members in a control feed of an editor, beyond the last final cut
