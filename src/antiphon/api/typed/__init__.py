"""Typed objects: schemas stored as items of a party, and objects that are checked against them.

    schemas        `Schemas` (`party.schemas`): creates, reads, saves, migrates and checks typed objects
    schema_items   finds and creates the items that hold schemas; which schema belongs to an object
    read_values    remembers the values of an instance when it was read, so that `save` writes only changed fields

In: classes decorated with `antiphon.typed`, and batches to check. Out: `Object`, `Read` and `SchemaViolation`. Uses
`antiphon.schema`, which knows no parties.
"""
