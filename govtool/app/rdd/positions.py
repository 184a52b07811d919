"""Records traced by positions that a run kept: no function of the program is needed, and no Spark.

A position is a number; tables pair those of a boundary with those of the one before it. A trace looks numbers up, and
reads lines from the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from govtool.app.rdd.conditions import line_condition
from govtool.app.rdd.kept_places import KeptPlace, graded, merged, node_of
from govtool.app.rdd.lines import DUPLICATES, lines_at, lines_of, meeting
from govtool.app.rdd.opened_positions import sorted_ids
from govtool.app.rdd.programs import session_of
from govtool.app.runs.lookup import is_named
from govtool.errors import EvidenceError, UnknownNameError, UsageError
from govtool.model.position_facts import RESULT
from govtool.model.positions import require_row_within
from govtool.model.token import ROW_BITS, PositionToken
from govtool.records.execute.places import Place, place_of
from govtool.records.trace.answer import InputAnswer, StepAnswer, TraceAnswer, text_table
from govtool.records.trace.traced_rows import SHOWN

if TYPE_CHECKING:
    from govtool.app.rdd.opened_positions import Ids, OpenedPositions
    from govtool.records.plan.expressions import Expression
    from govtool.records.plan.nodes import Relation

VALUE = "value"
_ROW = (1 << ROW_BITS) - 1


_NO_POSITIONS = "{:,} of the records that these came to have no positions"
"""Why records may be missing; with a number."""


@dataclass(frozen=True, slots=True, repr=False)
class KeptRecords:
    """Records at one place of a program or at several, traced by positions.

    Attributes:
        opened: The run.
        places: The records.
        steps: The boundaries that led here.
    """

    opened: OpenedPositions
    places: tuple[KeptPlace, ...]
    steps: tuple[StepAnswer, ...] = ()

    def __repr__(self) -> str:
        """The places of the rows: a notebook shows it, and that of a whole plan fills pages."""
        return f"<govtool.{type(self).__name__} at {', '.join(self.names())}>"

    # ---- moves --------------------------------------------------------------------------------------------------

    def where(self, condition: str, dataset: str | None = None) -> KeptRecords:
        """The rows whose text meets a condition, a Spark SQL boolean expression over the column ``value``.

        Raises:
            UsageError: It does not parse, names another column, or the rows have no text or are at several places.
        """
        meets = line_condition(condition)
        places = self._named(dataset)
        if places[0].node == RESULT and self.opened.output is not None:
            return replace(self, places=(self._chosen_lines(places[0], self.opened.output, meets),))
        texts = dict.fromkeys(text for place in places for _, text in self._texts(place))
        found, engine = meeting(texts, meets, session_of(self.opened.run))
        self.opened.engines.append(engine)
        kept = [sorted_ids({n for n, text in self._texts(place) if text in found}) for place in places]
        return replace(self, places=tuple(replace(p, ids=ids) for p, ids in zip(places, kept, strict=True)))

    def go_back(self) -> KeptRecords:
        """The rows one boundary below; rows of inputs stay where they are."""
        stay = [place for place in self.places if self.opened.is_source(place.node)]
        leave = [place for place in self.places if not self.opened.is_source(place.node)]
        found = [reached for place in leave for reached in self._back(place)]
        return replace(self, places=merged([*stay, *found]), steps=(*self.steps, *map(self._step, leave)))

    def go_back_all(self) -> KeptRecords:
        """The input rows; from the operator that is farthest on, so that each is looked up once."""
        current = self
        while leave := [place for place in current.places if not self.opened.is_source(place.node)]:
            last = next((place for place in leave if place.node == RESULT), max(leave, key=node_of))
            others = [place for place in current.places if place is not last]
            step = self._step(last)
            current = replace(current, places=merged([*others, *self._back(last)]), steps=(*current.steps, step))
        return current

    def go_next(self) -> KeptRecords:
        """The rows one boundary above."""
        stay = [place for place in self.places if place.node == RESULT]
        found = [reached for place in self.places for reached in self._on(place)]
        return replace(self, places=merged([*stay, *found]))

    def go_next_all(self) -> KeptRecords:
        """The output rows whose trace has one of these rows."""
        current = self
        while any(place.node != RESULT for place in current.places):
            first = min((place for place in current.places if place.node != RESULT), key=node_of)
            others = [place for place in current.places if place is not first]
            current = replace(current, places=merged([*others, *self._on(first)]))
        return current

    # ---- rows ---------------------------------------------------------------------------------------------------

    def count(self) -> int:
        """Return the number of rows; lines of a result that equal each other count as often as they are there."""
        return sum(self._count(place) for place in self.places)

    def names(self) -> list[str]:
        """The places of the rows."""
        return list(dict.fromkeys(self.opened.place_name(place.node) for place in self.places))

    def arrow(self, dataset: str | None = None) -> Any:
        """The rows as a pyarrow table with the column ``value``."""
        import pyarrow as pa

        rows = [row for place in self._named(dataset) for row in self._rows(place, None)]
        return pa.table({VALUE: pa.array([row.get(VALUE) for row in rows], pa.string())})

    def df(self, dataset: str | None = None) -> Any:
        """The rows as a data frame of pandas with the column ``value``."""
        return self.arrow(dataset).to_pandas()

    def ids(self, dataset: str | None = None) -> tuple[PositionToken, ...]:
        """The tokens of input rows, by dataset and in the order of its rows.

        Raises:
            UsageError: Some rows are not those of inputs.
        """
        wanted = [place for place in self.places if dataset in (None, self.opened.place_name(place.node))]
        if not all(self.opened.is_source(place.node) for place in wanted):
            raise UsageError(
                "rows between boundaries have no ids; go_back_all() comes to the inputs", code="usage.rows"
            )
        ordered = sorted(wanted, key=lambda place: self.opened.place_name(place.node))
        return tuple(self._token(place.node, int(number)) for place in ordered for number in self._there(place))

    def at_lines(self, rows: Mapping[Place, set[int]]) -> KeptRecords:
        """The result's lines at given places of the written files; equal lines cannot be distinguished.

        Raises:
            EvidenceError: The files are gone or have changed (``evidence.changed``).
        """
        from govtool.spark.rdd.eager import text_id

        texts = lines_at(self.opened.output, rows)
        place = replace(self.places[0], ids=sorted_ids({text_id(text) for text in texts}))
        if self._count(place) > len(texts):
            place = replace(place, exactness="superset", why=DUPLICATES)
        return replace(self, places=(place,))

    def file_rows(self) -> list[tuple[str, dict[Place, set[int]]]]:
        """Rows of files, by dataset and by the recorded identity of the file."""
        found = []
        for place in self.places:
            leaf = self.opened.leaves.get(place.node)
            if leaf is not None:
                files = {file.ordinal: place_of(file) for file in leaf.files}
                rows: dict[Place, set[int]] = {}
                for number in map(int, self._there(place)):
                    rows.setdefault(files[number >> ROW_BITS], set()).add(number & _ROW)
                found.append((leaf.dataset, rows))
        return found

    # ---- answers ------------------------------------------------------------------------------------------------

    def explain(self) -> str:
        """The steps in words, one per line."""
        return "\n".join(step.text for step in (*self.steps, *map(self._step, self.places)))

    def answer(self, limit: int = SHOWN) -> TraceAnswer:
        """The answer in the form of ``trace/1``.

        Args:
            limit: The most rows of an input that are shown; counts are whole.
        """
        first = next((step.rows for step in self.steps), None)
        inputs = [place for place in self.places if self.opened.is_source(place.node)]
        return TraceAnswer(
            run=self.opened.run.run,
            output=self.opened.name,
            selected=self.count() if first is None else first,
            steps=self.steps,
            inputs=tuple(self.rows_of(place, limit) for place in inputs),
            refused=self.opened.refused,
        )

    def between(self, limit: int) -> tuple[InputAnswer, ...]:
        """Rows at boundaries: their number, as no text of them is kept."""
        inner = [place for place in self.places if place.node != RESULT and not self.opened.is_source(place.node)]
        return tuple(self.rows_of(place, limit) for place in inner)

    def outputs(self, limit: int) -> tuple[InputAnswer, ...]:
        """Rows of the result, at their places in the written files."""
        return tuple(self.rows_of(place, limit) for place in self.places if place.node == RESULT)

    def rows_of(self, place: KeptPlace, limit: int) -> InputAnswer:
        """The rows of a place."""
        step, leaf = self._step(place), self._leaf(place.node)
        rows = tuple(self._rows(place, limit))
        version = leaf.version if leaf is not None else ""
        name = self.opened.place_name(place.node)
        why = step.why if rows or not step.rows else step.why or "the text of these records was not kept"

        def table() -> Any:
            return text_table(self._rows(place, None))

        return InputAnswer(name, version, step.exactness, why, step.rows, step.rows > len(rows), rows, table=table)

    # ---- parts --------------------------------------------------------------------------------------------------

    def _named(self, dataset: str | None) -> list[KeptPlace]:
        """The places of one name."""
        names = tuple(self.names())
        named = [p for p in self.places if dataset is None or is_named(self.opened.place_name(p.node), dataset)]
        if not named:
            raise UnknownNameError(f"no rows of '{dataset or 'any dataset'}'", code="usage.no-rows", nearest=names)
        if len({self.opened.place_name(place.node) for place in named}) > 1:
            raise UsageError(
                f"these rows are of several places: {', '.join(names)}", code="usage.several-datasets", nearest=names
            )
        return named

    def _leaf(self, node: int) -> Relation | None:
        return self.opened.output if node == RESULT else self.opened.leaves.get(node)

    def _step(self, place: KeptPlace) -> StepAnswer:
        grade, why = place.exactness, place.why
        if self.opened.refused:
            grade, why = "incomplete", "input files are gone or have changed"
        name = "output" if place.node == RESULT else self.opened.place_name(place.node)
        numbers = self._found(place)
        if lost := len(place.ids) - len(set(numbers)) if place.node == RESULT else 0:
            grade, why = "incomplete", f"{lost:,} of these records are no line of the written files"
        return StepAnswer(name, grade, why, len(numbers))

    def _count(self, place: KeptPlace) -> int:
        return len(self._found(place))

    def _found(self, place: KeptPlace) -> list[int] | Ids:
        """Positions of records that are there: of a result as often as a written line has it."""
        if place.node == RESULT and self.opened.output is not None:
            return [number for number, *_ in self._lines(place)]
        return self._there(place)

    def _there(self, place: KeptPlace) -> Ids:
        """Positions without those in files that are refused."""
        import numpy as np

        leaf = self.opened.leaves.get(place.node)
        gone = {each.file for each in self.opened.refused}
        numbers = [file.ordinal for file in leaf.files if file.uri in gone] if leaf is not None else []
        return place.ids[~np.isin(place.ids >> ROW_BITS, numbers)] if numbers else place.ids

    def _back(self, place: KeptPlace) -> Iterator[KeptPlace]:
        import numpy as np

        for node, stops, reason in self.opened.coarse:
            if node == place.node and len(place.ids):
                yield from (KeptPlace(stop, self.opened.every(stop), "coarse", reason) for stop in stops)
        lost = self._without_positions(place)
        for node, stop, exactness, reason, pairs in self.opened.tables():
            if node == place.node:
                found = np.unique(pairs[np.isin(pairs[:, 0], place.ids)][:, 1])
                made = graded(KeptPlace(stop, found, exactness, reason), place)
                yield replace(made, exactness="incomplete", why=_NO_POSITIONS.format(lost)) if lost else made

    def _without_positions(self, place: KeptPlace) -> int:
        """How many records of an operator have no position at all: each came from some record, so a part is missing.

        A function of whole partitions also makes records of an empty one.
        """
        import numpy as np

        own = [(grade, pairs[:, 0]) for node, _, grade, _, pairs in self.opened.tables() if node == place.node]
        is_coarse = any(node == place.node for node, *_ in self.opened.coarse)
        if not own or is_coarse or any(grade != "exact" for grade, _ in own):
            return 0
        return int((~np.isin(place.ids, np.concatenate([ids for _, ids in own]))).sum())

    def _on(self, place: KeptPlace) -> Iterator[KeptPlace]:
        import numpy as np

        for node, stops, reason in self.opened.coarse:
            if place.node in stops and len(place.ids):
                yield KeptPlace(node, self.opened.every(node), "coarse", reason)
        for node, stop, exactness, reason, pairs in self.opened.tables():
            if stop == place.node:
                found = np.unique(pairs[np.isin(pairs[:, 1], place.ids)][:, 0])
                yield graded(KeptPlace(node, found, exactness, reason), place)

    def _chosen_lines(self, place: KeptPlace, output: Relation, meets: Expression) -> KeptPlace:
        """Lines of the written files that meet a condition.

        Raises:
            EvidenceError: The positions are of a run that did not give them (``evidence.program-differs``).
        """
        import numpy as np

        from govtool.spark.rdd.eager import text_id

        every = dict.fromkeys(text for file in output.files for text in lines_of(file))
        found, engine = meeting(every, meets, session_of(self.opened.run))
        self.opened.engines.append(engine)
        chosen = sorted_ids(map(text_id, found))
        lost = int((~np.isin(chosen, kept_result(self.opened).places[0].ids)).sum())
        if lost:
            raise EvidenceError(
                f"{lost:,} of the chosen lines did not come again when positions were taken: "
                "a function is not deterministic",
                code="evidence.program-differs",
            )
        return replace(place, ids=np.intersect1d(place.ids, chosen))

    # ---- text ---------------------------------------------------------------------------------------------------

    def _texts(self, place: KeptPlace) -> Iterator[tuple[int, str]]:
        """Position and text of the records of a place.

        Raises:
            UsageError: Their text was not kept (``usage.no-text``).
        """
        if self._leaf(place.node) is not None:
            yield from ((number, text) for number, _, _, text in self._lines(place))
            return
        known = self.opened.texts.get(place.node)
        if known is None:
            raise UsageError(
                f"the text of the rows of {self.opened.place_name(place.node)} is not there",
                code="usage.no-text",
                hint="the files of the output are gone or have changed" if place.node == RESULT else None,
            )
        yield from ((number, known[number]) for number in map(int, place.ids) if number in known)

    def _lines(self, place: KeptPlace) -> Iterator[tuple[int, int, int, str]]:
        """Position, file, line and text of records that are lines of files."""
        from govtool.spark.rdd.eager import text_id

        leaf = self._leaf(place.node)
        assert leaf is not None
        wanted = frozenset(map(int, self._there(place)))
        gone = {each.file for each in self.opened.refused}
        by_text = place.node == RESULT
        last = {number >> ROW_BITS: number & _ROW for number in sorted(wanted)}
        for file in leaf.files:
            if file.uri in gone or not (by_text or file.ordinal in last):
                continue
            rows = 0
            for row, text in enumerate(lines_of(file)):
                number = text_id(text) if by_text else file.ordinal << ROW_BITS | row
                rows = row + 1
                if number in wanted:
                    yield number, file.ordinal, row, text
            if not by_text:
                require_row_within(last[file.ordinal], rows)

    def _rows(self, place: KeptPlace, limit: int | None) -> Iterator[dict[str, Any]]:
        leaf = self._leaf(place.node)
        if leaf is not None:
            files = {file.ordinal: file.uri for file in leaf.files}
            name = self.opened.place_name(place.node)
            for _, file, row, text in islice(self._lines(place), limit):
                token = PositionToken(name, leaf.version or "current", file, row)
                yield {"_id": str(token), "_file": files[file], "_row": row, VALUE: text}
            return
        known = self.opened.texts.get(place.node, {})
        if place.node == RESULT:
            yield from ({VALUE: known[number]} for number in islice(map(int, place.ids), limit) if number in known)
        elif self.opened.is_source(place.node):
            for number in islice(map(int, place.ids), limit):
                token = self._token(place.node, number)
                yield {"_id": str(token), "_file": token.file, "_row": token.row, VALUE: known.get(number)}

    def _token(self, node: int, number: int) -> PositionToken:
        leaf = self._leaf(node)
        version = leaf.version if leaf is not None else "current"
        return PositionToken(self.opened.place_name(node), version, number >> ROW_BITS, number & _ROW)


def kept_result(opened: OpenedPositions) -> KeptRecords:
    """Every row of the result."""
    import numpy as np

    parts = [pairs[:, 0] for node, _, _, _, pairs in opened.tables() if node == RESULT]
    ids = np.unique(np.concatenate([np.empty(0, np.int64), *parts]))
    known = opened.texts.get(RESULT)
    if known is not None and opened.output is None:
        ids = ids[np.isin(ids, sorted_ids(known))]
    return KeptRecords(opened, (KeptPlace(RESULT, ids),))


def kept_input(opened: OpenedPositions, dataset: str) -> KeptRecords:
    """Every row of an input, by each operator that reads it.

    Raises:
        UnknownNameError: The program did not read it.
    """
    sources = sorted(node for node in opened.labels if opened.is_source(node))
    nodes = [node for node in sources if opened.place_name(node) == dataset]
    if not nodes:
        names = tuple(dict.fromkeys(map(opened.place_name, sources)))
        raise UnknownNameError(
            f"{opened.run.run} did not read {dataset!r}", code="usage.unknown-dataset", nearest=names
        )
    return KeptRecords(opened, tuple(KeptPlace(node, opened.every(node)) for node in nodes))


def kept_input_rows(opened: OpenedPositions, rows: Mapping[Place, set[int]]) -> KeptRecords:
    """The rows of inputs at given places of files."""
    places = []
    for node, leaf in opened.leaves.items():
        ordinals = {place_of(file): file.ordinal for file in leaf.files}
        ids = sorted_ids(
            ordinals[place] << ROW_BITS | row for place in rows if place in ordinals for row in rows[place]
        )
        if len(ids):
            places.append(KeptPlace(node, ids))
    return KeptRecords(opened, tuple(places))
