"""The cache of an `Authority`: answers, kept until an act comes that may change them."""

from __future__ import annotations

from antiphon.halo.acts.grant import Owner
from antiphon.halo.credentials.claims import Cuts, Position


class Answers:
    """Cached answers. Answers about grants depend on grants and narrowings; answers about feeds depend on any act."""

    __slots__ = ("binds", "echoes", "endings", "opened", "owners", "ranked", "valid")

    def __init__(self) -> None:
        self.valid: dict[Position, bool] = {}
        self.binds: dict[tuple[Position, Position], bool] = {}
        self.echoes: dict[tuple[Position, Position], Cuts] = {}
        self.ranked: dict[tuple[bytes, Position, tuple[tuple[bytes, int], ...]], int] = {}  # endings by older grants
        self.owners: dict[bytes, Owner | None] = {}
        self.opened: dict[Position, bool] = {}  # whether a member had the right to open a feed there
        self.endings: dict[tuple[bytes, Position], int] = {}

    def forget_feeds(self) -> None:
        self.owners.clear()
        self.opened.clear()
        self.endings.clear()

    def forget(self) -> None:
        self.valid.clear()
        self.binds.clear()
        self.echoes.clear()
        self.ranked.clear()
        self.forget_feeds()
