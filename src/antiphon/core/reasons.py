"""Why something does not count: a text for people that ends with a code for programs.

>>> why = because(Reason.PAST_CUT, "it stands past the cut of its feed")
>>> why
'it stands past the cut of its feed [rights.past-cut]'
>>> code_of(why), text_of(why)
(<Reason.PAST_CUT: 'rights.past-cut'>, 'it stands past the cut of its feed')

The code travels inside the text, so every store, table and message that carries a reason carries its code, and a
message that counts costs nothing. Texts may be reworded at any time. Codes never change their meaning and are never
removed: a new reason gets a new code, under the layer that gives it.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Stable codes of reasons, by the layer that gives them."""

    # A feed: its writer signed something that no peer accepts, or a peer sent what does not verify.
    HEADER = "feed.header"  # a field of a header is out of its bounds
    LAMPORT = "feed.lamport"  # a lamport is not one above what its block has seen, or an entry tells a wrong one
    ENTRIES = "feed.entries"  # the advance entries of a block are malformed
    BATCH = "feed.batch"  # the marks of a batch do not fit
    FORK = "feed.fork"  # its writer signed two histories
    FAULT = "feed.fault"  # beyond a fault of its writer
    FEED_KIND = "feed.kind"  # a control feed that was admitted as a data feed, or the reverse
    SIGNATURE = "feed.signature"  # a head is not signed by the key of its feed
    CHAIN = "feed.chain"  # positions or hashes do not link up
    ENCODING = "feed.encoding"  # bytes are no range of blocks
    BODY = "feed.body"  # a body is not the one that its header names
    OTHER_PARTY = "feed.other-party"  # the feed belongs to another party
    FEED_ENDED = "feed.ended"  # the feed has ended; nothing further is taken
    FEED_UNKNOWN = "feed.unknown"  # no act names the feed, or none is here

    # Blocks that wait, and what this machine lacks. These are no verdicts of the party.
    WAITS_BLOCK = "waits.block"  # for a block that it has seen
    WAITS_BRANCH = "waits.branch"  # for another branch of a forked feed
    WAITS_DELIVERY = "waits.delivery"  # it is not delivered yet
    NO_BODY = "local.no-body"  # its body is not here
    IGNORED = "local.ignored"  # its body is ignored on this machine
    DAMAGED = "local.damaged"  # its bytes have changed on the disk, or are gone
    UNPLANNED = "local.unplanned"  # the party cannot be judged from what is here

    # Acts: a block of a control feed by itself.
    ACT_UNREADABLE = "act.unreadable"  # no credential, or one that breaks its format
    ACT_EXPIRED = "act.expired"
    ACT_UNSIGNED = "act.unsigned"  # not signed by the device that wrote it
    ACT_GENESIS = "act.genesis"  # not the genesis of this party

    # Rights: what the control state of the party does not permit.
    NO_ADMISSION = "rights.no-admission"  # its feed is not admitted, or it has not seen the admission
    PAST_CUT = "rights.past-cut"  # beyond the cut of its feed
    LOST = "rights.lost"  # its writer had the right to it by what it had seen, and something took it away
    ROLE = "rights.role"  # its writer has not the role for it
    NOT_MEMBER = "rights.not-member"
    ADMITS = "rights.admits"  # its issuer may not admit this
    NARROWS = "rights.narrows"  # its issuer may not take this
    ENDS_DEVICE = "rights.ends-device"  # its issuer may not end this device
    ERASES = "rights.erases"  # its issuer may not erase this
    FEED_TAKEN = "rights.feed-taken"  # the feed is another's, or was admitted before
    ITEM_MESSAGES_ONLY = "rights.item-messages-only"  # a credential in a data feed
    ERASED = "rights.erased"  # somebody with the right to it erased the message
    BUDGET = "rights.budget"  # more than a format constant allows for

    # Epochs: votes and geneses that do not count.
    EPOCH_ATTESTER = "epoch.attester"  # its device is no attester
    EPOCH_VOTE = "epoch.vote"  # it contradicts an earlier vote of its device
    EPOCH_GENESIS = "epoch.genesis"  # the genesis does not follow the epoch before it
    EPOCH_PROPOSER = "epoch.proposer"  # its term is another's, or demands another snapshot
    EPOCH_DECIDED = "epoch.decided"  # another snapshot is final
    EPOCH_EARLY = "epoch.early"  # the epoch before it is not final yet

    # Items: the system's part of an item, its access list and its model.
    NO_ITEM = "item.unknown"  # no valid genesis, or it comes later
    ITEM_HIDDEN = "item.hidden"  # the genesis of its item is void, and nobody else has built on it
    ITEM_GENESIS = "item.genesis"  # a second genesis, or one that is not that of its id
    ITEM_ENCODING = "item.encoding"  # not a message to an item
    ITEM_CHANGE = "item.change"  # a change that no item takes
    NOT_NAMED = "access.not-named"  # the access list does not name the writer
    NOT_THEIRS = "access.not-theirs"  # the access list is not the writer's to change
    ACCESS_BUDGET = "access.budget"  # too many changes of one list by one feed
    MODEL = "model.refused"  # the model refuses the mutation
    MODEL_FAILED = "model.failed"  # the code of the model failed

    # Connections between machines: why there is none, or no longer one.
    PIPE_CLOSED = "pipe.closed"  # one of the two ends closed it
    PIPE_LOST = "pipe.lost"  # the network lost it
    DIAL_REFUSED = "dial.refused"  # nothing listens there
    DIAL_UNREACHABLE = "dial.unreachable"  # no way leads there
    DIAL_UNKNOWN_HOST = "dial.unknown-host"  # the name has no address
    DIAL_TIMEOUT = "dial.timeout"  # nothing answered in time

    DOOR_CROWDED = "door.crowded"  # too many connections that have not proven a device, or are strangers
    DOOR_HOST = "door.host"  # too many of them from one address
    DOOR_FULL = "door.full"  # as many connections as this machine allows
    DOOR_SLOW = "door.slow"  # it did not prove a device in time, or no party admitted the device in time
    DOOR_SIZE = "door.size"  # it sent too much before it had proven a device
    DOOR_MADE_ROOM = "door.made-room"  # a newer connection took its place
    DOOR_BANNED = "door.banned"  # its address or device broke the protocol recently

    OTHER = "other"  # a text without a code


_BY_CODE = {str(reason): reason for reason in Reason}


def because(code: Reason, text: str) -> str:
    """Return a reason: the text, and the code at its end."""
    return f"{text} [{code.value}]"


def code_of(reason: str) -> Reason:
    """Return the code at the end of a reason; `OTHER` if it has none."""
    return _BY_CODE.get(_split(reason)[1], Reason.OTHER)


def text_of(reason: str) -> str:
    """Return a reason without its code."""
    text, code = _split(reason)
    return text if code in _BY_CODE else reason


def coded(code: Reason, text: str) -> str:
    """Return a text as it is if it has a code; else with this one."""
    return text if code_of(text) is not Reason.OTHER else because(code, text)


def _split(reason: str) -> tuple[str, str]:
    at = reason.rfind(" [")
    return (reason[:at], reason[at + 2 : -1]) if at >= 0 and reason.endswith("]") else (reason, "")
