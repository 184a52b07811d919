"""The reasons of findings: why data is still of its class at the end of a way, and what would help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from govtool.functions.facts import key_of, unread_of
from govtool.graph.index import Index
from govtool.model.kinds import EdgeKind
from govtool.policy.classes.masking import is_hash, is_inverse, is_unkeyed, keeps_a_value, may_be_undone, named
from govtool.policy.classes.propagate import Propagation
from govtool.policy.classes.provenance_paths import Arrival
from govtool.policy.classes.taints import Mode
from govtool.policy.classes.threshold import measured_shortfall, shortfall
from govtool.policy.classes.unknown_columns import is_call
from govtool.policy.files.model import Rule
from govtool.policy.files.terms import NONE, Declassify


def unseen(index: Index, node: int, name: str, opaque: bool) -> tuple[str, str]:
    """Explain why a column may be of a class although it is not known, and what helps."""
    dataset = index.dataset_name(index.node_dataset[node])
    if not opaque:
        return (
            f"not all columns of {dataset} are known: {name} may be among them",
            f"ingest the schema of {dataset}, or name its columns instead of *",
        )
    if is_call(dataset):
        called = dataset.rpartition("/")[2].strip('"')
        return (
            f"what {called} returns is not known: {name} may be in it",
            "say in a waiver or an approval what it returns, or fill the dataset by a query that can be read",
        )
    return (
        f"what {dataset} is made of is not known: {name} may be in it",
        f"ingest what defines {dataset}, or say in a waiver or an approval what it holds",
    )


def remedy(declassify: Sequence[Declassify], rule: Rule, name: str, spread: Propagation) -> str:
    """Return the declassifiers that would satisfy a rule for a class."""
    words = []
    for one in declassify:
        if not (one.name in rule.accepted or one.to == NONE) or not spread.lattice.is_a(name, one.from_):
            continue
        if not (_can_be_tried(one, name, spread) and all(map(is_hash, one.means))):
            least = f", groups of {one.min_group_size} or more" if one.kind == "aggregate" else ""
            words.append(f"{one.name} ({', '.join(one.means)}{least})")
    return " or ".join(words)


LISTED_PATTERNS: Final = 3
"""Patterns of an entity that a reason lists; of more it has the number."""


def explain(spread: Propagation, rule: Rule, arrival: Arrival) -> str:
    """Explain the effect of each edge of a way on the class: why none of them ended the matter."""
    index, words = spread.index, []
    name = arrival.state.taint.name
    classes = {name, *spread.lowered(arrival.state.taint)}
    accepted = [
        d
        for d in spread.transfers.declassify
        if (d.name in rule.accepted or d.to == NONE) and any(spread.lattice.is_a(c, d.from_) for c in classes)
    ]
    for edge in arrival.edges:
        functions = index.functions(edge)
        reason = index.reason(edge)
        if reason is not None:
            words.append(f"could not be understood: {reason}")
        tried = [function for function in functions if _is_tried(function, name, accepted, spread)]
        if tried:
            words.append(f"{tried[-1]}() has no key, and the values of {name} are few enough to try")
            continue
        for function in functions:
            words.append(_about(function, accepted, spread, edge, rule))
    taint = arrival.state.taint
    if taint.passed and arrival.state.mode is Mode.VALUE:
        words.append(f"{', '.join(sorted(taint.passed))} is not accepted by {rule.id}")
    if arrival.state.mode is Mode.INFLUENCE:
        words.append("the value itself does not get there, it decides over it")
    return "; ".join(dict.fromkeys(word for word in words if word)) if words else _unchanged(spread, arrival)


def _unchanged(spread: Propagation, arrival: Arrival) -> str:
    if not arrival.edges:
        return "the column itself is of the class"
    copied = all(spread.index.kind(edge) is EdgeKind.IDENTITY for edge in arrival.edges)
    return "copied as it is" if copied else "no function is known that hides it"


def _is_tried(function: str, name: str, accepted: Sequence[Declassify], spread: Propagation) -> bool:
    """Return whether a function hides nothing of a class because all values can be tried."""
    return is_unkeyed(function) and any(
        one.kind == "mask" and named(one.functions, function) and _can_be_tried(one, name, spread) for one in accepted
    )


def _can_be_tried(one: Declassify, name: str, spread: Propagation) -> bool:
    return spread.lattice.is_low_entropy(name) and not one.low_entropy


def _about(function: str, accepted: Sequence[Declassify], spread: Propagation, edge: int, rule: Rule) -> str:
    applied = {
        spread.transfers.declassify[a.declassifier].name
        for a in spread.transfers.of(edge)
        if not a.undone and not a.unsure
    }
    aggregates = (a for a in accepted if a.kind == "aggregate" and named(a.functions, function))
    short = next((aggregate for aggregate in aggregates if aggregate.name not in applied), None)
    if short is not None:
        return _too_small(function, short, spread, edge, rule)
    if any(named(d.functions, function) for d in spread.transfers.declassify if d.name in applied):
        return ""
    keyed = key_of(function)
    if keyed is not None:
        return f"{keyed}() takes the value as its key"
    unread = unread_of(function)
    if unread is not None:
        return f"{unread}() is defined here by a routine whose body is not read"
    if is_inverse(function):
        return f"{function}() gives the value back"
    if any(map(is_inverse, spread.index.functions(edge))) and may_be_undone(function):
        return ""  # the inverse on the same edge undoes it
    return _hidden_by(function)


def _hidden_by(function: str) -> str:
    """How little a function hides that no declassifier names."""
    if keeps_a_value(function):
        return f"{function}() hands on a real value"
    if is_unkeyed(function):
        return f"{function}() is a hash without a key"
    return "" if function == "…" else f"{function}() keeps the value"


def _some(patterns: Sequence[str], rule: Rule) -> str:
    """Patterns of columns, or how many there are, and the command that lists them."""
    if len(patterns) <= LISTED_PATTERNS:
        return ", ".join(patterns)
    return f"any of {len(patterns)} patterns of columns (govtool policy explain {rule.id} lists them)"


def _too_small(function: str, aggregate: Declassify, spread: Propagation, edge: int, rule: Rule) -> str:
    """Why an aggregate does not declassify: its groups are not shown to be large enough."""
    who = f" of {_some(aggregate.entity, rule)}" if aggregate.entity else ""
    measured = spread.transfers.measured.get((edge, spread.transfers.declassify.index(aggregate)))
    if measured is None:
        why = shortfall(spread.index, edge, aggregate)
    else:
        why = measured_shortfall(spread.index, edge, aggregate, measured.group)
    return f"{function}(): groups of at least {aggregate.min_group_size}{who} are not shown" + (why and f": {why}")
