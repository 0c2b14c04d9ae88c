"""Fuzz targets: the messages of the replication protocol, and the frames of links."""

from __future__ import annotations

from tools.example import Example
from tools.target import Target

from antiphon.core.v1 import replication_pb2
from antiphon.mesh.link import frames
from antiphon.mesh.replication.codec import decode, encode


def mesh_targets(made: dict[str, Example]) -> dict[str, Target]:
    seeds = tuple(example.data for name, example in made.items() if name.startswith("mesh-"))
    link_seeds = tuple(example.data for name, example in made.items() if name.startswith("link-"))
    return {
        "mesh": Target(decode, encode, seeds, canonical=False, message=replication_pb2.Replication),
        "link": Target(frames.decode, frames.encode, link_seeds),
    }
