"""`ModelFactory`: which models this process has code for, by name and version.

Models of your own register by entry point, so that installing a package is enough:

    [project.entry-points."antiphon.models"]
    chess = "my_package.chess:ChessModel"

>>> factory = ModelFactory.standard()
>>> factory.find("antiphon/text", 1).name, factory.find("example/unheard", 1)
('antiphon/text', None)
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any

from antiphon.core.errors import InvalidInput, UnknownModel
from antiphon.model.model import Model

ENTRY_POINTS = "antiphon.models"
MODEL_NAME_SIZE_MAX = 256


class ModelFactory:
    """Models by (name, version). A model that is registered later picks up the items that waited for it."""

    def __init__(self, *models: type[Model[Any]]) -> None:
        self._models: dict[tuple[str, int], Model[Any]] = {}
        for model in models:
            self.register(model)

    @classmethod
    def standard(cls) -> ModelFactory:
        """The base collection, and what installed packages offer."""
        # Imported here: the collection imports the interface beside this module.
        from antiphon.model.array.model import ArrayModel
        from antiphon.model.file import FileModel
        from antiphon.model.messenger.model import MessengerModel
        from antiphon.model.object.model import ObjectModel
        from antiphon.model.text.model import TextModel

        factory = cls(ObjectModel, ArrayModel, TextModel, MessengerModel, FileModel)
        for point in entry_points(group=ENTRY_POINTS):
            factory.register(point.load())
        return factory

    def register(self, model: type[Model[Any]]) -> None:
        """Add a model. Another one under the same name and version is refused: peers would differ."""
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
        return self._models.get((name, version))

    def get(self, name: str, version: int | None = None) -> Model[Any]:
        """A model, of its newest version by default."""
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
        return frozenset(self._models)

    @property
    def codecs(self) -> tuple[tuple[str, int, int], ...]:
        """Name, version and codec of each model, ascending: what an epoch lists."""
        return tuple(sorted((*key, model.codec) for key, model in self._models.items()))
