"""What this machine knows of its parties: kept over restarts, refused where it contradicts itself."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from antiphon.core.errors import InvalidInput, StoreClosed, StoreError, TooLarge
from antiphon.core.keys import PublicKey
from antiphon.halo.credentials.claims import FeedKind
from antiphon.party.store import meta_store
from antiphon.party.store.meta_store import KnownFeed, MetaStore, Subscription, SubscriptionState

PARTY, OTHER = PublicKey(b"p" * 32), PublicKey(b"q" * 32)
FEED, SECOND = PublicKey(b"f" * 32), PublicKey(b"g" * 32)
LAPTOP, PHONE = PublicKey(b"l" * 32), PublicKey(b"m" * 32)


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self, now_ms: int = 1000) -> None:
        self.ms = now_ms

    def now_ms(self) -> int:
        return self.ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "meta.db"


@pytest.fixture
def store(path: Path, clock: Clock) -> Iterator[MetaStore]:
    with MetaStore.open(path, clock=clock) as store:
        yield store


# -- parties


def test_a_party_is_followed_from_its_subscription_on(store: MetaStore) -> None:
    followed = store.subscribe(PARTY, label="Book club", genesis_feed=FEED)

    assert followed == Subscription(PARTY, FEED, "Book club", SubscriptionState.ACTIVE, added_ms=1000)
    assert store.find(PARTY) == followed
    assert store.parties() == store.parties(SubscriptionState.ACTIVE) == (followed,)
    assert store.find(OTHER) is None


def test_results_cannot_be_changed(store: MetaStore) -> None:
    followed = store.subscribe(PARTY, genesis_feed=FEED)

    with pytest.raises(dataclasses.FrozenInstanceError):
        followed.label = "mine"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        store.feeds()[0].genesis = False  # type: ignore[misc]


def test_everything_is_there_after_a_restart(path: Path, clock: Clock) -> None:
    with MetaStore.open(path, clock=clock) as store:
        store.subscribe(PARTY, label="Клуб 📚", genesis_feed=FEED)
        store.subscribe(OTHER)
        store.pause(OTHER)
        store.add_feed(SECOND, PARTY, FeedKind.DATA, device=LAPTOP, written_here=True)
        store.set("theme", {"dark": True})
        store.set("volume", 7, party=PARTY)
        before = contents(store)

    with MetaStore.open(path, clock=Clock(9999)) as store:
        assert contents(store) == before
        assert [known.party for known in store.parties(SubscriptionState.PAUSED)] == [OTHER]


def test_subscribing_again_changes_only_an_unknown_genesis_feed(store: MetaStore, clock: Clock) -> None:
    store.subscribe(PARTY, label="Book club")
    store.pause(PARTY)
    clock.ms = 2000

    again = store.subscribe(PARTY, label="another", genesis_feed=FEED)

    assert again == Subscription(PARTY, FEED, "Book club", SubscriptionState.PAUSED, added_ms=1000)


@pytest.mark.parametrize(
    ("before", "act", "after"),
    [
        (SubscriptionState.ACTIVE, MetaStore.pause, SubscriptionState.PAUSED),
        (SubscriptionState.ACTIVE, MetaStore.resume, SubscriptionState.ACTIVE),
        (SubscriptionState.ACTIVE, MetaStore.forget, SubscriptionState.FORGOTTEN),
        (SubscriptionState.ACTIVE, MetaStore.subscribe, SubscriptionState.ACTIVE),
        (SubscriptionState.PAUSED, MetaStore.pause, SubscriptionState.PAUSED),
        (SubscriptionState.PAUSED, MetaStore.resume, SubscriptionState.ACTIVE),
        (SubscriptionState.PAUSED, MetaStore.forget, SubscriptionState.FORGOTTEN),
        (SubscriptionState.PAUSED, MetaStore.subscribe, SubscriptionState.PAUSED),
        (SubscriptionState.FORGOTTEN, MetaStore.pause, None),
        (SubscriptionState.FORGOTTEN, MetaStore.resume, None),
        (SubscriptionState.FORGOTTEN, MetaStore.forget, SubscriptionState.FORGOTTEN),
        (SubscriptionState.FORGOTTEN, MetaStore.subscribe, None),
        (None, MetaStore.pause, None),
        (None, MetaStore.resume, None),
        (None, MetaStore.forget, None),
        (None, MetaStore.subscribe, SubscriptionState.ACTIVE),
    ],
)
def test_states(
    store: MetaStore,
    before: SubscriptionState | None,
    act: Callable[[MetaStore, bytes], Subscription],
    after: SubscriptionState | None,
) -> None:
    if before is not None:
        store.subscribe(PARTY)
        {SubscriptionState.PAUSED: store.pause, SubscriptionState.FORGOTTEN: store.forget}.get(before, store.resume)(
            PARTY
        )

    if after is None:
        with pytest.raises(StoreError, match="subscribe"):
            act(store, PARTY)
    else:
        assert act(store, PARTY).state is after

    found = store.find(PARTY)
    assert (found and found.state) is (before if after is None else after)


def test_a_forgotten_party_comes_back_only_when_that_is_meant(store: MetaStore, clock: Clock) -> None:
    store.subscribe(PARTY, label="Book club", genesis_feed=FEED)
    store.set("theme", "dark", party=PARTY)
    store.forget(PARTY)
    clock.ms = 2000

    for act in (
        lambda: store.subscribe(PARTY),
        lambda: store.add_feed(SECOND, PARTY),
        lambda: store.set("theme", "light", party=PARTY),
        lambda: store.rename(PARTY, "new"),
        lambda: store.set_genesis_feed(PARTY, FEED),
    ):
        with pytest.raises(StoreError, match="again=True"):
            act()
    assert store.parties(SubscriptionState.ACTIVE) == ()
    assert store.preferences(PARTY) == {}
    assert [known.feed for known in store.feeds(PARTY)] == [FEED], "whoever deletes its blocks must know them"

    back = store.subscribe(PARTY, again=True)
    assert back == Subscription(PARTY, FEED, "Book club", SubscriptionState.ACTIVE, added_ms=2000)


def test_a_party_has_one_genesis_feed(store: MetaStore) -> None:
    store.subscribe(PARTY)
    assert store.set_genesis_feed(PARTY, FEED).genesis_feed == FEED
    assert store.set_genesis_feed(PARTY, FEED).genesis_feed == FEED

    with pytest.raises(InvalidInput, match="one genesis"):
        store.set_genesis_feed(PARTY, SECOND)
    with pytest.raises(InvalidInput, match="one genesis"):
        store.subscribe(PARTY, genesis_feed=SECOND)
    store.forget(PARTY)
    with pytest.raises(InvalidInput, match="one genesis"):
        store.subscribe(PARTY, genesis_feed=SECOND, again=True)

    assert [known.feed for known in store.feeds()] == [FEED], "nothing of what was refused is kept"
    found = store.find(PARTY)
    assert found is not None
    assert found.state is SubscriptionState.FORGOTTEN


def test_labels_are_local_and_bounded(store: MetaStore) -> None:
    store.subscribe(PARTY, label="a")
    assert store.rename(PARTY, "b").label == "b"

    for label, error in (("x" * 201, TooLarge), ("a\x1b[2J", InvalidInput), ("\ud800", InvalidInput)):
        with pytest.raises(error):
            store.rename(PARTY, label)
        with pytest.raises(error):
            store.subscribe(OTHER, label=label)
    assert [known.label for known in store.parties()] == ["b"]


def test_input_is_checked(path: Path, store: MetaStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for act in (store.subscribe, store.pause, store.forget, store.find, store.find_feed, store.feeds):
        with pytest.raises(InvalidInput, match="32 bytes"):
            act(b"short")
    with pytest.raises(InvalidInput, match="clock"), MetaStore.open(path, clock=Clock(-1)) as early:
        early.subscribe(PARTY)
    assert store.parties() == ()

    monkeypatch.setattr(meta_store, "PARTIES_MAX", 1)
    store.subscribe(PARTY)
    with pytest.raises(TooLarge, match="1 parties"):
        store.subscribe(OTHER)
    assert store.subscribe(PARTY).party == PARTY


# -- feeds


def test_what_is_learnt_of_a_feed_adds_up(store: MetaStore) -> None:
    store.subscribe(PARTY)
    assert store.add_feed(FEED, PARTY) == KnownFeed(FEED, PARTY, None, None, False, False)

    store.add_feed(FEED, PARTY, FeedKind.CONTROL)
    store.add_feed(FEED, PARTY, device=LAPTOP)
    store.add_feed(FEED, PARTY, written_here=True)
    store.set_genesis_feed(PARTY, FEED)

    known = KnownFeed(FEED, PARTY, FeedKind.CONTROL, LAPTOP, True, True)
    assert store.add_feed(FEED, PARTY) == store.find_feed(FEED) == known
    assert store.feeds() == store.feeds(PARTY) == (known,)
    assert store.add_feed(FEED, PARTY, written_here=False).written_here is False, "a restored device opens new feeds"
    assert store.find_feed(SECOND) is None


def test_a_feed_belongs_to_one_party_one_device_and_one_kind(store: MetaStore) -> None:
    store.subscribe(PARTY)
    store.subscribe(OTHER)
    known = store.add_feed(FEED, PARTY, FeedKind.DATA, device=LAPTOP)

    with pytest.raises(InvalidInput, match="one party"):
        store.add_feed(FEED, OTHER)
    with pytest.raises(InvalidInput, match="one party"):
        store.set_genesis_feed(OTHER, FEED)
    with pytest.raises(InvalidInput, match="one writer"):
        store.add_feed(FEED, PARTY, device=PHONE)
    with pytest.raises(InvalidInput, match="data feed, not a control feed"):
        store.add_feed(FEED, PARTY, FeedKind.CONTROL)
    with pytest.raises(InvalidInput, match="data feed, not a control feed"):
        store.set_genesis_feed(PARTY, FEED)

    assert store.feeds() == (known,)
    assert {subscription.genesis_feed for subscription in store.parties()} == {None}


def test_a_feed_needs_its_party(store: MetaStore) -> None:
    with pytest.raises(StoreError, match="subscribe"):
        store.add_feed(FEED, PARTY)
    assert store.feeds() == store.feeds(PARTY) == ()


def test_feeds_are_listed_by_party_and_key(store: MetaStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.subscribe(PARTY, genesis_feed=SECOND)
    store.subscribe(OTHER, genesis_feed=LAPTOP)
    store.add_feed(FEED, PARTY)

    assert [(known.feed, known.genesis) for known in store.feeds(PARTY)] == [(FEED, False), (SECOND, True)]
    assert [(known.feed, known.genesis) for known in store.feeds()] == [(FEED, False), (SECOND, True), (LAPTOP, True)]

    monkeypatch.setattr(meta_store, "FEEDS_PER_PARTY_MAX", 2)
    with pytest.raises(TooLarge, match="2 feeds"):
        store.add_feed(PHONE, PARTY)
    assert store.add_feed(PHONE, OTHER).feed == PHONE


@settings(max_examples=settings().max_examples // 4)  # each makes a file, and syncs it
@given(acts=st.lists(st.tuples(st.sampled_from("spraf"), st.sampled_from([PARTY, OTHER])), max_size=12))
def test_any_sequence_of_acts_leads_where_the_rules_say(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, PublicKey]]
) -> None:
    path = tmp_path_factory.mktemp("acts") / "meta.db"
    expected: dict[PublicKey, SubscriptionState] = {}
    with MetaStore.open(path) as store:
        for act, party in acts:
            now = expected.get(party)
            run: Callable[[], object] = {
                "s": lambda party=party: store.subscribe(party),
                "a": lambda party=party: store.subscribe(party, again=True),
                "p": lambda party=party: store.pause(party),
                "r": lambda party=party: store.resume(party),
                "f": lambda party=party: store.forget(party),
            }[act]
            after = next_state(now, act)
            if after is None:
                with pytest.raises(StoreError):
                    run()
            else:
                run()
                expected[party] = after
    with MetaStore.open(path) as store:
        assert {known.party: known.state for known in store.parties()} == expected


def next_state(now: SubscriptionState | None, act: str) -> SubscriptionState | None:
    """The rules, said once more: None where an act is refused."""
    if act in "sa" and (now is None or (now is SubscriptionState.FORGOTTEN and act == "a")):
        return SubscriptionState.ACTIVE
    if now is None or (now is SubscriptionState.FORGOTTEN and act != "f"):
        return None
    return {"p": SubscriptionState.PAUSED, "r": SubscriptionState.ACTIVE, "f": SubscriptionState.FORGOTTEN}.get(
        act, now
    )


# -- sharing


def test_threads_may_share_a_store(store: MetaStore) -> None:
    store.subscribe(PARTY)
    refused: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for index in range(10):
                store.add_feed(bytes((number, index)) * 16, PARTY, FeedKind.DATA)
                store.set(f"{number}", index)
                store.feeds(PARTY)
        except BaseException as error:
            refused.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not refused
    assert len(store.feeds(PARTY)) == 40
    assert store.preferences() == {"0": 9, "1": 9, "2": 9, "3": 9}


def test_a_closed_store_says_so(path: Path) -> None:
    store = MetaStore.open(path)
    store.close()
    store.close()
    for act in (store.parties, store.verify, lambda: store.subscribe(PARTY), lambda: store.get("theme", "dark")):
        with pytest.raises(StoreClosed, match="open it again"):
            act()
    assert store.path == path


def contents(store: MetaStore) -> tuple[object, ...]:
    return store.parties(), store.feeds(), store.preferences(), store.preferences(PARTY)
