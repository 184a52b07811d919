"""An execution of Spark, as the facts that every source of them gives: a live session's listener, an event log.

An execution is one plan that ran. An action, what a line of a job did, may take several: CREATE TABLE AS SELECT takes
two, saveAsTable three, each inside the one before; ``nesting`` finds which belong together and ``interpreter`` turns
them into a run and a derivation. A source gives `Execution`s, and a `RunSource` that makes runs of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from govtool.capture.spark.definitions import Defined
from govtool.capture.spark.dependencies import PlanDependencies
from govtool.capture.spark.identity import DatasetPlace
from govtool.model import Diagnostic
from govtool.model.run import OVERWRITES_SOME, Run, RunInput, RunOutput

Columns = Mapping[str, Mapping[str, str | None]]
"""Column paths with their types, by dataset."""


@dataclass(frozen=True, slots=True)
class WrittenDataset:
    """A dataset that an execution writes."""

    place: DatasetPlace
    kind: str
    """As in `Statement`."""
    save_mode: str
    """As the command has it."""
    mode: str
    """As in `Derivation`."""
    columns: tuple[str, ...] | None = None
    """Names, by position; None: those of the query."""
    hidden: int = 0
    """Names at the end that the source leaves out."""
    parts: int = 0
    """Number of parts of the table's name in the command: one without a database means that of the session; 0: not
    known."""
    final: bool = True
    """The execution's own plan computes what is written; else one of the executions that it starts has that plan."""
    alone: bool = False
    """The command starts no execution that writes."""
    nested: bool = False
    """True if the write has an execution of its own, which the source would have beside the command's."""
    expects: tuple[tuple[int, str], ...] = ()
    """Ids and names of the columns of what is written, where only another execution has its plan."""
    version: int | None = None
    """Of the Delta table before it was changed."""
    rewrites: bool = False
    """The plan of a change in place hands on the columns that stay as they are, too."""

    @property
    def output_mode(self) -> str:
        """As in `RunOutput`: an overwrite that adds to its target replaces only some of the rows that are there."""
        return OVERWRITES_SOME if (self.save_mode, self.mode) == ("overwrite", "append") else self.save_mode


@dataclass(frozen=True, slots=True)
class Reading:
    """The meaning of an execution's plan."""

    flow: PlanDependencies
    normal: str
    """The plan without ids and literals, so that equal work reads equal."""
    written: WrittenDataset | None = None
    """None: nothing is written."""
    places: Mapping[str, DatasetPlace] = field(default_factory=dict)
    """Datasets that are read, by id, with their other names."""
    columns: Columns = field(default_factory=dict)
    """Columns of the datasets that are read, as far as they were seen."""
    notes: tuple[Diagnostic, ...] = ()
    """Everything that is not understood, ``flow.breaks`` included."""
    command: bool = False
    """The plan does something, rather than answer."""
    defined: Defined | None = None
    """The effects of the plan on the catalog."""
    ids: tuple[int, ...] = ()
    """Of the columns that the plan computes, by position."""
    unplaced: bool = False
    """The plan writes, and does not tell where to."""
    case_sensitive: bool = False
    """Names of columns have a case."""


class Execution(Protocol):
    """One execution, with the facts that its source can give."""

    @property
    def opened(self) -> float:
        """The begin, on a scale of the source's own."""

    @property
    def closed(self) -> float:
        """The end, on a scale of the source's own: one that opens before another and does not close before it
        encloses it.
        """

    @property
    def reading(self) -> Reading | None:
        """The meaning of its plan; None: it could not be read, or there is none."""

    @property
    def problem(self) -> Diagnostic | None:
        """The reason why the plan could not be read; None beside no reading: nothing ran."""

    @property
    def is_batch(self) -> bool:
        """True if this is the batch of a streaming query itself, whose function may run anything inside of it."""

    @property
    def is_inference(self) -> bool:
        """True if Spark only looks at files to find their schema."""


E = TypeVar("E", bound=Execution)


@dataclass(frozen=True, slots=True)
class Action(Generic[E]):
    """Executions that are one action: at most one write."""

    lead: E
    """The outermost: it gives the run its name, its times and its end."""
    members: tuple[E, ...]
    """All of them in the order in which they began, the lead among them."""
    main: E
    """The one whose plan computes what is written or returned."""
    written: WrittenDataset | None
    """The write, with all that any member knows of it."""


class RunSource(Protocol[E]):
    """Makes runs of the executions of one kind of source."""

    def run(self, action: Action[E]) -> Run:
        """The run of an action, without inputs, outputs, plan and breaks; its job is named later."""

    def inputs(self, action: Action[E]) -> tuple[RunInput, ...]:
        """Return the inputs, sorted by dataset."""

    def outputs(self, action: Action[E]) -> tuple[RunOutput, ...]:
        """Return the outputs, with their figures."""

    def evidence(self, action: Action[E]) -> str:
        """The normalised plan that stands as the action's evidence."""
