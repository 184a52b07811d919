"""The commands: their groups, their lines in the lists of commands, and the files that they are in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import NamedTuple


class Entry(NamedTuple):
    """A command: its function, its line in the list of commands, and its module."""

    function: str
    summary: str
    panel: str = "Commands"

    def load(self) -> Callable[..., int | None]:
        """Import the command."""
        found: Callable[..., int | None] = getattr(
            import_module(f"govtool.cli.{_file_of(self.function)}"), self.function
        )
        return found


_FILES = {
    "classes": ("classify",),
    "commits": ("log", "show", "revert"),
    "graph_files": ("graph_import", "graph_export", "graph_list"),
    "ingest_events": ("ingest_openlineage", "ingest_prov", "ingest_spark"),
    "ingest_sql": ("ingest_dbt", "ingest_catalog"),
    "setup": ("init", "doctor", "trust", "config_show"),
    "snapshot": ("verify",),
    "zoom": ("zoom_in", "zoom_out", "subgraph", "depends"),
}
"""Files of several commands, beside those of ``_GROUP_FILES``; any other command is in a file of its own name."""
_GROUP_FILES = frozenset(
    ("branch", "compare", "erase", "export", "policy", "sources", "store", "tag", "trace", "whatif", "workflow")
)
"""Groups whose commands are all in one file, of the group's name."""


def _file_of(function: str) -> str:
    group = function.partition("_")[0]
    if group in _GROUP_FILES:
        return group
    return next((file for file, functions in _FILES.items() if function in functions), function)


QUESTIONS = "Ask the graph"
FEED = "Feed the graph"
KEEP = "Keep it"
ALSO = frozenset(
    {
        *("workflow", "serve", "export", "graph", "snapshot"),
        *("why", "compare", "classify", "zoom", "subgraph", "depends", "replay", "verify"),
        *("index", "branch", "tag", "trust", "config", "help"),
    }
)
"""Commands that the list of all only names."""
COMMANDS: Mapping[str, Entry | dict[str, Entry]] = {
    "init": Entry("init", "Create a store.", FEED),
    "ingest": {
        "all": Entry("ingest_all", "Bring every source of govtool.toml up to date.", FEED),
        "sql": Entry("ingest_sql", "Read SQL files into the graph and commit.", FEED),
        "dbt": Entry("ingest_dbt", "Read a dbt project's artifacts into the graph and commit.", FEED),
        "log": Entry("ingest_log", "Read query logs into the graph and commit.", FEED),
        "catalog": Entry("ingest_catalog", "Read the catalog of a database into the graph and commit.", FEED),
        "openlineage": Entry("ingest_openlineage", "Read OpenLineage events into the graph and commit.", FEED),
        "prov": Entry("ingest_prov", "Read W3C PROV documents into the graph and commit.", FEED),
        "spark": Entry("ingest_spark", "Read event logs of Spark applications into the graph and commit.", FEED),
    },
    "run": Entry("run", "Run a PySpark job as it is, and commit what it did.", FEED),
    "workflow": {
        "run": Entry("workflow_run", "Run the executions of a workflow, and commit what they did."),
        "list": Entry("workflow_list", "The runs of workflows."),
        "show": Entry("workflow_show", "One run: its modules, and what they received, kept and made."),
    },
    "serve": {"openlineage": Entry("serve_openlineage", "Receive OpenLineage events over HTTP and commit them.", FEED)},
    "export": {
        "openlineage": Entry("export_openlineage", "Write the graph as OpenLineage events, or send them.", FEED),
        "graph": Entry("export_graph", "Write the graph as CSV, Parquet, Graphviz, Mermaid, PROV …", FEED),
    },
    "graph": {
        "import": Entry("graph_import", "Read a provenance graph into the store and commit."),
        "export": Entry("graph_export", "Write a provenance graph: JSON, DOT, GraphML, PROV-JSON."),
        "list": Entry("graph_list", "The provenance graphs of the store."),
    },
    "lineage": Entry("lineage", "Column lineage of SQL, without a store.", FEED),
    "impact": Entry("impact", "Show what depends on a column, and what a change would break.", QUESTIONS),
    "path": Entry("path", "Find the shortest lineage paths between columns.", QUESTIONS),
    "why": Entry("why", "Which records are behind each row of a query, and how.", QUESTIONS),
    "explain": Entry("explain", "Show the sources and readers of a column.", QUESTIONS),
    "report": {"html": Entry("report_html", "Draw the graph as one HTML file to click through.", QUESTIONS)},
    "compare": {
        "oracle": Entry("compare_oracle", "Compare the graph with a warehouse's own records."),
        "static": Entry("compare_static", "Lineage from text against lineage from runs."),
    },
    "sources": {
        "list": Entry("sources_list", "List the sources: their kind, place, last commit and coverage."),
        "drop": Entry("sources_drop", "Retract everything that a source put into the graph."),
    },
    "coverage": Entry("coverage", "Show how much was understood, and what was not.", QUESTIONS),
    "whatif": {
        "drop": Entry("whatif_drop", "Show what breaks if columns or datasets are dropped."),
        "rename": Entry("whatif_rename", "Show what breaks if a column or dataset is renamed."),
        "retype": Entry("whatif_retype", "Show what breaks or changes with another column type."),
        "mask": Entry("whatif_mask", "Show what changes if columns hold masked values."),
        "delete": Entry("whatif_delete", "Show what changes or loses its last source."),
        "several": Entry("whatif_several", "Show what changes of several kinds do together."),
    },
    "erase": {
        "plan": Entry("erase_plan", "List every dataset with a data subject's data, in order."),
        "apply": Entry("erase_apply", "Write corrected copies of what a plan on rows changes."),
        "verify": Entry("erase_verify", "Check corrected copies against their certificate."),
    },
    "ls": Entry("ls", "List datasets and columns, by selectors.", QUESTIONS),
    "classes": Entry("classes", "Show the classes of columns, and where they come from.", QUESTIONS),
    "classify": Entry("classify", "Propose classes for columns, as a policy to review.", QUESTIONS),
    "check": Entry("check", "Check the lineage graph against your policies.", QUESTIONS),
    "policy": {
        "lint": Entry("policy_lint", "Find mistakes, and rules and patterns that match nothing."),
        "test": Entry("policy_test", "Run the tests beside the rules."),
        "explain": Entry("policy_explain", "Describe rules in words."),
        "schema": Entry("policy_schema", "Print the JSON Schema of policy files."),
    },
    "trace": {
        "back": Entry("trace_back", "Show the input rows behind rows of an output."),
        "forward": Entry("trace_forward", "Show the output rows that rows of an input reached."),
    },
    "zoom": {
        "out": Entry("zoom_out", "Show each invocation of modules as one node."),
        "in": Entry("zoom_in", "Show the inside of modules again."),
    },
    "subgraph": Entry("subgraph", "Show the ancestors and descendants of a node.", QUESTIONS),
    "depends": Entry("depends", "Show whether a node depends on some records.", QUESTIONS),
    "replay": Entry("replay", "A recorded run over changed inputs, compared with what it wrote.", QUESTIONS),
    "runs": Entry("runs", "List runs: how they ended, what they read and wrote.", QUESTIONS),
    "diff": Entry("diff", "Compare two versions, or two runs of a job.", QUESTIONS),
    "snapshot": Entry("snapshot", "Record a version of a dataset with its provenance.", FEED),
    "verify": Entry("verify", "Check that data still is what was recorded.", QUESTIONS),
    "log": Entry("log", "List the commits of the store, newest first.", KEEP),
    "show": Entry("show", "Show a commit, a run, or the sources of a dataset version.", KEEP),
    "revert": Entry("revert", "Undo a commit by a new one.", KEEP),
    "index": Entry("index", "Build the local index of a commit ahead of time.", KEEP),
    "branch": {
        "create": Entry("branch_create", "Start a branch."),
        "list": Entry("branch_list", "List the branches and their heads."),
        "delete": Entry("branch_delete", "Delete a branch."),
        "merge": Entry("branch_merge", "Merge a branch."),
    },
    "tag": {
        "create": Entry("tag_create", "Name a commit."),
        "list": Entry("tag_list", "List the tags and their commits."),
        "delete": Entry("tag_delete", "Delete a tag."),
    },
    "store": {
        "compact": Entry("store_compact", "Drop dead entries from the manifest."),
        "gc": Entry("store_gc", "Remove what nothing refers to."),
        "fsck": Entry("store_fsck", "Check hashes, the chain, holes."),
        "anchor": Entry("store_anchor", "Print what a later fsck compares with."),
        "copy": Entry("store_copy", "Copy the store to another place."),
        "repair-clock": Entry("store_repair_clock", "Let commits follow one that a clock in the future made."),
        "forget": Entry("store_forget", "Remove text, private records or a source from every version."),
    },
    "doctor": Entry("doctor", "Diagnose the setup; find names that may be one dataset.", KEEP),
    "trust": Entry("trust", "Allow the store outside of its folder that a project's settings name.", KEEP),
    "help": Entry("help_command", "Show the help of a command, or the options that many share.", KEEP),
    "config": {"show": Entry("config_show", "Show the settings in effect, and where each comes from.", KEEP)},
}
"""Every command; groups are dictionaries. Their files are below ``govtool.cli``."""
GROUPS = {
    "ingest": Entry("", "Read evidence into the graph and commit.", FEED),
    "sources": Entry("", "Sources of the graph: list them, or retract one.", KEEP),
    "workflow": Entry("", "Run workflows of modules, with state from run to run.", FEED),
    "serve": Entry("", "Receive evidence and commit it.", FEED),
    "export": Entry("", "Write the graph for other tools.", FEED),
    "report": Entry("", "The graph as a picture to click through.", QUESTIONS),
    "compare": Entry("", "One kind of evidence against another.", QUESTIONS),
    "whatif": Entry("", "What a change would do, to many columns at once.", QUESTIONS),
    "erase": Entry("", "What to do with a data subject's data.", QUESTIONS),
    "trace": Entry("", "Rows behind a result, and results that rows reached.", QUESTIONS),
    "graph": Entry("", "Provenance graphs of workflows.", FEED),
    "zoom": Entry("", "Modules of a provenance graph whole, or what happens within them.", QUESTIONS),
    "policy": Entry("", "Validate, test and explain policy files.", QUESTIONS),
    "branch": Entry("", "Branches: lines of versions beside main.", KEEP),
    "tag": Entry("", "Names for commits.", KEEP),
    "store": Entry("", "Upkeep of the store.", KEEP),
    "config": Entry("", "Settings.", KEEP),
}
FORMS = {"whatif": "govtool whatif --drop A --rename B=C"}
"""Groups whose help shows the form without a word of their own."""
ALONE = {"sources": "list", "ingest": "all", "whatif": "several"}
"""Groups that are a command, too: what they do without a word of their own."""
RENAMED = {"record": "snapshot"}
"""Commands by their former names: they run as before, with a notice, and are in no list."""
