"""SQL without Spark: scripts and dbt projects, run over files, and committed as a recorded program is.

Every statement that writes is an action: an exact plan, evaluated by the first engine that is exact (DuckDB, or Spark),
and a Parquet file in the folder of the run. Nothing is written over, so that all contents of a run stay readable.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.app.workflow_runs.programs import facts
from govtool.app.workflow_runs.programs.actions import SQL_SOURCE
from govtool.app.workflow_runs.programs.sql import ProgramStatement, SqlProgram, StatementKind
from govtool.app.workflow_runs.state import StateFolder, write_atomically
from govtool.clock import iso, now
from govtool.config import load_config
from govtool.errors import EngineError, StoreError, UsageError
from govtool.model.run import Run
from govtool.records.capture import RecordedWrite
from govtool.records.execute.inputs import relations
from govtool.records.execute.written_types import as_written
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute, Cast, Expression, Literal
from govtool.records.plan.nodes import File, Plan, Project, Relation, Write, outputs
from govtool.records.plan.tree import Node
from govtool.records.trace.normal import spare_ids

if TYPE_CHECKING:
    from govtool.store import CommitResult, Store

TABLES = "tables.json"
"""The file of a state folder that names what the next run starts from."""
NEXT_TABLES = "tables.next.json"
"""What ``TABLES`` is to be once the store has the run: a run may be killed behind its commit."""
_INPUTS = "inputs"
"""The folder of a run with its inputs."""
_NAME = re.compile(r"\w[\w.$-]{0,200}")
_MODES: Mapping[StatementKind, str] = {"append": "append", "table": "overwrite", "view": "overwrite"}


@dataclass(frozen=True, slots=True)
class SqlOutcome:
    """What a run did: its id, the folder of its files, and notes."""

    run: str
    folder: Path
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _View:
    statement: ProgramStatement
    seen: tuple[Relation, ...] = ()
    """What it was made of."""


def run_sql(program: SqlProgram, inputs: Path | None, state: Path, store: Store, branch: str) -> SqlOutcome:
    """Run a program and commit it. A program that fails leaves nothing.

    Args:
        program: The program.
        inputs: A folder of relations: ``*.csv``, ``*.parquet``.
        state: The folder of its runs.
        store: The store.
        branch: Where to commit.

    Raises:
        UsageError: A statement is mistaken, or is not covered; with its place.
        EngineError: A statement fails (``engine.statement``), or no engine is exact on it.
        StoreError: The commit could not be written.
    """
    started = iso(now())
    stamp = started[:19].replace("-", "").replace(":", "").replace("T", "-")
    run = f"{program.name}-{stamp}-{secrets.token_hex(3)}"
    root = state.absolute()
    kept = StateFolder(root, program.name)
    with kept.opened() as pointer:
        folder = root / run
        folder.mkdir(parents=True)
        try:
            warehouse = _Warehouse(program, run, folder)
            warehouse.open_inputs(inputs)
            warehouse.open_state(root / TABLES)
            for statement in program.statements:
                warehouse.execute(statement)
            if program.state:
                kept.advance(pointer)  # names the program that this state is of: another one is refused
                warehouse.keep_state(root / NEXT_TABLES, branch)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        try:
            _commit(store, program, warehouse, branch)
        except BaseException:
            with contextlib.suppress(StoreError):  # a store that does not answer may have the run
                if not _is_committed(store, branch, warehouse.source):
                    shutil.rmtree(folder, ignore_errors=True)
            raise
        if program.state:
            _take_over(root / NEXT_TABLES)
    return SqlOutcome(run, folder, program.notes)


class _Warehouse:
    """The relations of a run as they are now."""

    def __init__(self, program: SqlProgram, run: str, folder: Path) -> None:
        self.program = program
        self.run = run
        self.folder = folder
        self.runs: list[Run] = []
        self.writes: list[RecordedWrite] = []
        self._tables: dict[str, Relation] = {}
        self._views: dict[str, _View] = {}
        self._given: set[str] = set()
        self._digests = load_config(Path.cwd()).row_digests
        self._software = facts.software_facts(program)
        self._origins: dict[str, str] = {}
        self._files = 0

    # ---- relations --------------------------------------------------------------------------------------------------

    def open_inputs(self, folder: Path | None) -> None:
        """Read the relations of a folder, then the program's own; CSV is kept as Parquet, with the types it has."""
        from govtool.app.why.data_folder import relation_files

        if folder is not None:
            self._take(relation_files(folder))
        self._take({name: file for name, file in self.program.inputs.items() if name not in self._tables})

    def _take(self, files: Mapping[str, Path]) -> None:
        from govtool.app.why.data_folder import opened_files

        with opened_files(files, {}) as opened:
            for name, leaf in opened.relations.items():
                self._tables[name.lower()] = self._stored(leaf, name, files[name])
                self._given.add(name.lower())

    def _stored(self, leaf: Relation, name: str, origin: Path) -> Relation:
        """A relation whose file stays: one that was made of a CSV file is copied."""
        import tempfile

        from govtool.app.datasets.places import path_id

        (file,) = leaf.files
        path = facts.local_file(file)
        if path.is_relative_to(Path(tempfile.gettempdir())) and path.parent.name.startswith("govtool-"):
            kept = self.folder / _INPUTS / f"{name}.parquet"
            kept.parent.mkdir(exist_ok=True)
            shutil.copyfile(path, kept)
            path = kept
            self._origins[path_id(str(path))] = path_id(str(origin))
        return replace(leaf, dataset=str(path), files=(_file(0, path),))

    def open_state(self, file: Path) -> None:
        """Take the relations that the last run left."""
        from govtool.app.why.data_folder import parquet_relation

        known: Mapping[str, str] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        for name in self.program.state:
            if name in known and name not in self._given:
                path = Path(known[name])
                if not path.exists():
                    raise UsageError(f"the state of {name} is gone", code="usage.state", location=str(path))
                self._tables[name] = replace(parquet_relation(name, path), dataset=str(path.parent))

    @property
    def source(self) -> str:
        """The source of the run in the store: one of its own, so that no run takes the place of another."""
        return f"{SQL_SOURCE}{self.program.name}:{self.run}"

    def keep_state(self, file: Path, branch: str) -> None:
        """Note the relations that the next run starts from, if this one comes into the store."""
        kept = {name: self._tables[name] for name in self.program.state if name in self._tables}
        paths = {name: str(facts.local_file(leaf.files[-1])) for name, leaf in kept.items()}
        if paths:
            write_atomically(file, json.dumps({"source": self.source, "branch": branch, "tables": paths}))

    def _visible(self, query: str) -> dict[str, Relation]:
        """Relations that a query may name; the views among them are up to date."""
        named = [name for name in self._views if name in self._referenced(query)]
        for name in named:
            self._refresh(name)
        found = dict(self._tables)
        found.update({alias: found[name] for alias, name in self.program.names.items() if name in found})
        return found

    def _referenced(self, query: str) -> set[str]:
        from sqlglot import exp, parse_one
        from sqlglot.errors import SqlglotError

        try:
            tables = list(parse_one(query, dialect=self.program.dialect).find_all(exp.Table))
        except SqlglotError:
            return set()  # refused with its place when it is read
        names = {".".join(part.name for part in each.parts).lower() for each in tables}
        return names | {self.program.names[name] for name in names if name in self.program.names}

    def _refresh(self, name: str) -> None:
        """Evaluate a view where what it reads has changed since it was evaluated."""
        view = self._views[name]
        plan = self._plan(view.statement)
        seen = tuple(relations(plan.root))
        if tuple(each.files for each in seen) != tuple(each.files for each in view.seen):
            view.seen = seen
            self._write(view.statement, plan, ())

    # ---- statements -------------------------------------------------------------------------------------------------

    def execute(self, statement: ProgramStatement) -> None:
        """Run a statement.

        Raises:
            UsageError: It is mistaken, or not covered.
            EngineError: It fails, or no engine is exact on it.
        """
        name = statement.target
        exists = name in self._tables or name in self._views
        if statement.kind == "drop":
            self._drop(statement, exists)
        elif statement.kind in ("table", "view"):
            self._create(statement, exists)
        elif statement.kind == "query":
            plan = self._plan(statement)
            self._record(statement, plan, None, iso(now()))
        else:
            self._insert(statement)

    def _drop(self, statement: ProgramStatement, exists: bool) -> None:
        if not exists and not statement.is_optional:
            raise self._wrong(statement, f"there is no relation {statement.target}")
        self._tables.pop(statement.target, None)
        self._views.pop(statement.target, None)

    def _create(self, statement: ProgramStatement, exists: bool) -> None:
        name = statement.target
        if exists and statement.is_optional:
            return
        if exists and not statement.replaces:
            raise self._wrong(statement, f"the relation {name} is there already")
        if statement.new_rows:
            self._check_columns(statement)
        plan = self._plan(statement)
        self._views.pop(name, None)
        if statement.kind == "view":
            self._views[name] = _View(statement, tuple(relations(plan.root)))
        self._write(statement, plan, ())

    def _check_columns(self, statement: ProgramStatement) -> None:
        """Refuse rows that are added with other columns than their table has."""
        made = outputs(self._plan(replace(statement, query=statement.new_rows)).root)
        new, old = ([each.name for each in columns] for columns in (made, self._tables[statement.target].columns))
        if sorted(map(str.lower, new)) != sorted(map(str.lower, old)):
            raise self._wrong(statement, f"new rows have the columns ({', '.join(new)}), the table ({', '.join(old)})")

    def _insert(self, statement: ProgramStatement) -> None:
        name = self.program.names.get(statement.target, statement.target)
        if name in self._views or name not in self._tables:
            raise self._wrong(statement, f"there is no table {statement.target} to insert into")
        plan = self._into(statement, self._plan(statement), self._tables[name])
        self._write(statement, plan, self._tables[name].files if statement.kind == "append" else ())

    def _into(self, statement: ProgramStatement, plan: Plan, table: Relation) -> Plan:
        """A query whose columns are those of a table, in its order."""
        made, wanted = outputs(plan.root), {each.name.lower(): each for each in table.columns}
        names = [name.lower() for name in statement.columns] or list(wanted)
        if sorted(names) != sorted(wanted) or len(made) != len(names):
            raise self._wrong(statement, f"{len(made)} columns are inserted into ({', '.join(wanted)})")
        given = dict(zip(names, made, strict=True))
        ids = spare_ids(plan.root)
        values = (ids.named(c.name, self._assigned(statement, given[name], c)) for name, c in wanted.items())
        return replace(plan, root=Project(plan.root, tuple(values)))

    def _assigned(self, statement: ProgramStatement, given: Attribute, column: Attribute) -> Expression:
        """What is inserted, in the type of its column: Spark's store assignment, for numbers and NULL."""
        from govtool.records.plan.sql_types import is_numeric

        if given.type == column.type:
            return given
        if given.type == t.VOID:
            return Literal(None, column.type)
        if is_numeric(given.type) and is_numeric(column.type):
            return Cast(given, column.type, "ansi")
        there, here = t.to_json(column.type), t.to_json(given.type)
        raise self._wrong(statement, f"{column.name} is of type {there}, what is inserted of {here}: CAST it")

    def _plan(self, statement: ProgramStatement) -> Plan:
        from govtool.app.why.query import session
        from govtool.records.plan.from_sql import from_sql

        try:
            root = from_sql(statement.query, self._visible(statement.query), self.program.dialect)
        except UsageError as error:
            error.location = _within(statement.location, error.location)
            if error.code == "usage.sql-unsupported" and not self.program.digest and not error.hint:
                name = statement.target
                error.hint = f"{name}.csv or {name}.parquet in --inputs: then the model is an input, and is not run"
            raise
        made = outputs(root)
        if statement.columns and statement.kind in ("table", "view"):
            if len(statement.columns) != len(made):
                raise self._wrong(statement, f"{len(statement.columns)} names for {len(made)} columns")
            ids = spare_ids(root)
            pairs = zip(statement.columns, made, strict=True)
            root = Project(root, tuple(ids.named(name, column) for name, column in pairs))
        twice = [each.name for each in outputs(root)]
        if statement.kind != "query" and len({name.lower() for name in twice}) < len(twice):
            raise self._wrong(statement, "two columns have one name")
        return Plan(root, session())

    def _write(self, statement: ProgramStatement, plan: Plan, before: tuple[File, ...]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        started = iso(now())
        columns = outputs(plan.root)
        table = self._evaluated(statement, plan)
        name = self.program.names.get(statement.target, statement.target)
        if not _NAME.fullmatch(name):
            raise self._wrong(statement, f"{name!r} cannot be the name of a folder: letters, digits, _ . $ -")
        if name.lower() == _INPUTS:
            raise self._wrong(statement, f"{name!r} cannot be made: the copies of the inputs lie in this folder")
        place = self.folder / name
        place.mkdir(exist_ok=True)
        path = place / f"part-{self._files:05}.parquet"
        self._files += 1
        cells = [cell.cast(as_written(cell.type, each.type)) for cell, each in zip(table.columns, columns, strict=True)]
        pq.write_table(pa.table(cells, names=[each.name for each in columns]), path)
        own = tuple(Attribute(number, each.name, each.type) for number, each in enumerate(columns))
        schema = t.Struct(tuple(t.Field(each.name, each.type) for each in columns))
        made = Relation(0, str(place), "parquet", (_file(0, path),), own, schema)
        self._record(statement, plan, made, started, before)
        self._tables[name] = replace(made, files=(*before, _file(len(before), path)))

    def _evaluated(self, statement: ProgramStatement, plan: Plan) -> Any:
        from govtool.app.why.query import evaluated

        try:
            return evaluated(lambda executor: executor.arrow(_distinct(plan.root)))[0]
        except EngineError as error:
            raise EngineError(
                f"{statement.target} could not be made: {error.message}", code="engine.statement",
                location=statement.location, hint=error.hint,
            ) from error  # fmt: skip

    def _record(
        self,
        statement: ProgramStatement,
        plan: Plan,
        made: Relation | None,
        started: str,
        before: tuple[File, ...] = (),
    ) -> None:
        number = f"{self.run}/{len(self.runs)}"
        mode = _MODES.get(statement.kind, "overwrite")
        written = () if made is None else (facts.output_facts(made, mode, before, self._digests),)
        root: Node = plan.root
        if made is not None:
            root = Write(_distinct(root), made.dataset, "parquet", mode, tuple(each.name for each in made.columns))
        self.runs.append(
            Run(
                id=number,
                job=f"{self.program.name}:{statement.target or 'query'}",
                status="complete",
                how="plan",
                source=f"{SQL_SOURCE}{self.program.name}:{self.run}",
                application=self.run,
                started=started,
                ended=iso(now()),
                software=self._software,
                config=facts.settings_facts(self.program, plan.session),
                host=facts.machine(),
                plan=facts.statement_text(statement.query, self.program.dialect),
                inputs=facts.input_facts(relations(plan.root), self._origins),
                outputs=written,
            )
        )
        output = written[0].dataset if written else None
        self.writes.append(RecordedWrite(number, replace(plan, root=root), output, made))

    def _wrong(self, statement: ProgramStatement, message: str) -> UsageError:
        return UsageError(message, code="usage.sql-meaning", location=statement.location)


def _distinct(root: Node) -> Node:
    """The rows of a plan, each column under an id of its own."""
    ids = spare_ids(root)
    return Project(root, tuple(ids.named(each.name, each) for each in outputs(root)))


def _file(number: int, path: Path) -> File:
    found = path.stat()
    return File(number, path.as_uri(), found.st_size, found.st_mtime_ns // 1_000_000)


def settle_state(store: Store, root: Path) -> None:
    """Take over the state of a run that was killed behind its commit; before a program is read that asks for it.

    Raises:
        UsageError: It cannot be read (``usage.state``), or another run goes on (``usage.state-locked``).
        StoreError: The store cannot be read.
    """
    file = root / NEXT_TABLES
    if not file.exists():
        return
    with StateFolder(root, "").locked():
        if not file.exists():
            return
        body = _next_state(file)
        if _is_committed(store, body["branch"], body["source"]):
            _take_over(file)
        else:
            file.unlink()


def _take_over(file: Path) -> None:
    """Have the next run start from what a run left, if it left any."""
    if file.exists():
        write_atomically(file.with_name(TABLES), json.dumps(_next_state(file)["tables"]))
        file.unlink()


def _next_state(file: Path) -> dict[str, Any]:
    """What a run left: its ``source`` in the store, the ``branch``, and its ``tables``.

    Raises:
        UsageError: It cannot be read (``usage.state``).
    """
    try:
        body = json.loads(file.read_text(encoding="utf-8"))
        return {"branch": str(body["branch"]), "source": str(body["source"]), "tables": dict(body["tables"])}
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            "it does not say what the last run left",
            code="usage.state",
            location=str(file),
            hint="remove it to go on from the run before",
        ) from error


def _is_committed(store: Store, branch: str, source: str) -> bool:
    """Whether a branch has a source.

    Raises:
        StoreError: The store cannot be read.
    """
    head = store.head(branch)
    return head is not None and bool(store.fragments_of(head, source))


def _commit(store: Store, program: SqlProgram, warehouse: _Warehouse, branch: str) -> CommitResult:
    from govtool.app.project.user import user_name
    from govtool.app.records.tables import RecordTables
    from govtool.model.run import RUNS, encode_runs
    from govtool.store import Changes, Fragment

    source = warehouse.source
    runs = Fragment(source, RUNS, encode_runs(warehouse.runs), len(warehouse.runs))
    return store.commit(
        Changes((source,), (runs, *RecordTables.of(warehouse.writes).fragments(source))),
        message=f"workflow {program.name}: {warehouse.run}",
        author=user_name(),
        batch=f"{source}:{len(warehouse.runs)}",
        summary={"command": "workflow run", "workflow": program.name, "run": warehouse.run},
        branch=branch,
    )


def _within(statement: str, place: str | None) -> str:
    """The place of a mistake in a query, which has line and column, in the file of its statement.

    Statements of scripts have a line and a column themselves; those of dbt are compiled, and lie elsewhere in the file.
    """
    file = re.sub(r":\d+:\d+$", "", statement)
    if not place:
        return statement
    return f"{file}:{place}" if file != statement else f"{file}, compiled: {place}"
