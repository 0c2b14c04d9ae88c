"""The cache of an `Authority`: answers, kept until an act comes that may change them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from antiphon.core.stamp import Stamp
from antiphon.halo.acts.act import Act
from antiphon.halo.acts.grant import Owner
from antiphon.halo.credentials.claims import Cuts, Position

if TYPE_CHECKING:
    from antiphon.halo.rights.narrowings import Binding, Ends
    from antiphon.halo.rights.policies import Tighter
    from antiphon.halo.rights.runs import NarrowingRun

TIGHTER_MAX = 64  # policies of which is cached what replaces them


class Answers:
    """Cached answers. Answers about grants depend on grants and narrowings; answers about feeds depend on any act."""

    __slots__ = (
        "binding",
        "device_ends",
        "echoes",
        "endings",
        "ends",
        "erased",
        "members",
        "newest",
        "opened",
        "owners",
        "ranked",
        "tighter",
        "valid",
    )

    def __init__(self) -> None:
        self.valid: dict[Position, bool] = {}
        self.binding: dict[tuple[NarrowingRun, Stamp | None, int], Binding] = {}
        self.ends: dict[tuple[NarrowingRun, bytes], Ends] = {}
        self.device_ends: dict[tuple[bytes, bytes, bytes], int] = {}  # by feed, identity and device; until `forget`
        self.echoes: dict[tuple[Position, Position], Cuts | None] = {}
        self.ranked: dict[tuple[bytes, Position, Stamp | None], int] = {}  # endings by older grants
        self.members: dict[tuple[Position, Stamp | None], bool] = {}  # had the opener of a feed a role, by older grants
        self.newest: tuple[bytes, Stamp | None, Stamp | None] | None = None  # an identity, a limit, and the answer
        self.tighter: dict[Position, Tighter] = {}  # by policy: those that replace it past their cuts
        self.owners: dict[bytes, Owner | None] = {}
        self.opened: dict[Position, bool] = {}  # whether a member had the right to open a feed there
        self.endings: dict[tuple[bytes, Position], int] = {}
        self.erased: dict[bytes, frozenset[int]] = {}  # messages of a data feed that are erased

    def copy(self) -> Answers:
        """Return a cache of its own. Runs and the acts that replace a policy are looked at again."""
        made = Answers()
        made.valid = dict(self.valid)
        return made

    def keep_tighter(self, position: Position, known: Tighter) -> None:
        """Keep what replaces a policy; of the last policies only, as each may be replaced by all that follow."""
        self.tighter[position] = known
        if len(self.tighter) > TIGHTER_MAX:
            del self.tighter[next(iter(self.tighter))]

    def forget_feeds(self) -> None:
        self.owners.clear()
        self.opened.clear()
        self.endings.clear()
        self.erased.clear()

    def forget_runs(self) -> None:
        """Forget what depends on the narrowings in a run: there is one more."""
        self.binding.clear()
        self.ends.clear()
        self.echoes.clear()
        self.ranked.clear()
        self.members.clear()
        self.tighter.clear()
        self.forget_feeds()

    def forget_since(self, since: Stamp, acts: Mapping[Position, Act]) -> None:
        """Forget answers about grants from a stamp on. Those about older grants do not depend on younger ones.

        Of acts that are not in `acts`, all are forgotten: they were set aside, and somebody has asked about them.
        """
        self.valid = {
            position: known
            for position, known in self.valid.items()
            if position in acts and acts[position].stamp < since
        }
        self.binding = {key: known for key, known in self.binding.items() if key[1] is None or key[1] < since}
        self.ranked = {key: known for key, known in self.ranked.items() if key[2] is None or key[2] < since}
        self.members = {key: known for key, known in self.members.items() if key[1] is None or key[1] < since}
        self.tighter = {position: known for position, known in self.tighter.items() if known.stamp < since}
        self.echoes.clear()
        self.forget_feeds()

    def forget(self) -> None:
        self.valid.clear()
        self.device_ends.clear()
        self.forget_runs()
