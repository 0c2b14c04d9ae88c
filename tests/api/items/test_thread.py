"""A conversation: posts, replies, revised and redacted posts."""

from __future__ import annotations

from antiphon import Party, Store, Thread, sync


def test_posts_and_replies(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    chat = party.thread(name="Kitchen")
    assert chat, "an empty conversation is there"
    hello = chat.post("Hello?")
    sync(ada, bob)
    there = theirs.item(chat.id, Thread)
    reply = there.post({"text": "Here!"}, reply_to=hello)
    sync(ada, bob)

    assert len(chat) == len(there) == 2
    assert [post["body"] for post in chat] == ["Hello?", {"text": "Here!"}]
    (top,) = chat.threads()
    assert [(post["id"], post["reply_to"]) for post in top["replies"]] == [(reply, hello)]
    assert next(iter(chat))["sent_ms"] > 0


def test_a_post_is_revised_and_redacted(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    chat = party.thread()
    post = chat.post("Helo")
    chat.revise(post, "Hello")
    assert [(one["body"], one["edited"]) for one in chat] == [("Hello", True)]
    chat.redact(post)
    sync(ada, bob)
    there = theirs.item(chat.id, Thread)
    assert [(one["body"], one["redacted"]) for one in there] == [(None, True)]


def test_whoever_may_write_revises_any_post_and_is_named(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    chat = party.thread()
    post = chat.post("Helo")
    sync(ada, bob)
    there = theirs.item(chat.id, Thread)
    there.revise(post, "Hello")
    sync(ada, bob)
    own = there.post("mine").feed
    assert [(one["body"], one["by"], one["edited_by"]) for one in chat] == [("Hello", post.feed, own)]
    assert own != post.feed
