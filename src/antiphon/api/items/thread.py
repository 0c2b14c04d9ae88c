"""`Thread`: an item with a conversation: posts and replies, which can be edited and redacted.

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
    """A conversation. Iterating yields the posts in their order. A post is named by the stamp that `post` returned."""

    __slots__ = ()

    def post(self, body: Any, *, reply_to: Stamp | None = None) -> Stamp:
        """Add a post, or a reply to another one. Return the stamp that names the post. `body` is text or any value."""
        sent_ms = self.party.processor.clock.now_ms()
        return self.item.edit("post", plain(body, self.party), reply_to=reply_to, sent_ms=sent_ms)

    def revise(self, post: Stamp, body: Any) -> None:
        """Replace the body of a post. Everybody who may write to the item can do this; `edited_by` names the feed."""
        self.item.edit("edit", post, plain(body, self.party))

    def redact(self, post: Stamp) -> None:
        """Delete the body of a post; its replies keep their place. Everybody who may write to the item can do this."""
        self.item.edit("redact", post)

    def threads(self) -> list[dict[str, Any]]:
        """List the posts that are no replies, each with its `replies`."""
        found: list[dict[str, Any]] = self.item.read(lambda model, state: model.threads(state))
        return found

    def older(self, *, fetch: Fetch | None = None) -> AsyncIterator[dict[str, Any]]:
        """Yield the posts that the retention policy has removed, newest first, from the snapshots of earlier epochs.

        `fetch` gets missing blobs from a peer. Without it, `MissingBlob` names the first that is missing.
        """
        return older_posts(self.party.processor, bytes(self.id), fetch)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterate over the current posts, in their order."""
        return iter(self.item.value)

    def __len__(self) -> int:
        return len(self.item.value)
