"""The database as an application sees it: a store, its parties, and items that feel like Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.exports import lazy_exports

if TYPE_CHECKING:
    from antiphon.api.child_party import ChildParty as ChildParty
    from antiphon.api.invitation import Invitation as Invitation
    from antiphon.api.locator import Locator as Locator
    from antiphon.api.registry import (
        LocalRegistry as LocalRegistry,
        Registry as Registry,
        RegistryEntry as RegistryEntry,
    )

__getattr__, __dir__ = lazy_exports(__name__)
