"""Bundles of options: what several commands take, declared once; ``as_command`` shows their fields one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, cast

from govtool.cli.formats import OutputFile, chosen
from govtool.cli.graph import bound
from govtool.cli.options import (
    AllOption,
    AtOption,
    AuthorOption,
    BranchOption,
    DryRunOption,
    ExplainFailuresOption,
    FormatOption,
    LimitOption,
    MessageOption,
    MinCoverageOption,
    OutputOption,
    PublishOption,
    ReplaceOption,
    SourceOption,
    StoreOption,
    StrictCommitOption,
)
from govtool.cli.policyargs import PolicyOption
from govtool.cli.ui import Ui

if TYPE_CHECKING:
    from govtool.api.ingest_options import CommitOptions, IngestOptions

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
