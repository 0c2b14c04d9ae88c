"""`antiphon epoch`: the epochs of a party.

`list`, `status`, `show`, `save` and `policy` without options read. The other commands write, and lock the home.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from antiphon.cli import snapshots
from antiphon.cli.common import (
    HERE,
    Home,
    Json,
    PartyKey,
    Passphrase,
    busy,
    machine_of,
    out,
    reading,
    show,
    table,
    writing,
)
from antiphon.core.errors import InvalidInput
from antiphon.halo.acts.act import Place
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import Policy
from antiphon.party.epochs.listing import EpochRecord, Voter, list_epochs

if TYPE_CHECKING:
    from antiphon.api.party import Party

_SWITCHES = ("liars", "editors_admit")
app = typer.Typer(no_args_is_help=True, help="The epochs of a party: snapshots that its members agree on.")
app.add_typer(snapshots.app)


@app.command("list")
def list_(party: PartyKey, home: Home = HERE, as_json: Json = False) -> None:
    """List the epochs of a party: who attested each, who refused it, and why."""
    rows = [epoch_row(record) for record in list_epochs(machine_of(home, party))]

    def people() -> None:
        names = ["epoch", "term", "state", "created", "messages", "attested", "snapshot"]
        out.print(table(names, rows))
        for row in rows:
            for word in row["refused"]:
                out.print(f"epoch {row['epoch']}: {word['device'][:16]} refused it: {word['reason']}", markup=False)
            if row["reason"]:
                out.print(f"epoch {row['epoch']}, term {row['term']} does not count: {row['reason']}", markup=False)

    show(as_json, rows, people)


@app.command()
def status(party: PartyKey, home: Home = HERE, as_json: Json = False) -> None:
    """Show the state of the next epoch: who declares it, how many messages it would hold, what is missing."""
    machine = machine_of(home, party)
    chain = machine.epochs()
    opened, config = chain.open, chain.open.config
    cut = {} if chain.last is None else chain.last.cut
    data = set(machine.authority.feeds.admitted)
    with reading(home) as store:
        tail = {record.feed: record.length - cut.get(record.feed, 0) for record in store.feeds(machine.party)}
    answer = {
        "final": len(chain.final),
        "open": opened.number,
        "generator": config.generator.hex(),
        "attesters": [device.hex() for device in config.attesters],
        "quorum": config.quorum,
        "proposals": [epoch_row(record) for record in list_epochs(machine) if not record.final],
        "endorsements": [
            {"term": found.claim.term, "candidate": found.claim.candidate.hex(), "device": found.device.hex()}
            for found in opened.endorsements
        ],
        "messages": sum(max(0, count) for feed, count in tail.items() if feed in data),
        "lacks": opened.lacks,
        "conflict": chain.conflict,
    }

    def people() -> None:
        out.print(f"epoch {answer['final']} is final" if chain.final else "no epoch is final yet")
        out.print(f"{answer['messages']} messages came since")
        out.print(
            f"epoch {opened.number}: {len(opened.proposals)} proposed, {config.quorum} of {len(config.attesters)} must "
            f"attest, {config.generator.hex()[:16]} is to declare it"
        )
        for text in filter(None, (opened.lacks, chain.conflict)):
            out.print(text, markup=False)

    show(as_json, answer, people)


@app.command()
def declare(
    party: PartyKey,
    home: Home = HERE,
    raw: Annotated[bool, typer.Option("--raw", help="Keep messages of items whose model has no code here.")] = False,
    passphrase: Passphrase = None,
    as_json: Json = False,
) -> None:
    """Declare an epoch now, if it is this device's turn. Its snapshot is computed here."""
    with writing(home, party, passphrase) as opened, busy(as_json, "computing the snapshot"):
        record = opened.epochs.declare(raw=raw)

    def people() -> None:
        count = f"{len(record.attested)} of {record.needed} attestations are here"
        out.print(f"epoch {record.number} is {'final' if record.final else 'proposed: ' + count}")
        out.print(str(record.snapshot), soft_wrap=True)

    show(as_json, epoch_row(record), people)


@app.command()
def prune(party: PartyKey, home: Home = HERE, passphrase: Passphrase = None, as_json: Json = False) -> None:
    """Delete messages that a final epoch holds, as the policy allows. `antiphon compact` then shrinks the file."""
    with writing(home, party, passphrase) as opened, busy(as_json, "deleting messages"):
        opened.epochs.step()
        number, count = opened.epochs.number, opened.epochs.prune()
    answer = {"epoch": number, "messages": count}
    show(as_json, answer, lambda: out.print(f"{count} messages deleted; the party is based on epoch {number}"))


@app.command()
def step(
    party: PartyKey,
    home: Home = HERE,
    recovered: Annotated[
        bool, typer.Option("--recovered", help="This restored device has received its own messages from all others.")
    ] = False,
    passphrase: Passphrase = None,
    as_json: Json = False,
) -> None:
    """Attest proposed epochs, and switch to the last final one, as far as the data for it is here."""
    with writing(home, party, passphrase) as opened, busy(as_json, "recomputing snapshots"):
        moved = opened.epochs.recover() if recovered else opened.epochs.step()
        answer = _standing(opened) | {"moved": moved}
    show(as_json, answer, lambda: _tell_standing(answer))


@app.command()
def adopt(party: PartyKey, home: Home = HERE, passphrase: Passphrase = None, as_json: Json = False) -> None:
    """Replace this device's items by those of the party's epoch, where they differ. Ends with 1 if none was adopted."""
    with writing(home, party, passphrase) as opened, busy(as_json, "comparing with the epoch"):
        opened.epochs.step()
        adopted = opened.epochs.adopt()
        answer = _standing(opened) | {"adopted": adopted}
    show(as_json, answer, lambda: _tell_standing(answer))
    if not adopted:
        raise typer.Exit(1)


@app.command()
def policy(
    party: PartyKey,
    home: Home = HERE,
    attester: Annotated[
        list[str] | None, typer.Option("--attester", help="A device, or an identity with one. Repeatable.")
    ] = None,
    generator: Annotated[
        str | None, typer.Option("--generator", help="Who declares epochs; `none`: the attester that ranks first.")
    ] = None,
    values: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, as in `epoch_messages=1000`. Repeatable.")
    ] = None,
    passphrase: Passphrase = None,
    as_json: Json = False,
) -> None:
    """Show the policy of a party; with options, change it.

    Example: antiphon epoch policy 1f3a --set epoch_messages=1000 --set keep_epochs=2
    """
    if attester or generator or values:
        changes: dict[str, Any] = _limits(values or [])
        if attester:
            changes["attesters"] = attester
        if generator:
            changes["generator"] = b"" if generator == "none" else generator
        with writing(home, party, passphrase) as opened:
            found = opened.epochs.set_policy(**changes)
    else:
        found = _policy(machine_of(home, party))
    answer = _policy_row(found)

    def people() -> None:
        rows = [{"name": name, "value": value} for name, value in answer.items()]
        out.print(table(["name", "value"], rows))

    show(as_json, answer, people)


# -- inside


def _standing(opened: Party) -> dict[str, Any]:
    """The epoch that this device is based on, and what keeps it from the next."""
    epochs = opened.epochs
    other = epochs.disagreement
    differs = None if other is None else {"epoch": other.number, "theirs": str(other.theirs), "ours": str(other.ours)}
    return {"epoch": epochs.number, "waits_for": epochs.waits_for, "differs": differs}


def _tell_standing(answer: dict[str, Any]) -> None:
    out.print(f"the party is based on epoch {answer['epoch']} here")
    if answer["waits_for"]:
        out.print(f"it waits: {answer['waits_for']}", markup=False, highlight=False)
    if answer["differs"]:
        differs = answer["differs"]
        out.print(f"epoch {differs['epoch']} differs here: {differs['ours']}, not {differs['theirs']}", soft_wrap=True)
        out.print("`antiphon party verify` shows the differences, `antiphon epoch adopt` takes the party's epoch")


def _limits(values: list[str]) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    for text in values:
        name, _, value = text.partition("=")
        switch = name in _SWITCHES
        if switch and value in ("true", "false"):
            limits[name] = value == "true"
        elif not switch and value.isdecimal():
            limits[name] = int(value)
        else:
            wanted = "true or false" if switch else "a number from 0 on"
            raise InvalidInput(f"--set {text!r:.80}: write NAME=VALUE, where the value is {wanted}")
    return limits


def _policy(machine: PartyMachine) -> Policy:
    control = machine.timeframe()
    return machine.at(control).policy(Place(b"", 0, dict(control)))


def _policy_row(found: Policy) -> dict[str, Any]:
    answer: dict[str, Any] = asdict(found)
    del answer["tightens"], answer["cuts"]
    return answer | {"generator": found.generator.hex(), "attesters": [device.hex() for device in found.attesters]}


def epoch_row(record: EpochRecord) -> dict[str, Any]:
    """An epoch as a row of JSON."""
    return {
        "epoch": record.number,
        "term": record.term,
        "state": "final" if record.final else "proposed" if not record.reason else "void",
        "created": _time(record.created_ms),
        "created_ms": record.created_ms,
        "messages": record.messages,
        "snapshot": str(record.snapshot),
        "declared_by": _voter(record.declared_by),
        "attested": [voter.device.hex() for voter in record.attested],
        "refused": [
            {**_voter(word.voter), "reason": word.reason, "computed": str(word.computed) if word.computed else None}
            for word in record.refused
        ],
        "reason": record.reason,
        "needed": record.needed,
    }


def _time(ms: int) -> str | None:
    try:
        return datetime.fromtimestamp(ms / 1_000, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):  # somebody lied
        return None


def _voter(voter: Voter) -> dict[str, str]:
    return {"device": voter.device.hex(), "identity": voter.identity.hex()}
