"""Edges of the tree of a text: the first and the last run of a subtree, found without walking down to it.

A run's left edge leads to its first left child, to the first left child of that one, and so on; its right edge to the
last right children. Both may be as long as the text, if a hostile writer wants it. An edge is named when it is first
walked along. From then on its runs refer to one `Edge`, which knows where it ends. A new child may take an edge over:
then one of the two parts gets another name, and the shorter one does. So a run is named again at most as often as its
edge halves. Honest texts have no named edges: a walk of a few steps names none.

A run that has an edge shares it with all runs further along the edge. Walks open no leaves.
"""

from __future__ import annotations

from typing import Protocol

from antiphon.model.text.leaves import AnyRun
from antiphon.model.text.runs import Edge, Run
from antiphon.model.text.siblings import Child, outermost

FEW = 4  # steps of a walk that does not name its edge


class Tree(Protocol):
    """The tree that runs belong to."""

    def peek(self, name: Child) -> AnyRun:
        """Return a run by its name."""

    def above(self, run: AnyRun) -> AnyRun | None:
        """Return the parent of a run; None above the root."""


def end_of(tree: Tree, run: AnyRun, left: bool) -> AnyRun:
    """Return the first run of the left children of a run and of everything below them, or the last of the right ones.

    It is the run itself if it has no such children.
    """
    edge = _edge(run, left)
    if edge is not None:
        return tree.peek(edge.end)
    walked: list[Child] = []
    there = run
    while (further := _outer(there, left)) is not None:
        walked.append(there.name)
        there = tree.peek(further)
        edge = _edge(there, left)
        if edge is not None:
            break
    if len(walked) <= FEW:
        return there if edge is None else tree.peek(edge.end)
    if edge is None:
        edge = Edge(there.name)
        walked.append(edge.end)
    _name(tree, walked, left, edge)
    return tree.peek(edge.end)


def hang_outside(tree: Tree, run: Run, parent: AnyRun, before: Child | None) -> None:
    """Continue the edge of a parent with a new child, which takes the place of the outermost child `before` if any."""
    left = run.left
    edge = _edge(parent, left)
    if edge is None:
        return
    if before is None:
        edge.end = run.name
    else:
        top: AnyRun = parent
        low = tree.peek(before)
        upper, lower = [top.name], [before]
        while True:
            higher = tree.above(top) if top.left is left else None
            if higher is None or _edge(higher, left) is not edge:
                _name(tree, upper, left, Edge(run.name))
                break
            top = higher
            upper.append(top.name)
            further = _outer(low, left)
            if further is None:
                _name(tree, lower, left, Edge(edge.end))
                edge.end = run.name
                break
            low = tree.peek(further)
            lower.append(further)
    _set(run, left, _edge(parent, left))


def _edge(run: AnyRun, left: bool) -> Edge | None:
    return run.left_edge if left else run.right_edge


def _outer(run: AnyRun, left: bool) -> Child | None:
    return outermost(run.lefts if left else run.rights, left)


def _name(tree: Tree, names: list[Child], left: bool, edge: Edge) -> None:
    for name in names:
        _set(tree.peek(name), left, edge)


def _set(run: AnyRun, left: bool, edge: Edge | None) -> None:
    if left:
        run.left_edge = edge
    else:
        run.right_edge = edge
