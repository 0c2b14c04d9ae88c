"""Handles: the items of a party as Python objects that read and write through to the party.

    handle      `Handle`: name, type, parent, links, history and writers, which every item has
    object      `Object`: a dict with nested maps, sets and counters; `Map`: a dict inside it
    properties  `Properties`: the dict methods of `Object` and `Map`
    nested      read-only lists and dicts inside the values of an item
    list        `List`: a list
    reorder     the fewest moves that bring a list into an order
    text        `Text`: text with marks and embedded items
    thread      `Thread`: a conversation
    file        `File`: a file of any size

In: a `Party` and an `antiphon.party.live.item.Item`. Out: Python values and other handles. A handle has no state of its
own. Handles use the modules at the top of `antiphon.api`, and from `api/query` and `api/typed` only what they return.
"""
