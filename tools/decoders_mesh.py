"""Fuzz targets: the messages of the replication protocol."""

from __future__ import annotations

from tools.example import Example
from tools.target import Target

from antiphon.core.v1 import replication_pb2
from antiphon.mesh.replication.codec import decode, encode


def mesh_targets(made: dict[str, Example]) -> dict[str, Target]:
    seeds = tuple(example.data for name, example in made.items() if name.startswith("mesh-"))
    return {"mesh": Target(decode, encode, seeds, message=replication_pb2.Replication)}
