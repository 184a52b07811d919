"""Nodes of the rows of a run's outputs, by the address of a row: ``BestBid@2[B1]``."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from govtool.app.workflow_runs.addresses import called, key_places, matches, parse_address, unknown_row
from govtool.errors import AmbiguousNameError, UnknownNameError

if TYPE_CHECKING:
    from govtool.workflow.modules.run_tuples import OutputTuples

_SHOWN = 20
"""Candidates that a message lists."""


def nodes_of_row(text: str, outputs: Sequence[OutputTuples]) -> tuple[int, ...]:
    """The node of the one row that an address means, and those of its computed cells; candidates are no rows.

    Args:
        text: ``[NODE/]RELATION[@EXECUTION][key]``.
        outputs: The outputs of the executions.

    Raises:
        UsageError: It is no address, or its key does not fit (``usage.address``).
        UnknownNameError: No output has such a row (``usage.unknown-relation``, ``usage.unknown-row``).
        AmbiguousNameError: Several rows are called so (``usage.ambiguous-row``).
    """
    address = parse_address(text)
    own = [each for each in called(outputs, address) if address.execution in (None, each.execution)]
    if not own:
        known = list(dict.fromkeys(map(_name, outputs)))
        raise UnknownNameError(
            f"the run has no output {text.partition('[')[0]}",
            code="usage.unknown-relation",
            nearest=tuple(difflib.get_close_matches(text.partition("[")[0], known, 3, 0.3) or known[:_SHOWN]),
            hint="relations within the workflow: govtool why 'RELATION[key]' --run RUN",
        )
    found = [
        (each, at)
        for each in own
        for places in (key_places(each.columns, address.key),)
        for at, row in enumerate(each.rows[: each.present])
        if matches(row, places)
    ]
    if not found:
        rows = [row for each in own for row in each.rows[: each.present]]
        raise unknown_row(address, own[0].columns, rows)
    if len(found) > 1:
        raise AmbiguousNameError(
            f"{len(found)} rows are called {text!r}",
            code="usage.ambiguous-row",
            nearest=tuple(f"{_name(each)}: node {each.nodes[at]}" for each, at in found[:_SHOWN]),
            hint="name the execution and all columns of the key, or a node by its id",
        )
    output, place = found[0]
    cells = (int(column[place]) for column in output.cells.values())
    return (int(output.nodes[place]), *(cell for cell in cells if cell >= 0))


def _name(output: OutputTuples) -> str:
    return f"{output.node}/{output.relation}@{output.execution}"
