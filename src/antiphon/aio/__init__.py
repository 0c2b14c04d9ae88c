"""The same names for programs with an event loop: what waits for a disk or for others is a coroutine here.

>>> import asyncio
>>> import antiphon.aio
>>> async def main() -> str:
...     async with await antiphon.aio.open("laptop", name="Ada", unprotected=True) as store:
...         party = await store.create_party("Household")
...         note = await party.run(lambda party: party.text("Hello"))
...         return str(note)
>>> asyncio.run(main())
'Hello'

A store or party here has the blocking one as `blocking`, for everything else: reading an item that is open takes
microseconds, and needs no coroutine. `run` calls a function in a thread.

store   `Store`: listen, connect, open and join parties
party   `Party`: wait for others, subscribe, and run functions beside the loop
waiting `until`: waits in a loop for what threads do
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.exports import lazy_exports

if TYPE_CHECKING:
    from antiphon.aio.party import Party as Party
    from antiphon.aio.store import Store as Store, open as open, sync as sync  # noqa: A004 - as in `antiphon`
else:
    __getattr__, __dir__ = lazy_exports(__name__)
