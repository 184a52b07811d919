"""``govtool whatif``: what a change would do, to many columns at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from govtool.cli.shared.common import ExcludeOption, selects
from govtool.cli.shared.complete import complete_selector
from govtool.cli.shared.formats import OutputFile
from govtool.cli.shared.graph_arguments import opened_graph
from govtool.cli.shared.options import (
    ListOptions,
    PolicyOption,
    StrictAnswerOption,
    TodayOption,
)
from govtool.cli.shared.ui import Ui
from govtool.errors import EXIT_FINDINGS, EXIT_OK, UsageError

if TYPE_CHECKING:
    from govtool.answers.whatif import WhatIfAnswer


SubjectArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="SELECTOR…",
        autocompletion=complete_selector,
        help="Columns and datasets: crm.users.email, 'mart.**', class:personal … See govtool ls --help.",
    ),
]


FailOnOption = Annotated[
    str,
    typer.Option(
        "--fail-on",
        metavar="lost|breaks|unknown|changes|rows|passes",
        help="Exit with 1 if a finding has it, or a worse one.",
    ),
]


ToOption = Annotated[str | None, typer.Option("--to", metavar="NEW", help="The new name or type.")]


@dataclass(frozen=True, slots=True)
class WhatIfOptions(ListOptions):
    """Options of every what-if, beside its change."""

    exclude: ExcludeOption = None
    policy: PolicyOption = None
    today: TodayOption = None
    fail_on: FailOnOption = "none"
    strict: StrictAnswerOption = False


def answer(
    ui: Ui,
    action: str,
    selector: list[str],
    options: WhatIfOptions,
    *,
    to: str | None = None,
    min_coverage: float | None = None,
) -> int:
    """Ask and show."""
    outputs = outputs_of(options)
    if action in ("rename", "retype") and to is None:
        raise _no_target(action, selector)
    with opened_graph(ui, options.store, options.at, options.branch) as graph:
        found = graph.whatif(
            action, *selector, to=to, exclude=options.exclude, policy=options.policy, today=options.today
        )
    return show(ui, found, outputs, options, min_coverage)


def outputs_of(options: WhatIfOptions) -> list[OutputFile]:
    """Return the outputs; a wrong format or verdict is reported before anything is read.

    Raises:
        UnknownNameError: There is no such verdict (``usage.unknown-verdict``), or no such format.
    """
    from govtool.answers.answer import at_least
    from govtool.query.changes.whatif import VERDICTS
    from govtool.render.whatif import FORMATS

    at_least(options.fail_on, VERDICTS, "verdict")
    return options.outputs(FORMATS)


def show(
    ui: Ui,
    found: WhatIfAnswer,
    outputs: list[OutputFile],
    options: WhatIfOptions,
    min_coverage: float | None = None,
) -> int:
    """Write an answer to its outputs, and return the exit code."""
    from govtool.render.whatif import render

    ui.mark("whatif")
    options.show(ui, outputs, render, found)
    found.check_coverage(min_coverage=min_coverage)
    if found.fails(options.fail_on):
        return EXIT_FINDINGS
    if options.strict:
        found.check_strict()
    return EXIT_OK


def _no_target(action: str, selector: list[str]) -> UsageError:
    """The error about a change to nothing; the last of several words is likely what was meant."""
    words = [*selector[:-1], "--to", selector[-1]] if len(selector) > 1 else [*selector, "--to", "NEW"]
    what = "name" if action == "rename" else "type"
    return UsageError(
        f"the new {what} is missing", code="usage.arguments", hint=" ".join(("govtool whatif", action, *words))
    )


_OPTIONS = WhatIfOptions()


@selects
def whatif_drop(
    ui: Ui,
    selector: SubjectArgument,
    options: WhatIfOptions = _OPTIONS,
) -> int:
    """Show what breaks if columns or datasets are dropped.

      govtool whatif drop crm.users.email crm.users.phone
      govtool whatif drop 'stg.**' --exclude stg.users --format markdown

    Statements that name a dropped column break in all their outputs, and so does whatever reads those.
    """
    return answer(ui, "drop", selector, options)


@selects
def whatif_rename(
    ui: Ui,
    selector: SubjectArgument,
    to: ToOption = None,
    options: WhatIfOptions = _OPTIONS,
) -> int:
    """Show what breaks if a column or dataset is renamed.

      govtool whatif rename crm.users.email --to mail
      govtool whatif rename stg.users --to stg.people -f json

    The first statement that names it breaks; everything behind it passes.
    """
    return answer(ui, "rename", selector, options, to=to)


@selects
def whatif_retype(
    ui: Ui,
    selector: SubjectArgument,
    to: ToOption = None,
    options: WhatIfOptions = _OPTIONS,
) -> int:
    """Show what breaks or changes if columns get another type.

      govtool whatif retype shop.orders.total --to text
      govtool whatif retype 'shop.orders.*_at' --to date

    Only provably incompatible types break.
    """
    return answer(ui, "retype", selector, options, to=to)


@selects
def whatif_mask(
    ui: Ui,
    selector: SubjectArgument,
    options: WhatIfOptions = _OPTIONS,
) -> int:
    """Show what changes if columns hold masked values from now on.

      govtool whatif mask crm.users.email
      govtool whatif mask class:personal.contact --policy pack:gdpr

    Columns derived from them change; where they decide rows, the verdict is rows. Lists the policy findings that end.
    """
    return answer(ui, "mask", selector, options)


def _changes(name: str, metavar: str, text: str) -> object:
    return typer.Option(f"--{name}", metavar=metavar, autocompletion=complete_selector, help=f"{text} Repeatable.")


DropOption = Annotated[list[str] | None, _changes("drop", "SELECTOR", "Columns and datasets to drop.")]


RenameOption = Annotated[list[str] | None, _changes("rename", "COLUMN=NEW", "A column or dataset, and its new name.")]


RetypeOption = Annotated[list[str] | None, _changes("retype", "COLUMN=TYPE", "A column, and its new type.")]


MaskOption = Annotated[list[str] | None, _changes("mask", "SELECTOR", "Columns to hold masked values.")]


DeleteOption = Annotated[list[str] | None, _changes("delete", "SELECTOR", "Columns and datasets whose data goes.")]


@selects
def whatif_several(
    ui: Ui,
    drop: DropOption = None,
    rename: RenameOption = None,
    retype: RetypeOption = None,
    mask: MaskOption = None,
    delete: DeleteOption = None,
    options: WhatIfOptions = _OPTIONS,
) -> int:
    """Show the effect of several changes together.

      govtool whatif --drop crm.users.phone --rename crm.users.email=mail

    Each column has the worst verdict that any of the changes gives it.
    """
    outputs = outputs_of(options)
    with opened_graph(ui, options.store, options.at, options.branch) as graph:
        found = graph.whatif_several(
            drop=drop,
            rename=rename,
            retype=retype,
            mask=mask,
            delete=delete,
            exclude=options.exclude,
            policy=options.policy,
            today=options.today,
        )
    return show(ui, found, outputs, options)
