"""Reaching definitions: assignments of script variables that may be in force at a statement.

A straight line is played in order: an assignment ends those before it. The arms of a branch are played side by side,
and behind it any of them may have been taken; the body of a loop is played again with what it left, as values may come
round; a handler may be come to from anywhere. So nothing that may reach a statement is left out, and what is certainly
overwritten is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from govtool.capture.sql.scripts.control.branches import Path

Live: TypeAlias = dict[str, tuple[int, ...]]
"""The names that stand for variables, each with the statements whose assignments may be in force."""

_PRECISE: Final = 4
"""Loops nested deeper are played once, with all that they assign."""


class VariableStep(NamedTuple):
    """The effect of one statement on variables."""

    number: int
    """The number of the statement."""
    path: Path
    names: tuple[str, ...]
    """The variables that it declares or assigns."""
    keeps: bool = False
    """True if earlier values stay possible: only a field is assigned, or it is not certain that anything is."""
    ends: bool = False
    """The names mean nothing any more from here on."""


def reaching(steps: Sequence[VariableStep]) -> dict[int, Live]:
    """Return by statement the variables that are in sight before it, with the statements that may have set them."""
    found: dict[int, Live] = {}
    _walk_steps(list(steps), 0, {}, found, _all(steps))
    return found


def every(steps: Sequence[VariableStep]) -> dict[int, Live]:
    """Like ``reaching``, of statements whose order means nothing: every assignment may reach every statement."""
    live = _all(steps)
    return {step.number: live for step in steps}


def _walk_steps(steps: list[VariableStep], depth: int, live: Live, found: dict[int, Live], every_: Live) -> Live:
    at = 0
    while at < len(steps):
        step = steps[at]
        if len(step.path) <= depth:
            found[step.number] = live
            live = _after(step, live)
            at += 1
            continue
        arm = step.path[depth]
        end = at
        while end < len(steps) and len(steps[end].path) > depth and steps[end].path[depth].branch == arm.branch:
            end += 1
        live = _branch(steps[at:end], depth, live, found, every_)
        at = end
    return live


def _branch(steps: list[VariableStep], depth: int, before: Live, found: dict[int, Live], every_: Live) -> Live:
    arms: dict[int, list[VariableStep]] = {}
    always = loops = False
    handles = steps[0].path[depth].handler
    for step in steps:
        arm = step.path[depth]
        arms.setdefault(arm.number, []).append(step)
        always = always or arm.rest
        loops = loops or arm.loops
    ways = [] if always and len(arms) > max(arms) else [before]
    for items in arms.values():
        begin = _union([before, every_]) if handles else before
        if loops:
            inside = _all(items) if depth >= _PRECISE else _walk_steps(items, depth + 1, before, found, every_)
            begin = _union([before, inside])
        ways.append(_walk_steps(items, depth + 1, begin, found, every_))
    return _union(ways)


def _after(step: VariableStep, live: Live) -> Live:
    if not step.names:
        return live
    live = dict(live)
    for name in step.names:
        if step.ends:
            live.pop(name, None)
        elif step.keeps:
            live[name] = (*live.get(name, ()), step.number)
        else:
            live[name] = (step.number,)
    return live


def _all(steps: Sequence[VariableStep]) -> Live:
    live: Live = {}
    for step in steps:
        if not step.ends:
            for name in step.names:
                live[name] = (*live.get(name, ()), step.number)
    return live


def _union(ways: list[Live]) -> Live:
    if len(ways) == 1:
        return ways[0]
    live: Live = {}
    for way in ways:
        for name, numbers in way.items():
            known = live.get(name)
            live[name] = numbers if known is None else tuple(dict.fromkeys((*known, *numbers)))
    return live
