"""`RAW`: the model of items whose own is not used. It takes every mutation, does nothing, and the messages are kept.

An epoch lists the models that it reifies; items of any other are kept as they were, by everybody, whether the code is
there or not (rule 11). What is the system's of such an item (parents, deletion, forks, metadata, access) needs no code.
"""

from __future__ import annotations

from typing import Any

from antiphon.core.stamp import Stamp
from antiphon.model.factory import ModelFactory
from antiphon.model.model import Model


class RawModel(Model[None]):
    """Stands for any model. It has no snapshot of its own, so the list of its messages is kept."""

    name = "antiphon/raw"

    def initial(self) -> None:
        return None

    def apply(self, state: None, mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        pass

    def value(self, state: None) -> None:
        return None


class RawFactory(ModelFactory):
    """Finds `RAW` for every name and version."""

    def find(self, name: str, version: int) -> Model[Any] | None:
        return RAW


RAW = RawModel()
RAW_MODELS = RawFactory()
