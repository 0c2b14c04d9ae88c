"""`Thread`: an item that is a conversation: posts and replies, which their writers may edit and take back.

>>> import antiphon
>>> with antiphon.open("laptop", unprotected=True) as store:
...     chat = store.create_party().thread()
...     hello = chat.post("Hello?")
...     _ = chat.post("Here!", reply_to=hello)
...     [(post["body"], len(post["replies"])) for post in chat.threads()]
[('Hello?', 1)]
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from antiphon.api.items.handle import Handle, plain
from antiphon.core.stamp import Stamp
from antiphon.party.live.past_epochs import Fetch, older_posts


class Thread(Handle):
    """Posts by the order of their making. A post is named by the stamp that `post` returned."""

    __slots__ = ()

    def post(self, body: Any, *, reply_to: Stamp | None = None) -> Stamp:
        """Say something; the stamp that it returns names the post."""
        sent_ms = self.party.processor.clock.now_ms()
        return self.item.edit("post", plain(body, self.party), reply_to=reply_to, sent_ms=sent_ms)

    def revise(self, post: Stamp, body: Any) -> None:
        """Write another body in a post's place."""
        self.item.edit("edit", post, plain(body, self.party))

    def redact(self, post: Stamp) -> None:
        """Take a post's content away; its place stays, so that replies keep theirs."""
        self.item.edit("redact", post)

    def threads(self) -> list[dict[str, Any]]:
        """The posts that begin threads, each with its `replies`."""
        found: list[dict[str, Any]] = self.item.read(lambda model, state: model.threads(state))
        return found

    def older(self, *, fetch: Fetch | None = None) -> AsyncIterator[dict[str, Any]]:
        """Posts that retention has let go, newest first, from the snapshots of earlier epochs.

        Blobs that are not held are got with `fetch`; without, `MissingBlob` names the first.
        """
        return older_posts(self.party.processor, bytes(self.id), fetch)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The posts of this moment, by the order of their making."""
        return iter(self.item.value)

    def __len__(self) -> int:
        return len(self.item.value)
