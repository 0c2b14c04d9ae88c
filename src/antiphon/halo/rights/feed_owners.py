"""`FeedOwners`: whose each feed is, by the acts that open control feeds and admit data feeds, in force or not."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

from antiphon.halo.acts.act import Act
from antiphon.halo.acts.barren_acts import ADMISSIONS, BarrenActs
from antiphon.halo.acts.grant import Owner
from antiphon.halo.credentials.claims import FeedAdmission, FeedKind
from antiphon.halo.rights.budgets import Budgets


class FeedOwners:
    """The owners of control feeds, which open themselves, and of data feeds, which their device's control feed admits.

    Keys of `admitted` are the data feeds that are known, also those that only another device's control feed names.
    """

    def __init__(self) -> None:
        self.budgets = Budgets()
        self.controls: dict[bytes, Owner] = {}
        self.admitted: dict[bytes, tuple[Owner, ...]] = {}  # every admission of a data feed, oldest first
        self._spent: list[Act] = []  # admissions beyond what their feeds may give, as it is now
        self._aside: dict[bytes, tuple[BarrenActs, int, int]] = {}  # by feed: such admissions, kept as columns
        self._recalled: set[tuple[bytes, int]] = set()  # those of them that count again

    def copy(self) -> FeedOwners:
        """Return owners of their own."""
        made = copy(self)
        made.budgets = self.budgets.copy()
        made.controls, made.admitted, made._aside = dict(self.controls), dict(self.admitted), dict(self._aside)
        made._spent, made._recalled = list(self._spent), set(self._recalled)
        return made

    def set_aside(self, barren: BarrenActs, start: int, stop: int) -> None:
        """Take barren acts of a feed, in [start, stop). Admissions that are within the budget now are recalled."""
        if barren.those(ADMISSIONS, start, stop):
            _, first, last = self._aside.get(barren.feed, (barren, start, stop))
            self._aside[barren.feed] = barren, min(first, start), max(last, stop)
            self._recall(barren, start, stop)

    def _recall(self, barren: BarrenActs, start: int, stop: int) -> None:
        for says in ADMISSIONS:
            for low, high in self.budgets.counting(barren.feed, says):
                for seq in barren.seqs_of((says,), max(low, start), min(high, stop)):
                    if (barren.feed, seq) not in self._recalled:
                        self._recalled.add((barren.feed, seq))
                        act = barren.recall(seq)
                        assert isinstance(act.claim, FeedAdmission)
                        self.admit(act, act.claim, again=True)

    def open(self, act: Act, admission: FeedAdmission) -> bool:
        """Note the owner of a feed. True if what other control feeds of its device have granted may count no more."""
        owner = Owner(admission.identity, admission.device, admission.kind, act)
        if admission.kind is FeedKind.CONTROL:
            self.controls[admission.feed] = owner
        else:
            owners = (*self.admitted.get(admission.feed, ()), owner)
            self.admitted[admission.feed] = tuple(sorted(owners, key=lambda known: known.opened.stamp))
        return self.budgets.open(admission.feed, owner) and admission.kind is FeedKind.CONTROL

    def admit(self, act: Act, admission: FeedAdmission, *, again: bool = False) -> None:
        """Note the admission of a data feed. A control feed admits the data feeds of its own device."""
        repeated = self.is_repeated(act, admission)
        if not again:
            (self.budgets.repeat if repeated else self.budgets.give)(act)
        if self.budgets.spent(act, repeated=repeated):
            self._spent.append(act)
        elif repeated:  # it gives no right, but the feed is known
            self.admitted.setdefault(admission.feed, ())
        else:
            self.open(act, admission)

    def is_repeated(self, act: Act, admission: FeedAdmission) -> bool:
        """True if a control feed admits a data feed of another device: it gives nothing by that."""
        carrier = self.controls.get(act.stamp.feed)
        return carrier is None or (carrier.identity, carrier.device) != (admission.identity, admission.device)

    def is_spent(self, act: Act, admission: FeedAdmission) -> bool:
        """True if the admission of a data feed is beyond what its control feed may give or repeat, as it is now."""
        return self.budgets.spent(act, repeated=self.is_repeated(act, admission))

    def renew(self) -> None:
        """Look again at admissions that were beyond a budget: it counts from another epoch on."""
        for aside in self._aside.values():
            self._recall(*aside)
        spent, self._spent = self._spent, []
        for act in spent:
            assert isinstance(act.claim, FeedAdmission)
            self.admit(act, act.claim, again=True)

    def is_crowded_out(self, feed: bytes) -> bool:
        """True if a data feed was admitted by its device, and too many others before it."""
        owners = self.admitted.get(feed, ())
        return bool(owners) and not any(self.budgets.counts(feed, owner) for owner in owners)

    def __iter__(self) -> Iterator[tuple[bytes, Owner]]:
        yield from self.controls.items()
        yield from ((feed, owner) for feed, owners in self.admitted.items() for owner in owners)
