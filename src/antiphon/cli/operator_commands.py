"""When a member misbehaves: `antiphon party costs`, `devices`, `ignore`, `heed`, `revoke`, `end-device`, `leave`, ...

And `take-back`, which undoes `leave`.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from antiphon.cli.common import (
    HERE,
    Home,
    Json,
    PartyKey,
    Passphrase,
    one_party,
    out,
    show,
    table,
    writing,
    writing_home,
)
from antiphon.core.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

    from antiphon.api.party import Party
    from antiphon.core.stamp import Stamp

app = typer.Typer()  # its commands become those of `antiphon party`

Who = Annotated[str, typer.Argument(help="The key of an identity in hex, or the beginning of it.")]
Before = Annotated[
    str, typer.Option("--before", help="Only what was written before this message counts: FEED/SEQ, the feed in hex.")
]


@app.command()
def costs(party: PartyKey, home: Home = HERE, passphrase: Passphrase = None, as_json: Json = False) -> None:
    """Show what each identity costs this device, the dearest first. Locks the home.

    `seconds` is the time that folding its messages took just now, if there were new ones.
    """
    with writing(home, party, passphrase) as opened:
        opened.refresh()
        found = opened.operator.costs()
    rows = [
        {**asdict(cost), "identity": cost.identity.hex() if cost.identity else None, "seconds": round(cost.seconds, 6)}
        for cost in found
    ]
    shown = [{**row, "identity": (row["identity"] or "nobody known")[:16]} for row in rows]
    listed = table(list(shown[0]), shown)
    listed.columns[0].no_wrap = True  # the key of an identity must be readable in a narrow terminal, too
    show(as_json, rows, lambda: out.print(listed))


@app.command()
def devices(party: PartyKey, home: Home = HERE, passphrase: Passphrase = None, as_json: Json = False) -> None:
    """Show the devices that have feeds in the party, by identity; `end-device` takes their keys. Locks the home."""
    with writing(home, party, passphrase) as opened:
        opened.refresh()
        found = opened.operator.devices()
    rows = [
        {
            "device": one.device.hex(),
            "identity": one.identity.hex(),
            "name": one.name,
            "control_feeds": [feed.hex() for feed in one.control_feeds],
            "data_feeds": [feed.hex() for feed in one.data_feeds],
            "ended": one.ended,
            "here": one.here,
        }
        for one in found
    ]
    shown = [
        {
            "device": one.device.hex()[:16],
            "identity": one.identity.hex()[:16],
            "name": one.name,
            "data feeds": " ".join(feed.hex()[:8] for feed in one.data_feeds),
            "state": "ended" if one.ended else "this device" if one.here else "",
        }
        for one in found
    ]
    listed = table(list(shown[0]), shown)
    listed.columns[0].no_wrap = True
    show(as_json, rows, lambda: out.print(listed))


@app.command()
def ignore(party: PartyKey, who: Who, home: Home = HERE, passphrase: Passphrase = None, as_json: Json = False) -> None:
    """Ignore what an identity wrote, or one data feed: drop the bodies, and take none again. Locks the home."""
    key, answer = _set_ignored(home, party, passphrase, who, ignored=True)
    show(as_json, answer, lambda: out.print(f"{key.hex()[:16]} is ignored here; `antiphon party heed` takes that back"))


@app.command()
def heed(party: PartyKey, who: Who, home: Home = HERE, passphrase: Passphrase = None, as_json: Json = False) -> None:
    """Ignore somebody no longer. The bodies come back with the next sync. Locks the home."""
    key, answer = _set_ignored(home, party, passphrase, who, ignored=False)
    show(as_json, answer, lambda: out.print(f"{key.hex()[:16]} is no longer ignored here"))


@app.command()
def revoke(
    party: PartyKey,
    who: Who,
    before: Before = "",
    home: Home = HERE,
    passphrase: Passphrase = None,
    as_json: Json = False,
) -> None:
    """End the membership of an identity, with what it wrote from a message on. Locks the home.

    Example: antiphon party revoke 1f3a 77c0 --before 90ab/41
    """
    with writing(home, party, passphrase) as opened:
        key = _named(opened, who)
        opened.revoke(key, before=_stamp(opened, before))
        answer = {"revoked": key.hex(), "refused": len(opened.refused())}
    show(
        as_json, answer, lambda: out.print(f"{key.hex()[:16]} is no member; {answer['refused']} messages do not count")
    )


@app.command("end-device")
def end_device(
    party: PartyKey,
    device: Annotated[str, typer.Argument(help="The key of the device in hex, or the beginning of it.")],
    before: Before = "",
    home: Home = HERE,
    passphrase: Passphrase = None,
    as_json: Json = False,
) -> None:
    """End a device of your identity, such as a stolen one, with what it wrote from a message on. Locks the home."""
    with writing(home, party, passphrase) as opened:
        key = _one(device, {owner.device for owner in _owners(opened)}, "devices")
        opened.operator.end_device(key, before=_stamp(opened, before))
        answer = {"ended": key.hex(), "refused": len(opened.refused())}
    show(as_json, answer, lambda: out.print(f"device {key.hex()[:16]} is ended"))


@app.command()
def leave(party: PartyKey, home: Home = HERE, passphrase: Passphrase = None, as_json: Json = False) -> None:
    """Leave a party on this device: it is neither shown nor synced any more. Its feeds stay. Locks the home."""
    key = one_party(home, party)
    with writing_home(home, passphrase) as store:
        store.leave(key)
    show(as_json, {"left": key.hex()}, lambda: out.print(f"left; `antiphon party take-back {key.hex()[:8]}` returns"))


@app.command("take-back")
def take_back(party: PartyKey, home: Home = HERE, passphrase: Passphrase = None, as_json: Json = False) -> None:
    """Take back a party that was left on this device. Locks the home."""
    key = one_party(home, party)
    with writing_home(home, passphrase) as store:
        taken = store.take_back(bytes(key))
        taken.refresh()
        answer: dict[str, Any] = {"party": key.hex(), "items": taken.status().items}
    show(as_json, answer, lambda: out.print(f"party {key.hex()[:16]}: {answer['items']} items"))


# -- inside


def _set_ignored(
    home: Path, party: str, passphrase: str | None, who: str, *, ignored: bool
) -> tuple[bytes, dict[str, list[str]]]:
    """Ignore an identity or a feed, or heed it again. Return its key, and all that are ignored then."""
    with writing(home, party, passphrase) as opened:
        key = _named(opened, who)
        change = opened.operator.ignore if ignored else opened.operator.heed
        change(key)
        return key, {"ignored": [one.hex() for one in opened.operator.ignored]}


def _owners(party: Party) -> list[Any]:
    with party.processor.locked():
        party.member.refresh()
        return list(party.member.machine.authority.owners().values())


def _named(party: Party, text: str) -> bytes:
    """Return the identity or feed that a beginning of a key names."""
    identities = {owner.identity for owner in _owners(party)} | {one.subject for one in party.members.members}
    return _one(text, identities | {record.feed for record in party.processor.store.feeds(party.key)}, "identities")


def _stamp(party: Party, text: str) -> Stamp | None:
    """Return the stamp of a message that is named by its feed and seq."""
    if not text:
        return None
    feed, _, seq = text.partition("/")
    if not seq.isdecimal():
        raise InvalidInput(f"a message is named by FEED/SEQ, such as 90ab/41, not by {text!r:.80}")
    store = party.processor.store
    return store.block(_one(feed, {record.feed for record in store.feeds(party.key)}, "feeds"), int(seq)).stamp


def _one(text: str, known: set[bytes], what: str) -> bytes:
    found = [bytes(key) for key in known if text and key.hex().startswith(text.lower())]
    if len(found) != 1:
        raise InvalidInput(
            f"{len(found)} {what} of this party begin with {text!r:.80}; `antiphon party` and `antiphon party devices` "
            "list them"
        )
    return found[0]
