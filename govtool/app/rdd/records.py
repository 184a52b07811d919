"""Records of a stored RDD program, traced back and on: the interface of ``RecordSet`` over tracked RDDs.

A record is a line of text, or the text of a Python value between two boundaries; conditions are on its column
``value``. Every move evaluates operators of the program, with functions found again in the user's files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from govtool.app.rdd.conditions import among, line_condition
from govtool.app.rdd.lines import DUPLICATES, lines_at
from govtool.app.rdd.written import ALL_LINES, VALUE, by_id, by_place, file_ordinals, ordinal_of, rows_in_files
from govtool.app.runs.lookup import is_named
from govtool.errors import EvidenceError, UnknownNameError, UsageError
from govtool.model.token import PositionToken
from govtool.records.execute.places import place_of
from govtool.records.trace.answer import InputAnswer, StepAnswer, TraceAnswer, text_table
from govtool.records.trace.traced_rows import SHOWN
from govtool.spark.rdd import sources, worker
from govtool.spark.rdd.notes import worst

if TYPE_CHECKING:
    from govtool.app.rdd.open import OpenedProgram
    from govtool.records.execute.places import Place as Recorded
    from govtool.records.trace.segment import Exactness
    from govtool.spark.rdd.position import LineagePosition, RddPlace


@dataclass(frozen=True, slots=True, repr=False)
class RddRecords:
    """Rows at one place of a program or at several: of the output, between two boundaries, or of inputs.

    Attributes:
        opened: The program.
        position: The rows.
        steps: The boundaries that led here.
    """

    opened: OpenedProgram
    position: LineagePosition
    steps: tuple[StepAnswer, ...] = ()

    def __repr__(self) -> str:
        """The program's result: the places of the rows are found when rows are asked for."""
        return f"<govtool.{type(self).__name__} of {self.opened.name}>"

    # ---- moves --------------------------------------------------------------------------------------------------

    def where(self, condition: str, dataset: str | None = None) -> RddRecords:
        """The rows whose text meets a condition, a Spark SQL boolean expression over the column ``value``.

        Args:
            condition: Over the text of the rows.
            dataset: The input that it is about, where there are several; others are left out.

        Raises:
            UsageError: It does not parse, names another column, or the rows are at several places.
        """
        meets = line_condition(condition)
        position = self._at(dataset)
        found = among(self._texts(position), meets, self.opened.session)
        return replace(self, position=position.matching(found))

    def go_back(self) -> RddRecords:
        """The rows one boundary below; rows of inputs stay where they are."""
        steps = [self._step(place) for place in self._places() if not _is_source(place)]
        return replace(self, position=self.position.go_back(), steps=(*self.steps, *steps))

    def go_back_all(self) -> RddRecords:
        """The input rows."""
        self._places()
        visited, position = self.position.steps_back()
        return replace(self, position=position, steps=(*self.steps, *map(self._step, visited)))

    def go_next(self) -> RddRecords:
        """The rows one boundary above."""
        return replace(self, position=self.position.go_next())

    def go_next_all(self) -> RddRecords:
        """The output rows whose trace has one of these rows."""
        return replace(self, position=self.position.go_next_all())

    # ---- rows ---------------------------------------------------------------------------------------------------

    def count(self) -> int:
        """Return the number of rows."""
        return sum(place.rows.count() for place in self._places())

    def names(self) -> list[str]:
        """The places of the rows."""
        return list(dict.fromkeys(self.name_of(place) for place in self._places()))

    def arrow(self, dataset: str | None = None) -> Any:
        """The rows as a pyarrow table with the column ``value``.

        Raises:
            UsageError: The rows are at several places, and no dataset is given.
        """
        import pyarrow as pa

        return pa.table({VALUE: pa.array(self._texts(self._at(dataset)).collect(), pa.string())})

    def df(self, dataset: str | None = None) -> Any:
        """The rows as a Spark DataFrame with the column ``value``.

        Raises:
            UsageError: The rows are at several places, and no dataset is given.
        """
        from govtool.spark.rdd.session import any_session

        texts = self._texts(self._at(dataset)).map(worker.alone)
        return any_session().createDataFrame(texts, f"{VALUE} string")

    def ids(self, dataset: str | None = None) -> tuple[PositionToken, ...]:
        """The tokens of input rows, by dataset and in the order of its rows.

        Raises:
            UsageError: Some rows are not those of inputs.
        """
        places = [place for place in self._places() if dataset in (None, self.name_of(place))]
        if not all(map(_is_source, places)):
            raise UsageError(
                "rows between boundaries have no ids; go_back_all() comes to the inputs", code="usage.rows"
            )
        return tuple(
            self._token(place, file, row)
            for place in sorted(places, key=self.name_of)
            for file, row, _ in self._records(place, None)
        )

    def at_lines(self, rows: Mapping[Recorded, set[int]]) -> RddRecords:
        """The result's lines at given places of the written files; equal lines cannot be distinguished.

        Raises:
            EvidenceError: The files are gone or have changed (``evidence.changed``).
        """
        from govtool.spark.rdd.conditions import KeyIn, keys_of
        from govtool.spark.rdd.notes import Note

        texts = lines_at(self.opened.output, rows)
        keys = keys_of(self.opened.context.spark_context.parallelize(texts))
        position = self.position.matching(KeyIn(keys, worker.shown))
        found = replace(self, position=position)
        if found.count() > len(texts):
            found = replace(found, position=position.noted(Note("superset", DUPLICATES)))
        return found

    def file_rows(self) -> list[tuple[str, dict[Recorded, set[int]]]]:
        """Rows of files, by dataset and by the recorded identity of the file."""
        found = []
        for place in self._places():
            leaf = self.opened.leaf(place.node) if _is_source(place) else None
            if leaf is None:
                continue
            files = {file.ordinal: place_of(file) for file in leaf.files}
            rows: dict[Recorded, set[int]] = {}
            for file, row, _ in self._records(place, None):
                rows.setdefault(files[file], set()).add(row)
            found.append((leaf.dataset, rows))
        return found

    # ---- answers ------------------------------------------------------------------------------------------------

    def explain(self) -> str:
        """The steps in words, one per line."""
        return "\n".join(step.text for step in (*self.steps, *map(self._step, self._places())))

    def answer(self, limit: int = SHOWN) -> TraceAnswer:
        """The answer in the form of ``trace/1``.

        Args:
            limit: The most rows of an input that are shown; counts are whole.
        """
        first = next((step.rows for step in self.steps), None)
        return TraceAnswer(
            run=self.opened.run.run,
            output=self.opened.name,
            selected=self.count() if first is None else first,
            steps=self.steps,
            inputs=tuple(self.rows_of(place, limit) for place in self._places() if _is_source(place)),
            refused=self.opened.refused,
        )

    def between(self, limit: int) -> tuple[InputAnswer, ...]:
        """Rows at boundaries, which have no ids, and not those of the result."""
        places = [place for place in self._places() if not _is_source(place)]
        return tuple(self.rows_of(place, limit) for place in places if place.node is not self.opened.node)

    def outputs(self, limit: int) -> tuple[InputAnswer, ...]:
        """Rows of the result, as records of the written files where they are found there."""
        places = [place for place in self._places() if place.node is self.opened.node]
        return tuple(self._written(place, limit) for place in places)

    def rows_of(self, place: RddPlace, limit: int) -> InputAnswer:
        """The rows of a place."""
        grade, why = self._grade(place)
        count = place.rows.count()
        leaf = self.opened.leaf(place.node)
        rows = tuple(self._shown(place, limit))
        version = leaf.version if leaf is not None else ""
        name = self.name_of(place)

        def table() -> Any:
            return text_table(self._shown(place, ALL_LINES))

        return InputAnswer(name, version, grade, why, count, count > len(rows), rows, table=table)

    def name_of(self, place: RddPlace) -> str:
        """The dataset of a place, or the operator."""
        if _is_source(place):
            return self.opened.source_name(place.node)
        return self.opened.name if place.node is self.opened.node else place.node.label

    # ---- parts --------------------------------------------------------------------------------------------------

    def _places(self) -> list[RddPlace]:
        """The places with their rows.

        Raises:
            EvidenceError: A re-run of the program gives other records than the run had (``evidence.program-differs``).
        """
        from govtool.spark.rdd.saved import EAGER

        places = self.position.settled()
        broken = [note.reason for place in places for note in place.notes if note.exactness == "break"]
        if broken and not self.opened.refused:
            raise EvidenceError(broken[0], code="evidence.program-differs", hint=EAGER)
        return places

    def _at(self, dataset: str | None) -> LineagePosition:
        """The rows at one place."""
        places = self.position.places()
        named = [place for place in places if dataset is None or is_named(self.name_of(place), dataset)]
        if len({self.name_of(place) for place in named}) == 1:
            return self.position if dataset is None else self.position.within(place.node for place in named)
        if not named:
            names = tuple(self.names())
            raise UnknownNameError(f"no rows of '{dataset or 'any dataset'}'", code="usage.no-rows", nearest=names)
        raise UsageError(
            f"these rows are of several places: {', '.join(self.names())}",
            code="usage.several-datasets",
            nearest=tuple(self.names()),
        )

    def _texts(self, position: LineagePosition) -> Any:
        """The text of rows; of the whole result that of the written files, which need no run of the program."""
        whole = [place for place in position.places() if place.rows is None and place.node is self.opened.node]
        written = self.opened.node.details.get("written") if whole else None
        if written is not None:
            return self.opened.context.spark_context.textFile(written)
        return position.rdd.map(worker.shown)

    def _step(self, place: RddPlace) -> StepAnswer:
        grade, why = self._grade(place)
        name = "output" if place.node is self.opened.node else place.node.label
        return StepAnswer(name, grade, why, place.rows.count())

    def _grade(self, place: RddPlace) -> tuple[Exactness, str]:
        found = worst(place.notes)
        reasons = "; ".join(dict.fromkeys(note.reason for note in place.notes))
        if self.opened.refused:
            return "incomplete", "input files are gone or have changed"
        grades: dict[str, Exactness] = {"exact": "exact", "superset": "superset", "coarse": "coarse"}
        return grades.get(found, "incomplete"), reasons

    def _shown(self, place: RddPlace, limit: int) -> Iterator[dict[str, Any]]:
        if not _is_source(place):
            for row in place.rows.takeOrdered(limit, by_id):
                yield {VALUE: worker.shown(row[1])}
            return
        leaf = self.opened.leaf(place.node)
        files = {file.ordinal: file.uri for file in leaf.files} if leaf is not None else {}
        for file, row, value in self._records(place, limit):
            yield {
                "_id": str(self._token(place, file, row)),
                "_file": files.get(file, file),
                "_row": row,
                VALUE: worker.shown(value),
            }

    def _token(self, place: RddPlace, file: int, row: int) -> PositionToken:
        leaf = self.opened.leaf(place.node)
        version = leaf.version if leaf is not None else "current"
        return PositionToken(self.name_of(place), version, file, row)

    def _records(self, place: RddPlace, limit: int | None) -> list[tuple[int, int, Any]]:
        """File ordinal, row and value of input rows."""
        rows = place.rows.collect() if limit is None else place.rows.takeOrdered(limit, by_id)
        names = sources.places_of(place.node, [row[0] for row in rows])
        ordinals = file_ordinals(self.opened.leaf(place.node))
        found = [(ordinal_of(ordinals, file), number, row[1]) for (file, number), row in zip(names, rows, strict=True)]
        return sorted(found, key=by_place)

    def _written(self, place: RddPlace, limit: int) -> InputAnswer:
        written = self.opened.node.details.get("written")
        if written is None or self.opened.output is None:
            found = self.rows_of(place, limit)
            return replace(found, exactness="superset", why=_NOT_FOUND) if self.opened.run.output else found
        return rows_in_files(self.opened, self.opened.output, written, place, self._grade(place), limit)


_NOT_FOUND = "the rows are not found again in the written files: shown as the program gives them"


def _is_source(place: RddPlace) -> bool:
    return place.node.kind.value == "source"


def all_records(opened: OpenedProgram) -> RddRecords:
    """Every row of a program's result."""
    return RddRecords(opened, opened.context.position(opened.node))


def program_input(opened: OpenedProgram, dataset: str) -> RddRecords:
    """Every row of an input.

    Raises:
        UnknownNameError: The program does not read it.
    """
    from govtool.spark.rdd.log import ancestors

    every = [node for node in ancestors((opened.node,)) if node.kind.value == "source"]
    found = [node for node in every if opened.source_name(node) == dataset]
    if not found:
        names = tuple(dict.fromkeys(map(opened.source_name, every)))
        raise UnknownNameError(
            f"{opened.run.run} did not read {dataset!r}", code="usage.unknown-dataset", nearest=names
        )
    return RddRecords(opened, opened.context.position(*found))


def input_rows(opened: OpenedProgram, rows: Mapping[Recorded, set[int]]) -> RddRecords:
    """The rows of inputs at given places of files."""
    from govtool.model.token import ROW_BITS
    from govtool.spark.rdd import eager
    from govtool.spark.rdd.log import ancestors

    found = []
    for node in ancestors((opened.node,)):
        leaf = opened.leaf(node)
        files = leaf.files if leaf is not None else ()
        ordinals = {place_of(file): file.ordinal for file in files}
        packed = [ordinals[place] << ROW_BITS | row for place in rows if place in ordinals for row in rows[place]]
        if packed:
            found.append((node, eager.rows_at(node, packed)))
    return RddRecords(opened, opened.context.position_of(found))
