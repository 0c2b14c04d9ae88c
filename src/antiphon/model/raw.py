"""`RAW`: the model of items whose own model is not used. It accepts every mutation and keeps the messages.

An epoch lists the models that it reifies. Every peer keeps the items of other models as they were, whether it has their
code or not (rule 11). The parts of such an item that belong to the system (parents, deletion, forks, metadata, access)
need no code of the model.
"""

from __future__ import annotations

from typing import Any

from antiphon.core.stamp import Stamp
from antiphon.model.factory import ModelFactory
from antiphon.model.model import Model


class RawModel(Model[None]):
    """Replaces any model. It has no snapshot of its own, so the list of the messages is kept."""

    name = "antiphon/raw"

    def initial(self) -> None:
        return None

    def apply(self, state: None, mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        pass

    def value(self, state: None) -> None:
        return None


class RawFactory(ModelFactory):
    """A factory that returns `RAW` for every name and version."""

    def find(self, name: str, version: int) -> Model[Any] | None:
        return RAW


RAW = RawModel()
RAW_MODELS = RawFactory()
