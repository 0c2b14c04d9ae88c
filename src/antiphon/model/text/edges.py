"""Edges of the tree of a text: the first and the last run of a subtree, found without walking down to it.

A run's left edge leads to its first left child, to the first left child of that one, and so on; its right edge to the
last right children. Both may be as long as the text, if a hostile writer wants it. An edge is named when it is first
walked along. From then on its runs refer to one `Edge`, which knows where it ends. A new child may take an edge over:
then one of the two parts gets another name, and the shorter one does. So a run is named again at most as often as its
edge halves. Honest texts have next to no named edges.

A run that has an edge shares it with all runs further along the edge.
"""

from __future__ import annotations

from collections.abc import Callable

from antiphon.model.text.runs import Edge, Run

Above = Callable[[Run], Run | None]  # returns the parent of a run; None above the root


def end_of(run: Run, left: bool) -> Run:
    """Return the first run of the left children of a run and of everything below them, or the last of the right ones.

    It is the run itself if it has no such children.
    """
    edge = _edge(run, left)
    if edge is not None:
        return edge.end
    walked = []
    there = run
    while (further := _outer(there, left)) is not None:
        walked.append(there)
        there = further
        edge = _edge(there, left)
        if edge is not None:
            break
    if not walked:
        return run
    if edge is None:
        edge = Edge(there)
        walked.append(there)
    _name(walked, left, edge)
    return edge.end


def hang_outside(run: Run, parent: Run, before: Run | None, above: Above) -> None:
    """Continue the edge of a parent with a new child, which takes the place of the outermost child `before` if any."""
    left = run.left
    edge = _edge(parent, left)
    if edge is None:
        return
    if before is None:
        edge.end = run
    else:
        upper, lower = [parent], [before]
        while True:
            higher = above(upper[-1]) if upper[-1].left is left else None
            if higher is None or _edge(higher, left) is not edge:
                _name(upper, left, Edge(run))
                break
            upper.append(higher)
            further = _outer(lower[-1], left)
            if further is None:
                _name(lower, left, Edge(edge.end))
                edge.end = run
                break
            lower.append(further)
    _name([run], left, _edge(parent, left))


def _edge(run: Run, left: bool) -> Edge | None:
    return run.left_edge if left else run.right_edge


def _outer(run: Run, left: bool) -> Run | None:
    if left:
        return run.lefts[0] if run.lefts else None
    return run.rights[-1] if run.rights else None


def _name(runs: list[Run], left: bool, edge: Edge | None) -> None:
    for run in runs:
        if left:
            run.left_edge = edge
        else:
            run.right_edge = edge
