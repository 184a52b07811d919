"""Column lineage for recorded jobs that are made by hand."""

from __future__ import annotations

from govtool.app.datasets.places import path_id
from govtool.model import KIND_BY_LABEL, ColumnRef, Derivation, Edge, OutputColumn, Statement
from govtool.model.columnar import DERIVATIONS, encode
from govtool.store import Changes, Fragment


def derivation(folder, target: str, columns: str, *edges: str, run: str = "") -> Derivation:
    """A derivation of a folder; ``edge``: ``users.email -> email identity [function]``."""
    made = []
    for text in edges:
        source, _, column, kind, *functions = text.split(" ")
        dataset, _, path = source.partition(".")
        ref = ColumnRef(path_id(str(folder / dataset)), path)
        made.append(Edge(ref, column, KIND_BY_LABEL[kind], functions=tuple(functions)))
    statement = Statement(f"{target}{run}", "insert", "spark", "job.py", how="plan", run=run or None)
    outputs = tuple(OutputColumn(name) for name in columns.split())
    return Derivation(path_id(str(folder / target)), "file", "replace", statement, outputs, edges=tuple(made))


def commit_lineage(store, *derivations: Derivation) -> None:
    """Commit derivations as a source of their own."""
    fragment = Fragment("plans", DERIVATIONS, encode(derivations), len(derivations))
    store.commit(
        Changes(retract=("plans",), add=(fragment,)),
        message="plans",
        author="test",
        batch=f"plans:{len(derivations)}:{derivations[-1].target}",
        summary={"statements": len(derivations), "understood": len(derivations)},
    )
