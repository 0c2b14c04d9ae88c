"""Models: the state machines that give items their meaning, and the fold that every engine calls.

Start reading at `model` for the interface and at `fold` for the way of a message into an item. The names below are
public: `from antiphon.model import Model`. Each is loaded when it is first used.

model          `Model`, `Feeding`, `Discard`: the interface that every model implements
factory        `ModelFactory`: the models of this process, by name and version
value          values that items hold, with one encoding each; `Reference`
wire           protobuf's wire format, written and read by hand; the tags of fields, from the schemas
heard          the last message of each feed that an item has received; tables of feeds; names of messages
word_table     `WordTable`: numbers for names or feeds, kept in one row of bytes
bounds         `Bounds`: the messages of a feed that names cover
undo           a check that the undo of all models shares
object/        `ObjectModel`: nested properties, add-wins sets, counters
array/         `ArrayModel`: lists with moves
text/          `TextModel`: text with marks, embedded items and cursors
messenger/     `MessengerModel`: threads of posts
file           `FileModel`: a file whose content is in blobs
message        messages to items: genesis, change, mutation, metadata
access         access lists of items, and the rights that follow from them
access_codec   access lists as protobuf
item_state     `ItemState`: everything that the fold knows of one item
fold           `fold`: (item state, messages) → item state, and a verdict on each message
late_messages  items that keep their messages: roll back to a checkpoint, then apply the late message and later ones
raw            `RAW`: the model of items whose own model is not used
item_codec     snapshots of items, and rows of the item store
epoch_fold     the fold of an item up to the cut of an epoch
relations      links, references and other relations that an item takes part in
fork_chain     the item that a forked item leads to
hierarchy      the tree of parents, derived from the claims of all items
forest         a link-cut tree, for deep hierarchies

In: messages with their stamps, in a causal order. Out: item states, snapshots and verdicts. Nothing here reads a clock
or does I/O. May import `core`, `feed` and `halo`. The models do not import each other, except that a file is an object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.exports import lazy_exports

if TYPE_CHECKING:
    from antiphon.core.errors import InvalidMutation as InvalidMutation
    from antiphon.model.array.model import ArrayModel as ArrayModel
    from antiphon.model.factory import ModelFactory as ModelFactory
    from antiphon.model.file import FileModel as FileModel
    from antiphon.model.messenger.model import MessengerModel as MessengerModel
    from antiphon.model.model import Discard as Discard, Feeding as Feeding, Model as Model, need as need
    from antiphon.model.object.model import ObjectModel as ObjectModel
    from antiphon.model.text.model import TextModel as TextModel
    from antiphon.model.value import Reference as Reference, value_bytes as value_bytes
else:
    __getattr__, __dir__ = lazy_exports(__name__)
