"""An analyzed plan as JSON: what ``toJSON()`` says, without data, and what it leaves out.

``toJSON()`` is one call over py4j whatever the size of a plan, but it loses where files are, what a command writes and
how, and cuts lists of strings at 25: these are asked for, a few calls a table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from govtool.spark.live.job.digest_key import Digests
from govtool.spark.live.jvm.scala import called, safely, sequence
from govtool.spark.live.plans.commands import command_facts
from govtool.spark.live.plans.definitions import definition_facts
from govtool.spark.live.plans.python_functions import functions_of
from govtool.spark.live.plans.relations import LEAVES, leaf_facts
from govtool.spark.live.plans.signature import may_be_unstable, python_calls, signature, unstable_functions
from govtool.spark.live.plans.trimmed import trimmed

MAX_JSON = 64 << 20
"""Characters of a plan as Spark writes it; larger ones are not taken apart."""
MAX_LEAVES = 2000

_PLANS = ("query", "plan", "child", "source", "target")
"""Fields of commands that are plans."""

Json = Any


def captured(plan: Any, digests: Digests | None = None) -> dict[str, Json]:
    """Return ``{"plan": nodes, "leaves": facts, "command": facts}`` of a Catalyst plan behind py4j.

    Beside it stand facts that runs are compared by: ``signature``, ``unstable`` and ``local``.

    Args:
        plan: The analyzed plan.
        digests: Makes digests of its literals; without it, all literals are one.

    Raises:
        ValueError: The plan is too large.
    """
    text = plan.toJSON()
    if len(text) > MAX_JSON:
        raise ValueError("plan-too-large")
    nodes = json.loads(text)
    found: dict[str, Json] = {"plan": trimmed(nodes), "leaves": {}}
    found.update(safely(partial(_compared_by, plan, text, nodes, digests or Digests(b""))) or {})
    if ".PythonUD" in text:
        found["python"] = safely(partial(functions_of, plan, python_calls(nodes)))
    if found["plan"] and found["plan"][0]["c"] in ("CreateVariable", "DropVariable"):
        found["variables"] = safely(partial(_variables, plan)) or []
    _supplement(plan, found["plan"], found["leaves"], [MAX_LEAVES])
    queries = [facts["query"] for facts in found["leaves"].values() if isinstance(facts, dict) and facts.get("query")]
    if queries and "signature" in found:  # what another database answers is work of the plan, too
        found["signature"] += "".join(f"\nquery of a database ‹{query}›" for query in queries)
    command = command_facts(plan) or definition_facts(plan)
    if command:
        found["command"] = command
    elif found["plan"] and found["plan"][0]["c"] == "Union":  # a multi-insert is a union of commands
        commands = [command_facts(child) for child in sequence(plan.children())]
        if all(commands):
            found["commands"] = commands
    return found


def _variables(plan: Any) -> list[str]:
    """The names of the variables that a command makes or ends."""
    return [str(child.identifier().name()) for child in sequence(plan.children())]


def _compared_by(plan: Any, text: str, nodes: Json, digests: Digests) -> dict[str, Json]:
    """Facts that runs are compared by."""
    facts: dict[str, Json] = {"signature": signature(nodes, digests.of)}
    facts["unstable"] = unstable_functions(nodes, digests.of) if may_be_unstable(text) else []
    if any(str(node["class"]).endswith(".LocalRelation") for node in nodes):
        facts["local"] = [digests.of(f"{rows.size()} {rows.hashCode()}") for rows in _local_rows(plan)]
    return facts


def _local_rows(plan: Any) -> Iterator[Any]:
    """The rows that a plan holds itself, relation by relation."""
    for leaf in sequence(plan.collectLeaves()):
        if leaf.getClass().getSimpleName() == "LocalRelation":
            yield leaf.data()


# ---- what the JSON leaves out ---------------------------------------------------------------------------------


def _supplement(plan: Any, nodes: list[dict[str, Json]], leaves: dict[str, Json], budget: list[int]) -> None:
    """Add what is known of the leaves of a plan, of the plans in its commands and of its subqueries.

    Leaves are counted in the order of the JSON, which is that of ``collectLeaves()``; they are marked ``leaf``.
    """
    if not _add_leaves(plan, nodes, leaves, budget):
        return
    _add_projections(plan, nodes, budget)
    for behind, inner in [*_plans_of_command(plan, nodes), *_plans_of_subqueries(plan, nodes)]:
        _supplement(behind, inner, leaves, budget)


def _add_leaves(plan: Any, nodes: list[dict[str, Json]], leaves: dict[str, Json], budget: list[int]) -> bool:
    """Add the facts of a plan's own leaves; return False where the budget did not suffice."""
    own = [node for node in nodes if not node["n"]]
    wanted = [(i, node) for i, node in enumerate(own) if node["c"] in LEAVES]
    behind = sequence(plan.collectLeaves()) if wanted else []
    if len(behind) != len(own):
        return True
    for i, node in wanted:
        if not budget[0]:
            return False
        budget[0] -= 1
        key = str(len(leaves))
        leaves[key] = safely(partial(leaf_facts, behind[i]))
        node["leaf"] = key
    return True


def _add_projections(plan: Any, nodes: list[dict[str, Json]], budget: list[int]) -> None:
    """Add the rows of each Expand, which the JSON does not hold as lists."""
    for path, node in _paths(nodes):
        if node["c"] == "Expand" and not isinstance(node.get("projections"), list) and budget[0]:
            budget[0] -= 1
            rows = safely(partial(_projections_at, plan, path))
            if rows:
                node["projections"] = rows


def _plans_of_command(plan: Any, nodes: list[dict[str, Json]]) -> Iterator[tuple[Any, Json]]:
    """The plans in the fields of a command at the root, each with its nodes."""
    for name in _PLANS:
        inner: Json = nodes[0].get(name) if nodes else None
        if _is_tree(inner):
            behind = safely(partial(called, plan, name))
            if behind is not None:
                yield behind, inner


def _plans_of_subqueries(plan: Any, nodes: list[dict[str, Json]]) -> list[tuple[Any, Json]]:
    """The subqueries of a plan's own expressions, each with its nodes; none where they cannot be matched."""
    subqueries = [inner for node in nodes for inner in _subqueries(node)]
    own = _own_subqueries(plan, nodes) if subqueries else []
    return list(zip(own, subqueries)) if len(own) == len(subqueries) else []


def _paths(nodes: list[dict[str, Json]]) -> Iterator[Any]:
    """Nodes with the way to them: the position of each child from the root."""
    open_: list[list[Any]] = []  # path, children left, position of the next child
    for node in nodes:
        while open_ and not open_[-1][1]:
            open_.pop()
        path: list[int] = []
        if open_:
            path = open_[-1][0] + [open_[-1][2]] if len(open_) < 200 else []
            open_[-1][1] -= 1
            open_[-1][2] += 1
        yield path, node
        open_.append([path, node["n"], 0])


def _at(plan: Any, path: list[int]) -> Any:
    for position in path:
        plan = plan.children().apply(position)
    return plan


def _projections_at(plan: Any, path: list[int]) -> list[list[Json]]:
    expand = _at(plan, path)
    rows = expand.projections()
    if rows.size() * expand.output().size() > MAX_LEAVES:
        return []
    return [[trimmed(json.loads(item.toJSON())) for item in sequence(row)] for row in sequence(rows)]


def _is_tree(value: Json) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and "c" in value[0]


def _subqueries(node: Json) -> Iterator[list[dict[str, Json]]]:
    """The plans of the subqueries in the expressions of a node of a plan, in order."""
    for key, value in node.items():
        if isinstance(value, list) and not (key in _PLANS and _is_tree(value)):
            for tree in _trees(value):
                for expression in tree:
                    inner: Json = expression.get("plan")
                    if _is_tree(inner):
                        yield inner


def _trees(value: list[Json]) -> Iterator[list[dict[str, Json]]]:
    if _is_tree(value):
        yield value
    else:
        for item in value:
            if isinstance(item, list):
                yield from _trees(item)


def _own_subqueries(plan: Any, nodes: list[dict[str, Json]]) -> list[Any]:
    """The subqueries of the nodes of a plan, those within subqueries left out, in the order of the JSON."""
    every = sequence(plan.subqueriesAll())
    direct = sum(1 for node in nodes for _ in _subqueries(node))
    # subqueriesAll: those of the plan's own nodes first, then those within each of them.
    return every[:direct]
