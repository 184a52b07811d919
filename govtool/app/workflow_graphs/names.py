"""Nodes of a provenance graph as users name them: by id, token of a record, invocation (``M#2``) or row of a run."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np  # noqa: TID253 - graphs are arrays; only what reads them imports this

from govtool.app.records.token_lists import near_tokens
from govtool.app.workflow_graphs.rows import nodes_of_row
from govtool.errors import AmbiguousNameError, UnknownNameError, UsageError
from govtool.workflow import vocabulary as terms

if TYPE_CHECKING:
    from govtool.arrays.sets import Array
    from govtool.workflow.graph import ProvenanceGraph
    from govtool.workflow.modules.run_tuples import OutputTuples

_NAMES_COMPARED = 100_000
"""Names of one kind that are compared with a name that there is not."""
_EXAMPLES = 3


def nodes_called(
    graph: ProvenanceGraph, text: str, name: str, outputs: Callable[[], Sequence[OutputTuples]] = tuple
) -> tuple[int, ...]:
    """Return the node with an id, the one record of this token, that of an invocation, or that of a row of a run.

    The nodes of a row's computed cells follow it.

    Args:
        graph: The graph.
        text: The name of a node: its id, a token, ``M#2``, ``RELATION[key]``.
        name: The name of the graph, for hints.
        outputs: Gives the outputs of a run with their rows.

    Raises:
        UnknownNameError: There is none (``usage.unknown-node``, ``usage.unknown-invocation``, ``usage.unknown-row``).
        AmbiguousNameError: Several records have this token (``usage.ambiguous-node``).
    """
    found = graph.with_id(text)
    if found is not None:
        return (found,)
    records = graph.with_tokens([text]).get(text)
    if records is None:
        invocation = _invocation(graph, text)
        if invocation is not None:
            return (invocation,)
        rows = outputs() if text.endswith("]") else ()
        if not rows:
            raise _unknown_node(graph, text, name)
        return nodes_of_row(text, rows)
    if len(records) > 1:
        raise AmbiguousNameError(
            f"{len(records)} nodes are of the record {text!r}",
            code="usage.ambiguous-node",
            nearest=tuple(map(str, graph.ids_of(records[:5]))),
            hint="name one of them by its id",
        )
    return (int(records[0]),)


def records_called(graph: ProvenanceGraph, tokens: Sequence[str], name: str) -> Array:
    """Return the nodes of records: all of each token; where none has it, the node with this id, or the invocation.

    Args:
        graph: The graph.
        tokens: Tokens of records, ids of nodes, or invocations.
        name: The name of the graph, for hints.

    Raises:
        UnknownNameError: There is no such record or node (``usage.unknown-token``, ``usage.unknown-invocation``).
        UsageError: There are no tokens (``usage.arguments``).
    """
    return np.unique(np.concatenate(_records_of_each(graph, tokens, name)))


def distinct_records(graph: ProvenanceGraph, tokens: Sequence[str], name: str) -> Array:
    """As ``records_called``, each named once: a token and the id of its node are two names of one.

    Raises:
        UnknownNameError: As for ``records_called``.
        UsageError: One is named twice (``usage.token-gone``), or there are none (``usage.arguments``).
    """
    each = _records_of_each(graph, tokens, name)
    every = np.concatenate(each)
    found, counts = np.unique(every, return_counts=True)
    if len(found) < len(every):
        twice = found[counts > 1][0]
        token = [token for token, nodes in zip(tokens, each, strict=True) if twice in nodes][-1]
        raise UsageError(f"token '{token}' is deleted twice: it is gone already", code="usage.token-gone")
    return found


def _records_of_each(graph: ProvenanceGraph, tokens: Sequence[str], name: str) -> list[Array]:
    if not tokens:
        raise UsageError("no record is named", code="usage.arguments", hint="name the token of a record")
    known = graph.with_tokens(tokens)
    found = []
    for token in dict.fromkeys(tokens):
        nodes = known.get(token)
        if nodes is None:
            node = graph.with_id(token)
            node = _invocation(graph, token) if node is None else node
            if node is None:
                raise _unknown_token(graph, token, name)
            nodes = np.array([node], np.int64)
        found.append(nodes)
    return found


def _invocation(graph: ProvenanceGraph, text: str) -> int | None:
    """The node of an invocation, ``MODULE#NUMBER``; None if the text is no such thing.

    Raises:
        UnknownNameError: The module was not invoked so often (``usage.unknown-invocation``).
    """
    module, mark, number = text.rpartition("#")
    if not mark or not (number.isascii() and number.isdigit()) or module not in graph.modules:
        return None
    own = (graph.type == terms.INVOCATION) & (graph.module == list(graph.modules).index(module))
    found = np.flatnonzero(own & (graph.invocation == min(int(number), 2**31 - 1)))
    if len(found):
        return int(found[0])
    numbers = sorted(graph.invocation[own].tolist())
    known = [f"{module}#{each}" for each in numbers]
    raise UnknownNameError(
        f"there is no invocation {text}",
        code="usage.unknown-invocation",
        nearest=tuple(difflib.get_close_matches(text, known, _EXAMPLES, 0.3)),
        hint=f"{module} has the invocations {', '.join(map(str, numbers[:20]))}{' …' if numbers[20:] else ''}"
        if numbers
        else f"{module} has no invocations in this graph",
    )


# ---- names that there are not ---------------------------------------------------------------------------------------


def _unknown_node(graph: ProvenanceGraph, text: str, name: str) -> UnknownNameError:
    known = list(dict.fromkeys([*_ids(graph), *_tokens(graph), *islice(_invocations(graph), _NAMES_COMPARED)]))
    return UnknownNameError(
        f"no node of the graph is called {text!r}",
        code="usage.unknown-node",
        nearest=near_tokens(text, known),
        hint=f"{_numbered(graph)}list them: govtool graph export {name} --format json",
    )


def _unknown_token(graph: ProvenanceGraph, text: str, name: str) -> UnknownNameError:
    tokens = _tokens(graph)
    like = f"records are, for example, {', '.join(tokens[:_EXAMPLES])}; " if tokens else "the graph has no records; "
    return UnknownNameError(
        f"no record or node of the graph is called {text!r}",
        code="usage.unknown-token",
        nearest=near_tokens(text, tokens) or near_tokens(text, _ids(graph)),
        hint=f"{like}list them: govtool graph export {name} --format json",
    )


def _numbered(graph: ProvenanceGraph) -> str:
    """What the ids of nodes are where they are numbers, which have no near ones."""
    return f"nodes are numbered 0 to {graph.node_count - 1:,}; " if graph.ids is None and graph.node_count else ""


def _ids(graph: ProvenanceGraph) -> list[str]:
    if graph.ids is None:
        return []
    return [str(each) for each in graph.ids_of(np.arange(min(graph.node_count, _NAMES_COMPARED)))]


def _tokens(graph: ProvenanceGraph) -> list[str]:
    nodes = graph.tokens()[:_NAMES_COMPARED]
    return list(dict.fromkeys(graph.labels.take(graph.label[nodes].astype(np.int64))))


def _invocations(graph: ProvenanceGraph) -> Iterator[str]:
    for node in np.flatnonzero(graph.type == terms.INVOCATION).tolist():
        yield f"{graph.module_of(node)}#{graph.invocation[node]}"
