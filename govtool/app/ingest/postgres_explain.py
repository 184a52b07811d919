"""``--explain``: PostgreSQL is asked about statements that are not fully understood; its answers replace guesses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from govtool.errors import UsageError
from govtool.model import HIDDEN, ROWS, ColumnRef, Derivation, Diagnostic, Edge, EdgeKind, Statement
from govtool.names import dataset_id, join_name, split_name

if TYPE_CHECKING:
    from govtool.capture.catalog.explain import ExplainedStatement
    from govtool.capture.catalog.model import Catalog
    from govtool.capture.sql.extract import Extraction, Options
    from govtool.capture.sql.files import Script

HOW = "explain"
"""The kind of evidence of PostgreSQL's answers."""


def check_explainable(url: str) -> None:
    """Raise where an address names no PostgreSQL.

    Raises:
        UsageError: it is another database.
    """
    from govtool.capture.catalog.address import parse_address

    if parse_address(url).kind != "postgres":
        raise UsageError("only PostgreSQL explains statements", code="usage.explain", location="--explain")


def explained(
    url: str, scripts: Sequence[Script | Diagnostic], settings: Options, extraction: Extraction
) -> Extraction:
    """Ask PostgreSQL about every statement that was not fully understood.

    Args:
        url: Its address.
        scripts: What was read.
        settings: How it was read.
        extraction: What was understood.

    Returns:
        The extraction with the answers in it; where there is none, a remark says why.

    Raises:
        SourceError: the database cannot be reached, or the connection broke.
    """
    from govtool.capture.catalog.address import parse_address
    from govtool.capture.catalog.explain import ExplainRequest, explain
    from govtool.capture.catalog.postgres import connected, read_catalog

    open_texts = {(shortfall.diagnostic.file, shortfall.text) for shortfall in extraction.shortfalls}
    if not open_texts:
        return extraction
    statements = list(_statements(scripts, settings))
    open_statements = [s for s in statements if (s.file, s.text) in open_texts]
    address = parse_address(url)
    with connected(address, read_only=False) as connection:
        answers = explain(
            connection,
            [ExplainRequest(s.text, s.looks_in) for s in statements],
            [ExplainRequest(s.text, s.looks_in) for s in open_statements],
        )
        made = read_catalog(connection, address)
    state = _State(extraction, settings, made)
    for statement, answer in zip(open_statements, answers, strict=True):
        state.take(statement, answer)
    return state.result()


@dataclass(frozen=True, slots=True)
class _Written:
    """A statement of a script, and where its names are looked up."""

    file: str
    line: int
    text: str
    creates: bool
    catalog: str | None
    schema: str | None
    path: tuple[str, ...]
    relation: str | None

    @property
    def looks_in(self) -> tuple[str, ...]:
        """Schemas as PostgreSQL knows them: of ``catalog.schema`` the last part."""
        schemas = (*self.path, *([self.schema] if self.schema else ()))
        return tuple(split_name(schema)[-1] for schema in schemas)


def _statements(scripts: Sequence[Script | Diagnostic], settings: Options) -> Iterator[_Written]:
    """The statements of all scripts in order, templates rendered; none that stands in a routine's body."""
    from govtool.capture.sql.options import relation_of
    from govtool.capture.sql.scripts.script import parse_script
    from govtool.capture.sql.templates.macros import MacroLibrary
    from govtool.capture.sql.templates.template import render
    from govtool.names import fold_name

    read = [item for item in scripts if not isinstance(item, Diagnostic)]
    macros = MacroLibrary([item.text for item in read if "macro" in item.text], settings.projects)
    for script in read:
        rendered = render(script.text, settings.variables, script.file, macros=macros, dialect=settings.dialect)
        relation = relation_of(script.file, settings)
        for variant in rendered.variants:
            catalog = fold_name(settings.default_catalog, settings.dialect) if settings.default_catalog else None
            schema = fold_name(settings.default_schema, settings.dialect) if settings.default_schema else None
            path: tuple[str, ...] = ()
            found = parse_script(variant.text, settings.dialect, file=script.file, line_of=variant.line_of)
            for parsed in found:
                if parsed.session is not None:
                    change = parsed.session
                    catalog = change.catalog if change.catalog is not None else catalog
                    schema = change.schema if change.schema is not None else schema
                    path = change.search_path or (() if change.schema is not None else path)
                if parsed.routine is None:
                    creates = parsed.head.startswith("create")
                    yield _Written(script.file, parsed.line, parsed.text, creates, catalog, schema, path, relation)


class _State:
    """The extraction while answers are put into it."""

    def __init__(self, extraction: Extraction, settings: Options, made: Catalog) -> None:
        from govtool.capture.sql.schemas.supplied import Schema

        known = settings.schema.tables if settings.schema is not None else {}
        self.extraction = extraction
        # Relations that were created for the answers are known as PostgreSQL has them.
        self.settings = replace(settings, schema=Schema({**made.tables, **known}))
        self.derivations = list(extraction.derivations)
        self.notes = list(extraction.diagnostics)
        self.shortfalls = list(extraction.shortfalls)
        self.understood = extraction.understood
        self.counts = {"partial": extraction.partial, "opaque": extraction.opaque}

    def take(self, statement: _Written, answer: ExplainedStatement) -> None:
        """Put one answer in the place of what was said of its statement."""
        file, line = statement.file, statement.line
        if answer.refused:
            self.notes.append(Diagnostic("explain", "info", answer.refused, file, line))
            return
        found = self._read_again(statement, answer.text)
        if found is None:
            self._fall_back(statement, answer)
            return
        old = [d for d in self.derivations if d.statement.file == file and d.statement.line == line]
        evidence = old[0].statement if old else self._evidence(statement, found[0].statement)
        names = {d.target for d in found}
        at = self.derivations.index(old[0]) if old else len(self.derivations)
        gone = {id(d) for d in old if d.target in names or len(found) == 1}
        fresh = [
            d._replace(
                target=old[0].target if d.target.startswith("query:") and old else d.target,
                target_kind=old[0].target_kind if old else d.target_kind,
                statement=evidence._replace(kind=d.statement.kind if not old else evidence.kind, how=HOW),
            )
            for d in found
        ]
        self.derivations[at:at] = fresh
        self.derivations = [d for d in self.derivations if id(d) not in gone]
        self._settle(statement)

    def _read_again(self, statement: _Written, text: str) -> list[Derivation] | None:
        """Read the text that PostgreSQL wrote; None if it, too, is not fully understood."""
        from govtool.capture.sql.extract import extract_in_turn
        from govtool.capture.sql.resolve.logged import LoggedScript, LoggedStatement

        again = LoggedStatement(
            text,
            statement.file,
            statement.line,
            catalog=statement.catalog,
            schema=statement.schema,
            search_path=statement.path,
            relation=statement.relation,
        )
        script = LoggedScript(statement.file, (again,), self.settings.dialect)
        extraction = next(extract_in_turn([[script]], self.settings))
        if extraction.partial or extraction.opaque or not extraction.derivations:
            return None
        return list(extraction.derivations)

    def _fall_back(self, statement: _Written, answer: ExplainedStatement) -> None:
        """Where nothing at all was understood, return what the plan reads, as sources by unknown ways."""
        file, line = statement.file, statement.line
        place = [d for d in self.derivations if d.statement.file == file and d.statement.line == line]
        if place or not answer.target:
            return
        reason = "opaque: only the tables of its plan are known"
        edges: list[Edge] = []
        for table in sorted(answer.tables):
            ref = ColumnRef(dataset_id(self._full(table, statement), self.settings.namespace), ROWS)
            edges.append(Edge(ref, ROWS, EdgeKind.READ))
            edges.append(Edge(ref, ROWS, EdgeKind.OPAQUE, reason=reason))
            edges.append(Edge(ref, HIDDEN, EdgeKind.OPAQUE, reason=reason))
        view = statement.creates and answer.creates == "VIEW"
        kind = ("create_view" if view else "create_table_as") if statement.creates else "other"
        evidence = self._evidence(statement, Statement("", kind, self.settings.dialect, file, line))
        self.derivations.append(
            Derivation(
                dataset_id(self._full(answer.target, statement), self.settings.namespace),
                "view" if view else "table",
                "replace" if statement.creates else "append",
                evidence._replace(how=HOW),
                columns_complete=False,
                edges=tuple(edges),
                status="opaque",
                namespace=self.settings.namespace,
            )
        )

    def _full(self, name: str, statement: _Written) -> str:
        """A name of the database with as many parts as the text's names have."""
        parts = split_name(name)
        if len(parts) == 1 and (statement.schema or statement.path):
            parts = [*split_name(statement.schema or statement.path[0]), *parts]
        if len(parts) == 2 and statement.catalog:
            parts = [statement.catalog, *parts]
        return join_name(parts)

    def _evidence(self, statement: _Written, like: Statement) -> Statement:
        from govtool.capture.sql.folding.results import MAX_TEXT
        from govtool.capture.sql.syntax.fingerprint import fingerprint
        from govtool.capture.sql.syntax.redact import redact

        text, dialect = statement.text, self.settings.dialect
        return like._replace(
            fingerprint=fingerprint(text, dialect),
            file=statement.file,
            line=statement.line,
            source=self.settings.source,
            session=None,
            text=(text if self.settings.keep_literals else redact(text, dialect))[:MAX_TEXT],
        )

    def _settle(self, statement: _Written) -> None:
        """Count a statement as understood, and take back what was noted of it."""
        text = statement.text
        last = statement.line + text.count("\n")
        mine = [s for s in self.shortfalls if s.diagnostic.file == statement.file and s.text == text]
        if not mine:  # another variant of a template has settled it
            return
        self.shortfalls = [s for s in self.shortfalls if s is not mine[0]]
        self.counts[mine[0].status] -= 1
        self.understood += 1
        self.notes = [
            note
            for note in self.notes
            if note.file != statement.file or note.severity == "info" or not statement.line <= (note.line or 0) <= last
        ]

    def result(self) -> Extraction:
        """The extraction as it is now."""
        runs = dict(self.extraction.runs)
        runs |= {"understood": runs.get("understood", 0) + self.understood - self.extraction.understood, **self.counts}
        return replace(
            self.extraction,
            derivations=tuple(self.derivations),
            diagnostics=tuple(sorted(dict.fromkeys(self.notes), key=Diagnostic.sort_key)),
            understood=self.understood,
            partial=self.counts["partial"],
            opaque=self.counts["opaque"],
            runs=runs,
            shortfalls=tuple(self.shortfalls),
        )
