"""Sets of records that are traced back and forward, and replayed: the Python interface to record-level provenance.

    lineage = Lineage.of(plan, executor)
    bad = lineage.where("error_code = 4")
    bad.go_back()           one boundary         bad.go_back_all()      to the inputs
    rows.go_next()          one boundary         rows.go_next_all()     to the output
    bad.go_back_all().df()  raw data             bad.go_back_all().answer().to_dict()

Source: the record-level capture design, "The interface".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

from govtool.errors import UsageError
from govtool.records.trace.back import StagePosition
from govtool.records.trace.traced_rows import TracedRows

if TYPE_CHECKING:
    from govtool.records.replay.answer import ReplayAnswer
    from govtool.records.replay.changes import Change


@dataclass(frozen=True, slots=True, repr=False)
class RecordSet(TracedRows):
    """Rows at one place or at several: of the output, between two boundaries, or of inputs."""

    def replay(
        self,
        exclude: TracedRows | Mapping[str, str] | None = None,
        with_: Mapping[str, str | PathLike[str]] | None = None,
        script: str | PathLike[str] | Sequence[str] | None = None,
    ) -> ReplayAnswer:
        """These rows, of the output or at a boundary, evaluated over changed inputs and compared with what they were.

        After ``where()``, and at a boundary, rows count as these if they agree with one of them in all columns that are
        not computed. Others are left out, so that ``new`` has no rows with other values there; ``govtool replay``
        compares the whole output. Of rows at several boundaries, ``at()`` chooses one.

        Args:
            exclude: Rows of inputs to leave out, as a trace of the same plan found them; or by input, or by boundary
                (see ``boundaries``), a Spark SQL boolean expression.
            with_: By input, or by boundary, the Parquet file or folder that is read instead.
            script: A PySpark script of yours, or it and its arguments, that is run over the traced inputs of these
                output rows; no other change is made.

        Raises:
            UsageError: Nothing is changed, a condition is mistaken, files cannot be read, or these are rows of inputs.
            UnknownNameError: A change is of no input.
            EvidenceError: Inputs are gone or have changed (``evidence.changed``).
            EngineError: No engine evaluates the plan exactly.
        """
        # Not with this module: a trace from the command line needs none of them.
        from govtool.records.replay.changes import exclusions
        from govtool.records.replay.compare import replay
        from govtool.records.replay.files import replacement
        from govtool.records.replay.script import replay_script, script_of

        if self.lineage.kept:
            raise UsageError(
                "rows that are traced by kept positions are not replayed",
                code="usage.rows",
                hint=f"govtool replay {self.lineage.run} evaluates the plan",
            )
        if script is not None:
            if exclude or with_:
                raise UsageError("a script is run over the traced rows as they are", code="usage.arguments")
            return replay_script(self, script_of(script))
        positions = [part for part in self._place(None) if isinstance(part, StagePosition)]
        if not positions:
            raise UsageError("rows of the output, or at a boundary, are replayed; these are inputs", code="usage.rows")
        replacements = [replacement(dataset, place) for dataset, place in (with_ or {}).items()]
        changes: list[Change] = [*exclusions(self.lineage, exclude), *replacements]
        return replay(self.lineage, changes, positions)
