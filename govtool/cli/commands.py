"""The commands: their groups, their lines in the lists of commands, and the files that they are in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import NamedTuple


class Command(NamedTuple):
    """A command: its function, and its line in the list of commands."""

    function: str
    summary: str

    def load(self) -> Callable[..., int | None]:
        """Import the command."""
        found: Callable[..., int | None] = getattr(
            import_module(f"govtool.cli.{_file_of(self.function)}"), self.function
        )
        return found


_FILES = {
    "branches": (
        *("branch_create", "branch_list", "branch_delete", "branch_merge"),
        *("tag_create", "tag_list", "tag_delete"),
    ),
    "classes": ("classify",),
    "commits": ("log", "show", "revert"),
    "graph_files": ("graph_import", "graph_export", "graph_list"),
    "ingest_events": ("ingest_openlineage", "ingest_prov", "ingest_spark"),
    "ingest_sql": ("ingest_dbt", "ingest_catalog"),
    "setup": ("init", "doctor", "trust", "config_show"),
    "snapshot": ("verify",),
    "whatif_delete": ("whatif_delete",),
    "zoom": ("zoom_in", "zoom_out", "subgraph", "depends"),
}
"""Files whose commands are not all of one group; see ``_file_of``."""
_GROUP_FILES = frozenset(("compare", "erase", "export", "policy", "sources", "store", "trace", "whatif", "workflow"))
"""Groups whose other commands are all in one file, of the group's name."""


def _file_of(function: str) -> str:
    group = function.partition("_")[0]
    shared = next((file for file, functions in _FILES.items() if function in functions), None)
    return shared or (group if group in _GROUP_FILES else function)


class Panel(NamedTuple):
    """A heading in the list of all commands: those that have a line below it, and those that it only names."""

    title: str
    shown: tuple[str, ...]
    named: tuple[str, ...] = ()


PANELS = (
    Panel("Feed the graph", ("init", "ingest", "run"), ("serve", "snapshot")),
    Panel(
        "Ask",
        ("lineage", "impact", "path", "explain", "ls", "whatif", "diff", "coverage"),
        ("compare", "runs", "verify"),
    ),
    Panel("Govern", ("check", "policy", "erase"), ("classes", "classify")),
    Panel("Go down to rows", ("trace", "replay", "why", "workflow"), ("graph", "zoom", "subgraph", "depends")),
    Panel("Export", ("report", "export")),
    Panel(
        "Maintain",
        ("sources", "log", "store", "doctor"),
        ("show", "revert", "branch", "tag", "index", "trust", "config", "help"),
    ),
)
"""Every command once; README has the same headings."""
COMMANDS: Mapping[str, Command | dict[str, Command]] = {
    "init": Command("init", "Create a store."),
    "ingest": {
        "all": Command("ingest_all", "Bring every source of govtool.toml up to date."),
        "sql": Command("ingest_sql", "Read SQL files into the graph and commit."),
        "dbt": Command("ingest_dbt", "Read a dbt project's artifacts into the graph and commit."),
        "log": Command("ingest_log", "Read query logs into the graph and commit."),
        "catalog": Command("ingest_catalog", "Read the catalog of a database into the graph and commit."),
        "openlineage": Command("ingest_openlineage", "Read OpenLineage events into the graph and commit."),
        "prov": Command("ingest_prov", "Read W3C PROV documents into the graph and commit."),
        "spark": Command("ingest_spark", "Read event logs of Spark applications into the graph and commit."),
    },
    "run": Command("run", "Run a PySpark job as it is, and commit what it did."),
    "workflow": {
        "run": Command("workflow_run", "Run the executions of a workflow, and commit what they did."),
        "list": Command("workflow_list", "List the runs of workflows."),
        "show": Command("workflow_show", "Show a run: its modules, and what they received, kept and made."),
    },
    "serve": {"openlineage": Command("serve_openlineage", "Receive OpenLineage events over HTTP and commit them.")},
    "export": {
        "openlineage": Command("export_openlineage", "Write the graph as OpenLineage events, or send them."),
        "graph": Command("export_graph", "Write the graph as CSV, Parquet, Graphviz, Mermaid, PROV …"),
    },
    "graph": {
        "import": Command("graph_import", "Read a provenance graph into the store and commit."),
        "export": Command("graph_export", "Write a provenance graph for other tools."),
        "list": Command("graph_list", "List the provenance graphs of the store."),
    },
    "lineage": Command("lineage", "Show the column lineage of SQL, without a store."),
    "impact": Command("impact", "Show what depends on a column, and what a change would break."),
    "path": Command("path", "Find the shortest lineage paths between columns."),
    "why": Command("why", "Show which records are behind each row of a query, and how."),
    "explain": Command("explain", "Show the sources and readers of a column."),
    "report": {"html": Command("report_html", "Draw the graph as one HTML file to click through.")},
    "compare": {
        "oracle": Command("compare_oracle", "Compare the graph with a warehouse's own records."),
        "static": Command("compare_static", "Compare lineage from text with lineage from runs."),
    },
    "sources": {
        "list": Command("sources_list", "List the sources: their kind, place, last commit and coverage."),
        "drop": Command("sources_drop", "Retract everything that a source put into the graph."),
    },
    "coverage": Command("coverage", "Show how much was understood, and what was not."),
    "whatif": {
        "drop": Command("whatif_drop", "Show what breaks if columns or datasets are dropped."),
        "rename": Command("whatif_rename", "Show what breaks if a column or dataset is renamed."),
        "retype": Command("whatif_retype", "Show what breaks or changes with another column type."),
        "mask": Command("whatif_mask", "Show what changes if columns hold masked values."),
        "delete": Command("whatif_delete", "Show what changes or loses its last source."),
        "several": Command("whatif_several", "Show the effect of several changes together."),
    },
    "erase": {
        "plan": Command("erase_plan", "List every dataset with a data subject's data, in order."),
        "apply": Command("erase_apply", "Write corrected copies of the datasets that a plan changes."),
        "verify": Command("erase_verify", "Check corrected copies against their certificate."),
    },
    "ls": Command("ls", "List datasets and columns, by selectors."),
    "classes": Command("classes", "Show the classes of columns, and where they come from."),
    "classify": Command("classify", "Propose classes for columns, as a policy to review."),
    "check": Command("check", "Check the lineage graph against your policies."),
    "policy": {
        "lint": Command("policy_lint", "Find mistakes, and rules and patterns that match nothing."),
        "test": Command("policy_test", "Run the tests beside the rules."),
        "explain": Command("policy_explain", "Describe rules in words."),
        "schema": Command("policy_schema", "Print the JSON Schema of policy files."),
    },
    "trace": {
        "back": Command("trace_back", "Show the input rows behind rows of an output."),
        "forward": Command("trace_forward", "Show the output rows that rows of an input reached."),
    },
    "zoom": {
        "out": Command("zoom_out", "Show each invocation of modules as one node."),
        "in": Command("zoom_in", "Show the inside of modules again."),
    },
    "subgraph": Command("subgraph", "Show the ancestors and descendants of a node."),
    "depends": Command("depends", "Show whether a node depends on some records."),
    "replay": Command("replay", "Evaluate a recorded run over changed inputs, and compare."),
    "runs": Command("runs", "List runs: how they ended, what they read and wrote."),
    "diff": Command("diff", "Compare two versions, or two runs of a job."),
    "snapshot": Command("snapshot", "Record a version of a dataset with its provenance."),
    "verify": Command("verify", "Check that data still is what was recorded."),
    "log": Command("log", "List the commits of the store, newest first."),
    "show": Command("show", "Show a commit, a run, or the sources of a dataset version."),
    "revert": Command("revert", "Undo a commit by a new one."),
    "index": Command("index", "Build the local index of a commit ahead of time."),
    "branch": {
        "create": Command("branch_create", "Start a branch."),
        "list": Command("branch_list", "List the branches and their heads."),
        "delete": Command("branch_delete", "Delete a branch."),
        "merge": Command("branch_merge", "Merge a branch."),
    },
    "tag": {
        "create": Command("tag_create", "Name a commit."),
        "list": Command("tag_list", "List the tags and their commits."),
        "delete": Command("tag_delete", "Delete a tag."),
    },
    "store": {
        "compact": Command("store_compact", "Drop dead entries from the manifest."),
        "gc": Command("store_gc", "Remove what nothing refers to."),
        "fsck": Command("store_fsck", "Check hashes, the chain of commits, and gaps."),
        "anchor": Command("store_anchor", "Print an anchor that a later fsck compares with."),
        "copy": Command("store_copy", "Copy the store to another place."),
        "repair-clock": Command("store_repair_clock", "Allow commits after one whose clock was ahead."),
        "forget": Command("store_forget", "Remove text, private records or a source from every version."),
    },
    "doctor": Command("doctor", "Diagnose the setup; find names that may be one dataset."),
    "trust": Command("trust", "Allow a project's settings to name a store and sources outside its folder."),
    "help": Command("help_command", "Show the help of a command, or the options that many share."),
    "config": {"show": Command("config_show", "Show the settings in effect, and where each comes from.")},
}
"""Every command; groups are dictionaries. Their files are below ``govtool.cli``."""
GROUPS = {
    "ingest": Command("", "Read evidence into the graph and commit."),
    "sources": Command("", "List the sources of the graph, or retract one."),
    "workflow": Command("", "Run workflows of modules, with state from run to run."),
    "serve": Command("", "Receive evidence and commit it."),
    "export": Command("", "Write the graph for other tools."),
    "report": Command("", "Draw the graph as a page to click through."),
    "compare": Command("", "Compare one kind of evidence with another."),
    "whatif": Command("", "Show what a change would do, to many columns at once."),
    "erase": Command("", "Plan and carry out the erasure of a data subject's data."),
    "trace": Command("", "Trace a result back to its rows, or rows forward to results."),
    "graph": Command("", "Import, export and list provenance graphs of workflows."),
    "zoom": Command("", "Show modules of a provenance graph as one node, or their inside."),
    "policy": Command("", "Validate, test and explain policy files."),
    "branch": Command("", "Work on branches: lines of versions beside main."),
    "tag": Command("", "Name commits."),
    "store": Command("", "Maintain the store."),
    "config": Command("", "Show the settings."),
}
FORMS = {"whatif": "govtool whatif --drop A --rename B=C"}
"""Groups whose help shows the form without a word of their own."""
ALONE = {"sources": "list", "ingest": "all", "whatif": "several"}
"""Groups that are a command, too: what they do without a word of their own."""
RENAMED = {"record": "snapshot"}
"""Commands by their former names: they run as before, with a notice, and are in no list."""
