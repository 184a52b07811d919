"""``govtool graph``: provenance graphs of workflows, in files and in the store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from govtool.cli.shared.common import name_store
from govtool.cli.shared.formats import chosen
from govtool.cli.shared.options import (
    AtOption,
    AuthorOption,
    BranchOption,
    FormatOption,
    ListOptions,
    MessageOption,
    OutputOption,
    StoreOption,
)
from govtool.cli.shared.ui import Ui
from govtool.errors import EXIT_EVIDENCE, EXIT_OK, EvidenceError, UsageError

if TYPE_CHECKING:
    from govtool.answers.answer import Answer
    from govtool.answers.workflow_graph import GraphDeletionAnswer
    from govtool.api.workflow_graph import WorkflowGraph

GraphOption = Annotated[
    str | None,
    typer.Option("--graph", metavar="NAME|FILE", help="A graph of the store, or a file: JSON, GraphML."),
]
GraphRunOption = Annotated[
    str | None,
    typer.Option("--run", metavar="RUN", help="The graph of a workflow run, from its records."),
]
AllRunsOption = Annotated[bool, typer.Option("--all-runs", help="--run: go on through runs that exchange files.")]
OptionalGraphArgument = Annotated[
    str | None, typer.Argument(metavar="NAME|FILE", help="A graph of the store, or a file: JSON, GraphML.")
]
ModuleOption = Annotated[
    list[str], typer.Option("--module", "-m", metavar="MODULE", help="A module, with all its invocations. Repeatable.")
]
ZoomedOption = Annotated[
    list[str] | None,
    typer.Option("--zoomed", metavar="MODULE", help="A module that is already zoomed out. Repeatable."),
]
NodeArgument = Annotated[
    str,
    typer.Argument(
        metavar="NODE", help="A node by its id, the token of a record, M#2, or with --run a row: REL@2[key]."
    ),
]
InGraphOption = Annotated[
    str | None,
    typer.Option("--graph", metavar="NAME|FILE", help="Delete records in a provenance graph."),
]
FromOption = Annotated[
    Path | None,
    typer.Option("--tokens", metavar="FILE", help="Many answers: a JSON list of tokens per line."),
]


def graph_name(graph: str | None, run: str | None) -> str:
    """The name of the graph that two options mean.

    Raises:
        UsageError: Neither is given, or both (``usage.arguments``).
    """
    from govtool.app.workflow_graphs.run_graphs import RUN_PREFIX

    if (graph is None) == (run is None):
        raise UsageError("name one graph", code="usage.arguments", hint="--graph NAME|FILE, or --run RUN")
    return graph if graph is not None else f"{RUN_PREFIX}{run}"


@dataclass(frozen=True, slots=True)
class GraphOptions(ListOptions):
    """Options of a question about one graph: which it is, and how the answer is shown."""

    graph: GraphOption = None
    run: GraphRunOption = None
    all_runs: AllRunsOption = False

    def opened(self, ui: Ui) -> WorkflowGraph:
        """The graph.

        Raises:
            UsageError: None is named, or two (``usage.arguments``).
        """
        from govtool.api.workflow_graph import provenance_graph

        version: dict[str, Any] = {"store": self.store, "ref": self.at, "branch": self.branch}
        found = provenance_graph(graph_name(self.graph, self.run), all_runs=self.all_runs, **version)
        ui.mark("open the graph")
        for text in found.notes:
            ui.note(text)
        return found


def show_answer(ui: Ui, options: GraphOptions, answer: Answer) -> None:
    """Show an answer in all formats that are wanted."""
    from govtool.render.workflow_graph import FORMATS, render_workflow

    ui.mark("answer")
    for form, file in options.outputs(FORMATS):
        ui.show(render_workflow(form, answer, options.bound(form)), file, private=True)


def delete_in_graph(
    ui: Ui, options: GraphOptions, tokens: list[str], lists: Path | None, *, strict: bool, fail_on: str
) -> int:
    """Show what deletions do in a graph; one of the arguments, or one a line of a file.

    Raises:
        UsageError: There are no tokens, or both.
        EvidenceError: With ``strict``, only a new run can decide something (``evidence.unclear``).
    """
    from govtool.render.workflow_graph import FORMATS

    options.outputs(FORMATS)  # a wrong one is reported before the graph is opened
    if fail_on != "none":
        raise UsageError("--fail-on is for columns, not for records", code="usage.arguments", hint="--strict")
    if bool(tokens) == (lists is not None):
        raise UsageError("name records, or a file with --tokens", code="usage.arguments")
    graph = options.opened(ui)
    if lists is None:
        answers = [graph.delete(*tokens)]
        show_answer(ui, options, answers[0])
    else:
        answers = _deletions_of(ui, options, graph, lists)
    if strict and any(answer.unknown or answer.gains_possible for answer in answers):
        raise EvidenceError("only a new run can decide what becomes of some nodes", code="evidence.unclear")
    return EXIT_OK


def _deletions_of(ui: Ui, options: GraphOptions, graph: WorkflowGraph, lists: Path) -> list[GraphDeletionAnswer]:
    from govtool.app.records.token_lists import read_deletions
    from govtool.render.workflow_graph import answers_lines

    answers = [graph.delete(*tokens) for tokens in read_deletions(str(lists))]
    for _, file in options.outputs(("json",)):
        ui.show(answers_lines(answers), file, private=True)
    return answers


def graph_import(
    ui: Ui,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A graph: JSON, or GraphML by its name.")],
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Name of the graph. Default: the file's name.")
    ] = None,
    format: FormatOption = None,
    output: OutputOption = None,
    message: MessageOption = None,
    author: AuthorOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """Read a provenance graph into the store and commit; one of the same name is replaced.

      govtool graph import run.json --name dealers

    A file with a cycle, an edge of a missing node, or a wrong type or label is refused, with the line and the reason.
    """
    from govtool.api.workflow_graph import import_graph
    from govtool.render.workflow_graph import FORMATS, render_workflow

    outputs = chosen(format, output, FORMATS)
    answer = import_graph(file, name=name, store=store, branch=branch, message=message, author=author)
    for form, place in outputs:
        ui.show(render_workflow(form, answer), place)
    name_store(ui, store)


def graph_export(
    ui: Ui,
    graph: OptionalGraphArgument = None,
    run: GraphRunOption = None,
    all_runs: AllRunsOption = False,
    state_nodes: Annotated[
        str,
        typer.Option(
            "--state-nodes",
            metavar="read|all",
            help="With --run: draw nodes for state tuples that were read, or for all.",
        ),
    ] = "read",
    pig_nodes: Annotated[
        bool,
        typer.Option("--pig-nodes", help="With --run: draw operators as the paper's figures draw Pig's statements."),
    ] = False,
    zoomed: ZoomedOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """Write a provenance graph, or a view of it with modules zoomed out.

      govtool graph export dealers -o dealers.graphml
      govtool graph export --run dealers --state-nodes all --pig-nodes -o run.json
      govtool graph export run.json --zoomed M_dealer1 --format dot -o dealers.dot

    prov-json has no values and no structure of operators.
    """
    from govtool.api.workflow_graph import provenance_graph
    from govtool.workflow.formats.write import FORMATS

    outputs = chosen(format, output, FORMATS)
    name = graph_name(graph, run)
    drawn: dict[str, Any] = {"state_nodes": state_nodes, "pig_nodes": pig_nodes, "all_runs": all_runs}
    found = provenance_graph(name, zoomed=zoomed, store=store, ref=at, branch=branch, **drawn)
    for text in found.notes:
        ui.note(text)
    for form, file in outputs:
        ui.show(found.export(form), file, private=True)


def graph_list(
    ui: Ui,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> int:
    """List the provenance graphs of the store.

      govtool graph list

    Graphs that are damaged are named below the others, and the exit code is 3.
    """
    from govtool.api.workflow_graph import list_graphs
    from govtool.render.workflow_graph import FORMATS, render_workflow

    outputs = chosen(format, output, FORMATS)
    answer = list_graphs(store, ref=at, branch=branch)
    for form, file in outputs:
        ui.show(render_workflow(form, answer), file, private=True)
    return EXIT_OK if answer.is_complete else EXIT_EVIDENCE
