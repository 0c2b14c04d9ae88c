"""The names of `antiphon.aio`: two stores in one event loop, which nothing blocks."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from antiphon import InvalidInput, aio

SLOW_S = 0.5  # a callback that held the loop so long would be one that waits for a disk, or for another device


def run(main: object, caplog: pytest.LogCaptureFixture) -> None:
    """Run a coroutine in a loop that reports slow callbacks, and expect none."""

    async def watched() -> None:
        loop = asyncio.get_running_loop()
        loop.set_debug(True)
        loop.slow_callback_duration = SLOW_S
        async with asyncio.timeout(120):
            await main  # type: ignore[misc]

    with caplog.at_level(logging.WARNING, "asyncio"):
        asyncio.run(watched())
    assert [record.message for record in caplog.records if record.name == "asyncio"] == []


def test_two_stores_meet_in_one_loop(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with (
            await aio.open(tmp_path / "ada", name="Ada", unprotected=True) as ada,
            await aio.open(tmp_path / "bob", name="Bob", unprotected=True) as bob,
        ):
            party = await ada.create_party("Household")
            await bob.join(await party.run(lambda party: party.invite(bob.blocking.me)))
            address = await ada.listen()
            assert await bob.connect(address)
            assert await party.synced(timeout=60)
            theirs = await bob.party(party.key)
            deltas = theirs.subscribe(type="task")
            assert (await anext(deltas)).added == []
            await party.run(lambda party: party.object({"title": "Plan"}, type="task"))
            assert len((await anext(deltas)).added) == 1
            await deltas.aclose()  # type: ignore[attr-defined]
            assert await theirs.synced(ada.blocking.device, timeout=60)
            assert [peer.device for peer in await bob.peers()] == [ada.blocking.device]
            states = theirs.changes()
            assert all(not one.want for one in await anext(states))
            await states.aclose()  # type: ignore[attr-defined]
            assert await bob.disconnect(address)
            assert await aio.sync(ada, bob) == 0

    run(main(), caplog)


def test_nobody_to_wait_for_is_not_synced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with await aio.open(tmp_path / "ada", unprotected=True) as ada:
            party = await ada.create_party()
            assert not await party.synced(timeout=0.1)
            with pytest.raises(InvalidInput):
                await ada.connect("127.0.0.1:4242")

    run(main(), caplog)


def test_closing_the_store_ends_a_wait(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        ada = await aio.open(tmp_path / "ada", unprotected=True)
        party = await ada.create_party()
        wait = asyncio.create_task(party.synced())
        await asyncio.to_thread(lambda: None)
        await ada.close()
        assert not await wait

    run(main(), caplog)
