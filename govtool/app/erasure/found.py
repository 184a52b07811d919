"""Results of an erasure on rows: inputs with the subject's rows, outputs, and what was not followed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from govtool.answers.row_erasure import Unsearched
from govtool.app.erasure.deltas import DatasetDelta
from govtool.records.execute.places import Place, place_of

if TYPE_CHECKING:
    from govtool.app.erasure.chain import ChainLink
    from govtool.app.erasure.keys import Wanted
    from govtool.app.erasure.search import FoundRow, SearchedInput
    from govtool.app.erasure.step import CorrectedOutput
    from govtool.records.plan.nodes import Relation


@dataclass(frozen=True, slots=True)
class ErasedSource:
    """An input that no recorded run wrote.

    Attributes:
        dataset: Its id.
        searched: Its files that were searched, by what read them.
        key: Its declared key.
    """

    dataset: str
    searched: tuple[SearchedInput, ...]
    key: tuple[str, ...]

    def rows(self) -> dict[tuple[Place, int], FoundRow]:
        """The subject's rows, each once, in their order."""
        found = {(row.place, row.row): row for each in self.searched for row in each.rows}
        return dict(sorted(found.items()))

    def delta(self) -> DatasetDelta:
        """What changes in its files."""
        files = {place_of(file): file for each in self.searched for file in each.relation.files}
        listed = tuple(replace(file, ordinal=n) for n, (_, file) in enumerate(sorted(files.items())))
        drops: dict[Place, dict[int, int | None]] = {}
        for place, row in self.rows():
            drops.setdefault(place, {})[row] = None
        return DatasetDelta(replace(self.searched[0].relation, files=listed), drops)


@dataclass(frozen=True, slots=True)
class ErasedOutput:
    """A write that the subject's rows may have reached.

    Attributes:
        link: The write.
        corrected: What its output becomes; None: nothing was evaluated.
        unknown: Why that is not known; empty: it is.
        cut: Whether its inputs stay as they are as far as is known, so that nothing had to be evaluated.
        tokens: The subject's own rows in it, where the subject was named by a column of it.
        uncertain: Why rows are not certain: reasons of inputs, and of its own.
        deleted: Keys whose rows go from it, whatever its inputs.
        rows: How many rows it has; None: not known.
        read: How many rows its inputs have; None: not known.
    """

    link: ChainLink
    corrected: CorrectedOutput | None = None
    unknown: str = ""
    cut: bool = False
    tokens: tuple[str, ...] = ()
    uncertain: tuple[str, ...] = ()
    deleted: tuple[Wanted, ...] = ()
    rows: int | None = None
    read: int | None = None


@dataclass(frozen=True, slots=True)
class JoinedInput:
    """An input without the subject's key that a run read together with what the subject's rows reached.

    Attributes:
        relation: Its files.
        run: The first run that did.
        beside: Another input of that run, which the rows reached.
    """

    relation: Relation
    run: str
    beside: str


@dataclass(frozen=True, slots=True)
class RowErasure:
    """The subject's rows, and what becomes of all outputs that they reached.

    Attributes:
        sources: Inputs.
        outputs: Writes in topological order.
        not_searched: Inputs that were not searched, or not whole.
        not_reached: Outputs that are not there any more, and rows that went elsewhere.
        joined: Inputs that were not searched, and were read together with what the subject's rows reached. Rows of
            theirs may be about the subject by another key, which nothing here follows.
    """

    sources: tuple[ErasedSource, ...]
    outputs: tuple[ErasedOutput, ...]
    not_searched: tuple[Unsearched, ...]
    not_reached: tuple[Unsearched, ...]
    joined: tuple[JoinedInput, ...] = ()
