"""`ModelFactory`: the models that this process has code for, by name and version.

An installed package registers its own models by entry points, without further configuration:

    [project.entry-points."antiphon.models"]
    chess = "my_package.chess:ChessModel"

An entry point that cannot be loaded is skipped with a warning: the items of its model stay opaque, all others work.

>>> factory = ModelFactory.standard()
>>> factory.find("antiphon/text", 1).name, factory.find("example/unheard", 1)
('antiphon/text', None)
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any

from antiphon.core.errors import InvalidInput, UnknownModel
from antiphon.model.model import Model

ENTRY_POINTS = "antiphon.models"
MODEL_NAME_SIZE_MAX = 256
_LOG = logging.getLogger("antiphon")


class ModelFactory:
    """Models by (name, version). Registering a model later makes the opaque items of that model readable."""

    def __init__(self, *models: type[Model[Any]]) -> None:
        self._models: dict[tuple[str, int], Model[Any]] = {}
        for model in models:
            self.register(model)

    @classmethod
    def standard(cls) -> ModelFactory:
        """Return a factory with the base collection and the models of installed packages."""
        # Imported here, because the base collection imports `model.model`, which lies beside this module.
        from antiphon.model.array.model import ArrayModel
        from antiphon.model.file import FileModel
        from antiphon.model.messenger.model import MessengerModel
        from antiphon.model.object.model import ObjectModel
        from antiphon.model.text.model import TextModel

        factory = cls(ObjectModel, ArrayModel, TextModel, MessengerModel, FileModel)
        for point in entry_points(group=ENTRY_POINTS):
            try:
                factory.register(point.load())
            except Exception as error:  # the code of any package: one that is broken must not close every store
                package = point.dist.name if point.dist else "an unknown package"
                _LOG.warning("%s: its model %r cannot be loaded; its items stay opaque: %r", package, point.name, error)
        return factory

    def register(self, model: type[Model[Any]]) -> None:
        """Add a model. A different class under the same name and version is refused, because peers would differ."""
        made = model()
        name, version = made.key
        if not 0 < len(name.encode()) <= MODEL_NAME_SIZE_MAX:
            raise InvalidInput(f"a model's name has 1 to {MODEL_NAME_SIZE_MAX} bytes; {name!r} has not")
        if not 0 < version < 1 << 32:
            raise InvalidInput(f"model {name}: a version is an integer from 1 on, not {version!r}")
        if not 0 < made.codec < 1 << 32:
            raise InvalidInput(f"model {name}: a codec is an integer from 1 on, not {made.codec!r}")
        known = self._models.get(made.key)
        if known is not None and type(known) is not model:
            raise InvalidInput(f"model {name} {version} is registered already, as {type(known).__qualname__}")
        self._models[made.key] = made

    def find(self, name: str, version: int) -> Model[Any] | None:
        """Return the model, or None if its code is not here."""
        return self._models.get((name, version))

    def get(self, name: str, version: int | None = None) -> Model[Any]:
        """Return the model, in its newest version by default, or raise `UnknownModel`."""
        versions = [known for known in self._models if known[0] == name and version in (None, known[1])]
        if not versions:
            wanted = name if version is None else f"{name} {version}"
            raise UnknownModel(f"no code for model {wanted} is here; installed: {', '.join(map(str, self)) or 'none'}")
        return self._models[max(versions)]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(f"{name} {version}" for name, version in self._models))

    def __contains__(self, key: tuple[str, int]) -> bool:
        return key in self._models

    @property
    def keys(self) -> frozenset[tuple[str, int]]:
        """Name and version of each model."""
        return frozenset(self._models)

    @property
    def codecs(self) -> tuple[tuple[str, int, int], ...]:
        """Name, version and codec of each model, ascending, as an epoch lists them."""
        return tuple(sorted((*key, model.codec) for key, model in self._models.items()))
