"""Options that several commands share, defined once, alone and in bundles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from govtool.cli.shared.complete import complete_commit, complete_dialect, complete_format
from govtool.cli.shared.formats import OutputFile, chosen
from govtool.cli.shared.graph_arguments import bound
from govtool.cli.shared.ui import Ui

if TYPE_CHECKING:
    from govtool.api.ingest_options import CommitOptions, IngestOptions

_SQL = "Reading SQL"
StoreOption = Annotated[
    str | None,
    typer.Option("--store", metavar="URI", help="The store: a path or a URI. Default: GOVTOOL_STORE, then ./.govtool."),
]
MasterOption = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="Spark's master: local[4], spark://host:7077 …"),
]
AtOption = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="REF|DATE",
        autocompletion=complete_commit,
        help="As of a commit: HEAD~2, a number, an id, a tag, or a date (UTC). Default: HEAD.",
    ),
]
BranchOption = Annotated[
    str | None,
    typer.Option("--branch", metavar="NAME", help="The branch to read or to commit to. Default: main."),
]
AuthorOption = Annotated[str | None, typer.Option("--author", metavar="NAME", help="Default: the user's name.")]
FollowLinksOption = Annotated[
    bool, typer.Option("--follow-links", help="Also follow links to places outside the folder.")
]
MessageOption = Annotated[str | None, typer.Option("--message", "-m", metavar="TEXT", help="Message of the commit.")]
SourceOption = Annotated[
    str | None,
    typer.Option(
        "--source",
        metavar="NAME",
        help="The source to replace. Default: sql:models, …",
    ),
]
ReplaceOption = Annotated[bool, typer.Option("--replace", help="Also replace a source of another place or kind.")]
PublishOption = Annotated[
    bool | None,
    typer.Option(
        "--publish/--no-publish", help="Publish the index in a remote store. Default: the setting in govtool.toml."
    ),
]
DryRunOption = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Commit nothing; show what would change, as diff and check do. --policy, -f, -o are for this.",
    ),
]
NamespaceOption = Annotated[
    str | None,
    typer.Option("--namespace", metavar="URI", help="OpenLineage's, as postgres://host:5432."),
]
PathsArgument = Annotated[list[str], typer.Argument(metavar="PATH…", help="Files, folders, or - for stdin.")]
FormatOption = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        autocompletion=complete_format,
        help="Output format; repeat with -o to write several files.",
    ),
]
OutputOption = Annotated[
    list[Path] | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write the (last) format to a file instead of stdout."),
]
LimitOption = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", min=0, help="Show at most N entries, and count the others."),
]
AllOption = Annotated[bool, typer.Option("--all", help="Show everything.")]
KeepLiteralsOption = Annotated[
    bool, typer.Option("--keep-literals", help="Also store literals. Many are personal data.")
]
StrictOption = Annotated[bool, typer.Option("--strict", help="Exit with 3 unless everything was understood.")]
StrictCommitOption = Annotated[
    bool, typer.Option("--strict", help="Exit with 3 and no commit unless all was understood.")
]
StrictAnswerOption = Annotated[
    bool,
    typer.Option("--strict", help="Exit with 3 if what is unknown could matter here."),
]
MinCoverageOption = Annotated[
    float | None,
    typer.Option(
        "--min-coverage", metavar="PERCENT", min=0, max=100, help="Exit with 3 if less was understood than this."
    ),
]
ExplainFailuresOption = Annotated[
    bool,
    typer.Option("--explain-failures", help="Show each statement that was not understood."),
]
DialectOption = Annotated[
    str | None,
    typer.Option(
        "--dialect",
        "-d",
        metavar="NAME",
        autocompletion=complete_dialect,
        help="As sqlglot names it: postgres, snowflake, spark …",
        rich_help_panel=_SQL,
    ),
]
SchemaOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--schema",
        metavar="FILE",
        help="Known tables: DDL, JSON, CSV, catalog.json; repeat.",
        rich_help_panel=_SQL,
    ),
]
DefaultCatalogOption = Annotated[
    str | None,
    typer.Option("--default-catalog", metavar="NAME", help="Catalog of names without one.", rich_help_panel=_SQL),
]
DefaultSchemaOption = Annotated[
    str | None,
    typer.Option("--default-schema", metavar="NAME", help="Schema of names without one.", rich_help_panel=_SQL),
]
CatalogOption = Annotated[
    str | None,
    typer.Option(
        "--catalog",
        metavar="URL",
        help="A database to take the known tables from: postgresql://user@host/db, duckdb:///file …",
        rich_help_panel=_SQL,
    ),
]
ExplainOption = Annotated[
    bool,
    typer.Option(
        "--explain",
        help="Ask that PostgreSQL to EXPLAIN unclear statements.",
        rich_help_panel=_SQL,
    ),
]
RelationFromOption = Annotated[
    str | None,
    typer.Option(
        "--relation-from",
        metavar="PATTERN",
        help="Name bare SELECTs by path: {schema}/{table}.sql.",
        rich_help_panel=_SQL,
    ),
]
VariableOption = Annotated[
    list[str] | None,
    typer.Option("--var", metavar="NAME=VALUE", help="A variable for templates. Repeatable.", rich_help_panel=_SQL),
]


def lines_of(name: str) -> tuple[str, ...]:
    """The lines of a file, or of stdin for ``-``, that are not empty.

    Raises:
        UsageError: It cannot be read, or is not UTF-8 (``usage.unreadable``).
    """
    import sys

    from govtool.errors import UsageError
    from govtool.given_files import read_bounded, read_given

    try:
        data = read_bounded(sys.stdin.buffer, "stdin") if name == "-" else read_given(Path(name))
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror or error}", code="usage.unreadable") from error
    try:
        lines = data.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{name} is not text in UTF-8 (byte {error.start + 1})",
            code="usage.unreadable",
            hint="save it as UTF-8; in another encoding no text would be found",
        ) from error
    return tuple(line.removesuffix("\r") for line in lines if line.strip())


PolicyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="FILE|DIR|pack:NAME",
        help="Policies instead of those in policies/: files, folders, or a pack: starter, gdpr, hipaa, pci.",
    ),
]
TodayOption = Annotated[
    str | None,
    typer.Option("--today", metavar="DATE", help="Evaluate expiry dates as of this day (default: today): 2026-11-21."),
]


_PRESENTATION = ("format", "output")
"""Fields that a command uses itself."""


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Options of lists of entries: their bound, format and place, and the version of the graph."""

    limit: LimitOption = None
    all: AllOption = False
    format: FormatOption = None
    output: OutputOption = None
    at: AtOption = None
    branch: BranchOption = None
    store: StoreOption = None

    def outputs(self, supported: Sequence[str]) -> list[OutputFile]:
        """The renderings and their places."""
        return chosen(self.format, self.output, supported)

    def bound(self, form: str) -> int | None:
        """The number of entries that a rendering has; None: all."""
        return bound(self.limit, self.all, form)

    def show(self, ui: Ui, outputs: Sequence[OutputFile], render: Callable[[str, Any], Any], answer: Any) -> None:
        """Show an answer in all formats that are wanted, each with as many entries as it should have."""
        for form, file in outputs:
            ui.show(render(form, answer.head(self.bound(form))), file)


@dataclass(frozen=True, slots=True)
class CommitBundle:
    """Options of commands that commit."""

    message: MessageOption = None
    author: AuthorOption = None
    branch: BranchOption = None
    store: StoreOption = None

    def keywords(self) -> CommitOptions:
        """The same as keywords of ``govtool.api``."""
        return cast("CommitOptions", _api_keywords(self))


@dataclass(frozen=True, slots=True)
class IngestBundle(CommitBundle):
    """Options of every ingest."""

    source: SourceOption = None
    replace: ReplaceOption = False
    strict: StrictCommitOption = False
    min_coverage: MinCoverageOption = None
    explain_failures: ExplainFailuresOption = False
    dry_run: DryRunOption = False
    publish: PublishOption = None
    policy: PolicyOption = None
    format: FormatOption = None
    output: OutputOption = None

    def keywords(self) -> IngestOptions:
        """The same as keywords of ``govtool.api``, without the format and the place of the output."""
        return cast("IngestOptions", _api_keywords(self))


def _api_keywords(bundle: CommitBundle) -> dict[str, object]:
    names = (each.name for each in fields(bundle))
    return {name: getattr(bundle, name) for name in names if name not in _PRESENTATION}
