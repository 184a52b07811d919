"""govtool: data-governance impact analysis on one versioned provenance graph.

    >>> import govtool
    >>> graph = govtool.open()                                            # doctest: +SKIP
    >>> graph.impact("crm.users.email", change="drop").to_pandas()        # doctest: +SKIP

Names are imported when they are first used, so that ``import govtool`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module

from govtool.release import __version__

TYPE_CHECKING = False  # type checkers take it for true; importing typing for it would double the cost of this module
if TYPE_CHECKING:
    from govtool import errors
    from govtool.api.erasure import apply_erasure, verify_erasure
    from govtool.api.graph import Graph
    from govtool.api.ingest import ingest_catalog, ingest_dbt, ingest_log, ingest_sql
    from govtool.api.ingest_all import ingest
    from govtool.api.ingest_events import ingest_openlineage, ingest_prov, ingest_spark
    from govtool.api.lineage import lineage
    from govtool.api.notebook import load_ipython_extension, show
    from govtool.api.opening import init, open
    from govtool.api.sources import drop_source, revert_commit
    from govtool.api.why import whatif_delete, why
    from govtool.api.workflow_graph import WorkflowGraph, import_graph, list_graphs, provenance_graph
    from govtool.api.workflow_runs import run_workflow
    from govtool.workflow.modules.definition import module
    from govtool.workflow.modules.module_graph import BoundedLoop
    from govtool.workflow.modules.workflow import Workflow

__all__ = [
    "BoundedLoop",
    "Graph",
    "Workflow",
    "WorkflowGraph",
    "__version__",
    "apply_erasure",
    "drop_source",
    "errors",
    "import_graph",
    "ingest",
    "ingest_catalog",
    "ingest_dbt",
    "ingest_log",
    "ingest_openlineage",
    "ingest_prov",
    "ingest_spark",
    "ingest_sql",
    "init",
    "lineage",
    "list_graphs",
    "load_ipython_extension",
    "module",
    "open",
    "provenance_graph",
    "revert_commit",
    "run_workflow",
    "show",
    "verify_erasure",
    "whatif_delete",
    "why",
]

_PLACES = {
    "BoundedLoop": "govtool.workflow.modules.module_graph",
    "Graph": "govtool.api.graph",
    "Workflow": "govtool.workflow.modules.workflow",
    "WorkflowGraph": "govtool.api.workflow_graph",
    "apply_erasure": "govtool.api.erasure",
    "import_graph": "govtool.api.workflow_graph",
    "ingest": "govtool.api.ingest_all",
    "ingest_catalog": "govtool.api.ingest",
    "ingest_dbt": "govtool.api.ingest",
    "ingest_log": "govtool.api.ingest",
    "ingest_openlineage": "govtool.api.ingest_events",
    "drop_source": "govtool.api.sources",
    "revert_commit": "govtool.api.sources",
    "ingest_prov": "govtool.api.ingest_events",
    "ingest_spark": "govtool.api.ingest_events",
    "ingest_sql": "govtool.api.ingest",
    "init": "govtool.api.opening",
    "lineage": "govtool.api.lineage",
    "list_graphs": "govtool.api.workflow_graph",
    "load_ipython_extension": "govtool.api.notebook",
    "module": "govtool.workflow.modules.definition",
    "open": "govtool.api.opening",
    "provenance_graph": "govtool.api.workflow_graph",
    "run_workflow": "govtool.api.workflow_runs",
    "show": "govtool.api.notebook",
    "verify_erasure": "govtool.api.erasure",
    "whatif_delete": "govtool.api.why",
    "why": "govtool.api.why",
}
"""The module of each name that is imported on first use."""


def __getattr__(name: str) -> object:
    """Import a public name on first use (PEP 562)."""
    if name == "errors":
        return import_module("govtool.errors")
    if name not in _PLACES:
        raise AttributeError(f"module 'govtool' has no attribute {name!r}")
    value = getattr(import_module(_PLACES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return sorted({*globals(), *__all__})
