"""`Delta`: the change of a result. Applied to the result before, it gives exactly the result after.

>>> one, two, three = b"1", b"2", b"3"
>>> delta = Delta(added={three: 0}, removed=frozenset({one}))
>>> delta.apply(Result((one, two))).ids
(b'3', b'2')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from antiphon.model.value import Value
from antiphon.query.evaluate import Result


@dataclass(frozen=True, slots=True)
class Delta:
    """Items that entered the result, changed in it, or left it; the first two with their places in the new result.

    A query with an aggregate has no items. Its delta has `aggregate`, the new result. A delta of a subscription with
    values has those of the items that entered or changed, as they were at the moment of the delta.
    """

    added: Mapping[bytes, int] = field(default_factory=dict)  # in the order of the result
    changed: Mapping[bytes, int] = field(default_factory=dict)
    removed: frozenset[bytes] = frozenset()
    aggregate: Result | None = None
    values: Mapping[bytes, Value] = field(default_factory=dict, compare=False)

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed or self.aggregate is not None)

    def apply(self, before: Result) -> Result:
        """Return the result after this change."""
        if self.aggregate is not None:
            return self.aggregate
        stay = iter([item for item in before.ids if item not in self.removed and item not in self.changed])
        placed = {place: item for items in (self.added, self.changed) for item, place in items.items()}
        count = len(before.ids) + len(self.added) - len(self.removed)
        return Result(tuple(placed[at] if at in placed else next(stay) for at in range(count)))
