"""Properties of columns in dbt projects, and templates that ask for them: they are rendered when those are known.

dbt's macros ask the warehouse which columns a relation has (``dbt_utils.star``, ``adapter.get_columns_in_relation``).
Here the batch answers: what a template needs is settled first, and where another such template defines that, it is
rendered before. It is the stack of the LineageX paper (section 3) once more, one step earlier.

``Answers`` holds what a template was given: it renders to the same again where it is given the same again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from govtool.capture.sql.resolve.knowledge import Knowledge
from govtool.capture.sql.templates.sources import described_sources
from govtool.names import fold, fold_name, join_name, split_name

if TYPE_CHECKING:
    from govtool.capture.sql.options import Options
    from govtool.capture.sql.resolve.batch import Batch
    from govtool.capture.sql.resolve.states import Requested, ScriptState
    from govtool.capture.sql.templates.properties import Description
    from govtool.capture.sql.templates.run import ColumnsOf

_PLAIN = re.compile(r"[A-Za-z_][\w$]*\Z")


class Answers:
    """The columns that one template is given, in the order in which it asks; rendered again, it is given the same."""

    def __init__(self, columns: ColumnsOf) -> None:
        """Begin with none; ``columns`` tells them."""
        self._columns = columns
        self._given: list[tuple[tuple[str, ...], Mapping[str, str | None] | None]] = []
        self._next = 0

    def __call__(self, parts: tuple[str, ...]) -> Mapping[str, str | None] | None:
        """Return the columns of a relation; see ``ColumnsOf``."""
        if self._next == len(self._given):
            self._given.append((parts, self._columns(parts)))
        requested, answer = self._given[self._next]
        self._next += 1
        return answer if requested == parts else self._columns(parts)

    def again(self) -> Answers:
        """Return the same answers, for a rendering that begins anew."""
        self._next = 0
        return self

    def requested(self) -> list[Requested]:
        """Return what was requested, in order, with digests of the answers."""
        return [(list(parts), _digest_of(answer)) for parts, answer in self._given]

    def hold(self, requested: Iterable[Sequence[Any]]) -> bool:
        """Ask as a template did before; return whether the answers are the same. The first other one ends it."""
        return all(_digest_of(self(tuple(parts))) == digest for parts, digest in requested)


def _digest_of(answer: Mapping[str, str | None] | None) -> str:
    if not answer:  # templates cannot tell these apart
        return ""
    return blake2b(repr(list(answer.items())).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


class Deferred:
    """The templates of a batch that wait for columns.

    Args:
        batch: The batch.
        options: Those of the extraction.
        add: Adds a script to the batch; None: as one that is parsed.
    """

    def __init__(self, batch: Batch, options: Options, add: Callable[[ScriptState], None] | None = None) -> None:
        self._batch = batch
        self._options = options
        self._add_script = batch.add if add is None else add
        self._places: list[int] = []
        self._makes: list[Callable[[ColumnsOf], ScriptState]] = []
        self._made: dict[int, ScriptState | None] = {}

    def defer(self, relation: str | None, make: Callable[[ColumnsOf], ScriptState]) -> None:
        """Let a template wait whose place in the batch is here.

        Args:
            relation: What it defines, if that is known.
            make: Returns it rendered and parsed, with what tells columns.
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
        if number in self._made:  # it may be being made: what waits for itself gets nothing
            return
        self._made[number] = None
        state = self._makes[number](self._columns)
        self._made[number] = state
        self._add_script(state)

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
    """The relations whose columns are given, all of them: by the supplied schema, else by what dbt projects hold.

    Those are seeds, by their files, and models whose contract dbt enforces.
    """
    known = options.schema.tables if options.schema is not None else None
    found: dict[str, dict[str, str | None]] = {}
    for project in options.projects:
        project_properties = project.properties
        given: dict[str, dict[str, str | None]] = {
            relation_named([name], options): _columns(project_properties.described[name], options)
            for name in project_properties.contracts
        }
        for name, header in project.seeds.items():
            types = _columns(project_properties.described.get(name, ()), options)
            folded = (fold(column, dialect=options.dialect) for column in header)
            given[relation_named([name], options)] = {column: types.get(column) for column in folded}
        for relation, columns in given.items():
            if found.setdefault(relation, columns).keys() != columns.keys():  # of several projects: not known which
                found[relation] = {}
    found = {relation: columns for relation, columns in found.items() if columns}
    return {**found, **(known or {})} if found else known


def described_tables(options: Options) -> Knowledge:
    """The columns that dbt projects describe of other relations: they need not be all, nor all be there.

    So they make no column. They decide between relations whose columns are not all known, where each of these is
    described, one alone with that column, and usage does not show which.
    """
    known = known_tables(options) or {}
    found: dict[str, set[str]] = {}
    for project in options.projects:
        described = [((name,), columns) for name, columns in project.properties.described.items()]
        sources = described_sources(project, options.variables, options.dialect)
        for parts, columns in (*described, *((parts, table.columns) for parts, table in sources)):
            relation = relation_named(parts, options)
            if relation not in known:
                found.setdefault(relation, set()).update(_columns(columns, options))
    return Knowledge(described={relation: frozenset(names) for relation, names in found.items()})


def _columns(described: Description, options: Options) -> dict[str, str | None]:
    return {fold(column.name, quoted=column.quoted, dialect=options.dialect): column.type for column in described}
