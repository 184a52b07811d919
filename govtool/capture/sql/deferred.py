"""Templates that ask for the columns of relations: they are rendered when those are known.

dbt's macros ask the warehouse which columns a relation has (``dbt_utils.star``, ``adapter.get_columns_in_relation``).
Here the batch answers: what is asked for is settled first, and where that is what another such template defines, that
one is rendered before. It is the stack of the LineageX paper (section 3) once more, one step earlier.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from govtool.names import fold, fold_name, join_name, split_name

if TYPE_CHECKING:
    from govtool.capture.sql.batch import Batch
    from govtool.capture.sql.extract import Options
    from govtool.capture.sql.states import ScriptState
    from govtool.capture.sql.templates.rendering import ColumnsOf

_PLAIN = re.compile(r"[A-Za-z_][\w$]*\Z")


class Deferred:
    """The templates of a batch that wait for columns."""

    def __init__(self, batch: Batch, options: Options) -> None:
        """Begin with none."""
        self._batch = batch
        self._options = options
        self._places: list[int] = []
        self._makes: list[Callable[[ColumnsOf], ScriptState]] = []
        self._made: dict[int, ScriptState | None] = {}

    def defer(self, relation: str | None, make: Callable[[ColumnsOf], ScriptState]) -> None:
        """Let a template wait whose place in the batch is here.

        Args:
            relation: What it defines, if that is known.
            make: Renders and parses it, with what tells columns.
        """
        number = len(self._makes)
        self._places.append(len(self._batch.scripts))
        self._makes.append(make)
        if relation is not None:
            self._batch.later.setdefault(relation, []).append(lambda: self._add(number))

    def settle(self) -> None:
        """Render all that wait, now that all other scripts are parsed; each comes to its place in the batch."""
        batch = self._batch
        if not self._makes:
            return
        others = batch.scripts
        batch.scripts = []
        for number in range(len(self._makes)):
            self._add(number)
        batch.later.clear()
        scripts: list[ScriptState] = []
        number = 0
        for place in range(len(others) + 1):
            while number < len(self._places) and self._places[number] == place:
                state = self._made[number]
                if state is not None:
                    scripts.append(state)
                number += 1
            scripts += others[place : place + 1]
        batch.scripts = scripts

    def _add(self, number: int) -> None:
        if number in self._made:  # it may be being made: what waits for itself is told nothing
            return
        self._made[number] = None
        state = self._makes[number](self._columns)
        self._made[number] = state
        self._batch.add(state)

    def _columns(self, parts: tuple[str, ...]) -> Mapping[str, str | None] | None:
        return self._batch.columns(relation_named(parts, self._options))


def relation_named(parts: Sequence[str], options: Options) -> str:
    """The canonical name of a relation by its parts as written, with the defaults of the ingest."""
    dialect = options.dialect
    names = [fold(part, quoted=not _PLAIN.match(part), dialect=dialect, table=True) for part in parts]
    if len(names) == 1 and options.default_schema:
        names = [*split_name(fold_name(options.default_schema, dialect)), *names]
    if len(names) == 2 and options.default_catalog:
        names = [fold_name(options.default_catalog, dialect), *names]
    return join_name(names)


def known_tables(options: Options) -> Mapping[str, Mapping[str, str | None]] | None:
    """The columns that are given: of the supplied schema, and of the seeds of dbt projects."""
    known = options.schema.tables if options.schema is not None else None
    seeds: dict[str, dict[str, str | None]] = {}
    for project in options.projects:
        for name, header in project.seeds.items():
            columns: dict[str, str | None] = {fold(column, dialect=options.dialect): None for column in header}
            relation = relation_named([name], options)
            if seeds.setdefault(relation, columns) != columns:  # of several projects: not known which
                seeds[relation] = {}
    seeds = {relation: columns for relation, columns in seeds.items() if columns}
    return {**seeds, **(known or {})} if seeds else known
