"""Generated homes: a peer that opens one finds what the generator says it made."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from antiphon.api.store import Store
from antiphon.core.errors import InvalidInput
from antiphon.feed import limits as feed_limits
from antiphon.feed.store.feed_store import FeedStore
from antiphon.generate.home import generate
from antiphon.generate.options import Options
from antiphon.generate.report import FUTURE, NO_ITEM, NO_MESSAGE, NOT_NAMED, REVOKED, RUBBISH, HomeReport, PartyReport
from antiphon.halo.credentials.claims import GroupAdmission, MemberAdmission
from antiphon.halo.limits import DEVICE_FEEDS_MAX, EDITOR_ADMISSIONS_MAX, GIVEN_MAX, IDENTITY_DEVICES_MAX
from antiphon.model.access import NOT_NAMED as NOT_IN_LIST
from antiphon.model.fold import NO_ITEM as NO_SUCH_ITEM
from antiphon.model.object.model import ObjectModel
from antiphon.model.object.state import ObjectState
from antiphon.party.engine.demux import NOT_AN_ITEM_MESSAGE
from antiphon.party.live.processor import PartyProcessor
from antiphon.party.maintenance.verify_epoch import verify_epoch

USUAL = Options(parties=4, items=160, messages=4_000, epochs=2, bad=0.02)
#: What stands in the reason that a peer gives.
REASONS = {
    RUBBISH: "no mutation",
    NO_ITEM: NO_SUCH_ITEM,
    FUTURE: "it names the message",
    NO_MESSAGE: NOT_AN_ITEM_MESSAGE,
    NOT_NAMED: NOT_IN_LIST,
    REVOKED: "it stands past the cut of its feed [rights.past-cut]",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, HomeReport]:
    """One that the tests here only read from."""
    folder = tmp_path_factory.mktemp("homes") / "home"
    return folder, generate(folder, USUAL)


@pytest.fixture(scope="module")
def store(home: tuple[Path, HomeReport]) -> Iterator[Store]:
    with Store.open(home[0], unprotected=True) as opened:
        yield opened


def processor_of(store: Store, made: PartyReport) -> PartyProcessor:
    party = store.party(made.party)
    party.refresh()
    return party.processor


def check(store: Store, made: PartyReport) -> None:
    """The live engine makes of a party what the report says."""
    processor = processor_of(store, made)
    refused = {(one.feed, one.seq): one.reason for one in processor.refused(1_000_000)}
    models = Counter(processor.item(item).model[0] for item in processor.items())

    assert not processor.status().blocked
    assert processor.status().epoch == made.epochs
    assert (len(processor.items()), models) == (made.items, made.models)
    assert set(refused) == set(made.listed)
    assert [refused[place] for place, why in made.listed.items() if REASONS[why] not in refused[place]] == []


def digests(folder: Path) -> dict[str, str]:
    """Of every byte of every feed."""
    with FeedStore.open(folder / "feeds", readonly=True) as feeds:
        return {
            record.feed.hex(): sha256(b"".join(span.encode() for span in feeds.spans(record.feed))).hexdigest()
            for record in feeds.feeds()
        }


# -- what a peer finds


def test_every_feed_verifies(home: tuple[Path, HomeReport]) -> None:
    with FeedStore.open(home[0] / "feeds", readonly=True) as feeds:
        for record in feeds.feeds():
            feeds.verify(record.feed)
        assert sum(record.length for record in feeds.feeds()) > USUAL.messages


def test_the_data_feeds_hold_as_many_messages_as_were_asked_for(home: tuple[Path, HomeReport], store: Store) -> None:
    held = 0
    for made in home[1].parties:
        lanes = store.party(made.party).member.machine.authority.feeds.admitted
        lengths = {record.feed: record.length for record in store.manager.feeds.feeds(made.party)}
        held += sum(lengths.get(feed, 0) for feed in lanes)

    assert held == home[1].messages == USUAL.messages
    assert home[1].row()["items"] == USUAL.items


@pytest.mark.parametrize("index", range(USUAL.parties))
def test_the_live_engine_finds_the_items_and_refusals_of_the_report(
    home: tuple[Path, HomeReport], store: Store, index: int
) -> None:
    check(store, home[1].parties[index])


def test_all_that_can_be_wrong_is_there(home: tuple[Path, HomeReport]) -> None:
    row = home[1].row()

    assert set(row["refused"]) == set(REASONS)
    assert row["forked_feeds"] > 1
    assert row["beyond_forks"] > 2
    assert set(row["kinds"]) == {"change", "credential", "genesis", "metadata", "mutation"}
    assert set(row["models"]) == {f"antiphon/{name}" for name in ("array", "file", "messenger", "object", "text")}
    assert min(row["links"], row["views"], row["batches"], row["epochs"], row["guarded"]) > 0


def test_forked_feeds_are_cut_where_it_was_said_and_control_feeds_tell_of_it(
    home: tuple[Path, HomeReport], store: Store
) -> None:
    forks = {feed: bounds for made in home[1].parties for feed, bounds in made.forks.items()}
    feeds = store.manager.feeds
    told = {
        feed: end for made in home[1].parties for feed, end in store.party(made.party).member.machine.fork_ends.items()
    }

    assert {feed: (feeds.record(feed).valid_length, feeds.record(feed).length) for feed in forks} == forks
    assert told == {feed: end for feed, (end, _) in forks.items()}


def test_writers_have_not_always_heard_each_other(home: tuple[Path, HomeReport], store: Store) -> None:
    model, conflicts = ObjectModel(), 0
    for made in home[1].parties:
        processor = processor_of(store, made)
        for item in processor.items(model.name):
            with processor.locked() as engine:
                found = engine.find(item)
            assert found is not None
            assert isinstance(found.state, ObjectState)
            conflicts += sum(1 for key in model.value(found.state) if model.conflicts(found.state, key))
            # Nothing waits for what it named: whoever wrote it had seen that.
            assert not found.state.kept.feeds

    assert conflicts > 0


def test_the_epochs_are_what_their_messages_make_and_two_devices_say_so(
    home: tuple[Path, HomeReport], store: Store
) -> None:
    with_epochs = [made for made in home[1].parties if made.epochs]
    for made in with_epochs:
        party = store.party(made.party)
        chain = party.member.machine.epochs()
        assert len(chain.final) == made.epochs == USUAL.epochs
        assert all(len(voices) == 2 for voices in chain.votes)
        assert verify_epoch(party.processor, party.member.machine, full=True).right
        lengths = {record.feed: record.length for record in store.manager.feeds.feeds(made.party)}
        assert any(lengths.get(feed, 0) > length for feed, length in made.cut.items())

    assert with_epochs


def test_the_founder_goes_on_writing_and_others_feeds_are_not_its_own(tmp_path: Path) -> None:
    made = generate(tmp_path / "home", Options(parties=1, items=10, messages=200, epochs=1)).parties[0]
    with Store.open(tmp_path / "home", unprotected=True) as store:
        party = store.party("party 0")
        before = store.manager.feeds.feeds(made.party)

        party.list(["salt"], name="Groceries")

        grown = {record.feed for record in store.manager.feeds.feeds(made.party)} - {record.feed for record in before}
        assert not grown
        assert [record.writable for record in before].count(True) == 2
        assert not any(record.retired for record in before)
        assert len(party.processor.items()) == made.items + 1


def test_a_hot_item_gets_its_share(tmp_path: Path) -> None:
    made = generate(tmp_path / "home", Options(parties=2, items=40, messages=4_000, epochs=0, hot=0.5))

    assert 0.45 < made.parties[0].hottest / made.messages < 0.65


def test_a_plain_home_has_objects_alone(tmp_path: Path) -> None:
    made = generate(tmp_path / "home", Options(parties=2, items=30, messages=400, epochs=0, bad=0.0, plain=True))

    assert made.row()["models"] == {"antiphon/object": 30}
    with Store.open(tmp_path / "home", unprotected=True) as store:
        for party in made.parties:
            check(store, party)


def test_with_nothing_bad_nothing_is_refused(tmp_path: Path) -> None:
    made = generate(tmp_path / "home", Options(parties=2, items=20, messages=600, bad=0))
    row = made.row()

    assert (row["refused"], row["forked_feeds"]) == ({}, 0)
    with Store.open(tmp_path / "home", unprotected=True) as store:
        for party in made.parties:
            check(store, party)


# -- one seed, one home

_PROGRAM = """
import sys
from antiphon.generate.home import generate
from antiphon.generate.options import Options
from tests.generate.test_home import digests
from pathlib import Path
generate(sys.argv[1], Options(parties=3, items=60, messages=900, epochs=1, bad=0.02, seed=int(sys.argv[2])))
print(digests(Path(sys.argv[1])))
"""


def digests_made_elsewhere(folder: Path, seed: int, hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    program = [sys.executable, "-c", _PROGRAM, str(folder), str(seed)]
    root = Path(__file__).parents[2]
    done = subprocess.run(program, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    one = digests_made_elsewhere(tmp_path / "one", 7, "1")
    again = digests_made_elsewhere(tmp_path / "again", 7, "2")

    assert one == again
    assert len(one) > 1_000


def test_another_seed_gives_other_feeds(tmp_path: Path) -> None:
    small = Options(parties=1, items=5, messages=50, epochs=0)
    for seed in (1, 2):
        generate(tmp_path / str(seed), Options(**{**{f: getattr(small, f) for f in small.__slots__}, "seed": seed}))

    assert digests(tmp_path / "1").keys().isdisjoint(digests(tmp_path / "2"))


# -- any options


@pytest.mark.slow
# Homes cost too much to shrink them.
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(
    parties=st.integers(1, 3),
    items=st.integers(0, 25),
    changes=st.integers(0, 300),
    writers=st.integers(1, 7),
    seed=st.integers(0, 1 << 40),
    epochs=st.integers(0, 2),
    hot=st.sampled_from([0.0, 0.3, 0.9]),
    bad=st.sampled_from([0.0, 0.05, 0.5]),
)
def test_any_home_opens_as_it_was_said(
    parties: int, items: int, changes: int, writers: int, seed: int, epochs: int, hot: float, bad: float
) -> None:
    options = Options(parties, parties + items, parties + items + changes, writers, seed, epochs, hot, bad)
    with tempfile.TemporaryDirectory() as folder:
        made = generate(Path(folder, "home"), options)
        assert (made.messages, made.row()["items"]) == (options.messages, options.items)
        with Store.open(Path(folder, "home"), unprotected=True) as store:
            for party in made.parties:
                check(store, party)


# -- folders


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("mine")

    with pytest.raises(InvalidInput, match="not empty"):
        generate(tmp_path, Options(parties=1, items=1, messages=1))

    assert [path.name for path in tmp_path.iterdir()] == ["letter"]


def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(tmp_path / "home", Options(parties=1, items=10, messages=100, epochs=0), interrupt)

    assert not (tmp_path / "home").exists()


def test_a_home_stays_below_a_tenth_of_each_budget(home: tuple[Path, HomeReport], store: Store) -> None:
    """Or has one of each, where a tenth would be less than one."""
    for made in home[1].parties:
        authority = store.party(made.party).member.machine.authority
        openings = {(feed, owner.device, owner.kind, owner.identity) for feed, owner in authority.feeds}
        feeds = Counter((device, kind) for _, device, kind, _ in openings)
        devices = Counter(identity for _, identity in {(device, identity) for _, device, _, identity in openings})
        acts = store.party(made.party).member.machine.acts()
        given = Counter(act.stamp.feed for act in acts if isinstance(act.claim, MemberAdmission | GroupAdmission))
        for counted, most in ((feeds, DEVICE_FEEDS_MAX), (devices, IDENTITY_DEVICES_MAX), (given, GIVEN_MAX)):
            assert counted
            assert max(counted.values()) <= max(1, most // 10)
        founder = store.party(made.party).member.genesis_feed
        by_editors = [count for feed, count in given.items() if feed != founder]
        assert max(by_editors, default=0) <= EDITOR_ADMISSIONS_MAX // 10


def test_a_home_stays_below_a_tenth_of_each_limit_of_feeds(home: tuple[Path, HomeReport], store: Store) -> None:
    feeds, most = store.manager.feeds, Counter[str]()
    for record in feeds.feeds():
        most["EVIDENCE_SIZE_MAX"] = max(most["EVIDENCE_SIZE_MAX"], len(feeds.fork(record.feed) or b""))
        for span in feeds.spans(record.feed, record.start):
            columns = span.columns
            found = {
                "BODY_SIZE_MAX": columns["body_size"].max(),
                "ADVANCE_MAX": columns["advance"].max(),
                "LAMPORT_MAX": columns["lamport"].max(),
                "SPAN_BLOCKS_MAX": span.count,
                "SPAN_HEADERS_SIZE_MAX": len(span.headers) + len(span.advance),
                "SPAN_SIZE_MAX": span.size,
            }
            most |= Counter({name: int(value) for name, value in found.items()})  # the greater of both
    assert len(most) == 7
    for name, value in most.items():
        assert 0 < value <= getattr(feed_limits, name) // 10, name
