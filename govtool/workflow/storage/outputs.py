"""Output rows of a run, as the cache keeps them beside the graph: JSON, values as answers show them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np  # noqa: TID253 - nodes are arrays; only what reads them imports this

from govtool.records.cells import json_value
from govtool.workflow.modules.run_tuples import OutputTuples


def outputs_text(outputs: Sequence[OutputTuples]) -> str:
    """Outputs as JSON."""
    return json.dumps(
        [
            {
                "execution": each.execution,
                "node": each.node,
                "relation": each.relation,
                "columns": each.columns,
                "rows": [[json_value(value) for value in row] for row in each.rows],
                "present": each.present,
                "nodes": each.nodes.tolist(),
                "cells": {name: nodes.tolist() for name, nodes in each.cells.items()},
                "coming": each.coming,
                "path": each.path,
            }
            for each in outputs
        ],
        ensure_ascii=False,
    )


def outputs_from(text: str) -> tuple[OutputTuples, ...]:
    """The outputs of a text."""
    return tuple(
        OutputTuples(
            **{
                **each,
                "columns": tuple(each["columns"]),
                "rows": [tuple(row) for row in each["rows"]],
                "nodes": np.array(each["nodes"], np.int64),
                "cells": {name: np.array(nodes, np.int64) for name, nodes in each["cells"].items()},
            }
        )
        for each in json.loads(text)
    )
