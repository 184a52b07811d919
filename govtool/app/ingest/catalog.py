"""Reads the catalog of a database into the graph: tables, views as lineage, comments and grants as facts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

from govtool.answers.coverage import Coverage
from govtool.answers.ingest import IngestResult
from govtool.app.ingest.payload import CommitKeywords, IngestKey, IngestPayload, fact_fragments, ingest_once
from govtool.app.ingest.reader_digest import BatchDigest
from govtool.app.ingest.sql_options import Progress, SourceText, SqlRequest, check_dialect, root_of, scripts
from govtool.app.project.sources import SourceOrigin
from govtool.app.project.sources import place_of as path_of
from govtool.capture.catalog.address import parse_address
from govtool.errors import UsageError
from govtool.model import Derivation, Diagnostic, OutputColumn, Statement
from govtool.model.fact import Fact
from govtool.names import dataset_id
from govtool.redaction import clean_location

if TYPE_CHECKING:
    from govtool.capture.catalog.model import Catalog, CatalogRelation
    from govtool.capture.sql.extract import Extraction, Options
    from govtool.capture.sql.files import Script
    from govtool.capture.sql.resolve.logged import LoggedScript
    from govtool.model.shortfall import Shortfall
    from govtool.store import Reader, Store

HOW = "catalog"
"""The kind of evidence of a catalog."""

_UNDEFINED = "the catalog does not give its definition"


@dataclass(frozen=True, slots=True)
class CatalogRequest:
    """A catalog, and how to read it."""

    url: str
    only: tuple[str, ...] = ()
    """Patterns of schemas; none: all."""
    sql: tuple[str, ...] = ()
    """Files and folders of SQL that is read with it, with the catalog as its schema."""
    explain: bool = False
    """True to ask the database about statements that stay open."""
    dialect: str = ""
    """Empty: that of the database."""
    source: str | None = None
    """Default: the database's name."""
    namespace: str | None = None
    """Default: that of the server, as OpenLineage has it."""
    keep_literals: bool = False
    replace: bool = False
    """True: a source that was read elsewhere may be replaced."""


def ingest_catalog(
    store: Store,
    request: CatalogRequest,
    *,
    progress: Progress | None = None,
    **commit: Unpack[CommitKeywords],
) -> IngestResult:
    """Read a catalog, and commit its tables, views and facts to the store.

    Raises:
        RefusedIngestError: less was understood than ``demand`` asks for; nothing was committed.
        UsageError: the address is none, or an unknown dialect.
        SourceError: the database cannot be reached or read.
        StoreError: the commit could not be written; the store is as it was.
    """
    from govtool.capture.catalog.read import read_catalog

    if request.explain:
        from govtool.app.ingest.postgres_explain import check_explainable

        check_explainable(request.url)
    if request.explain and not request.sql:
        raise UsageError(
            "--explain is about SQL files: the views of the catalog are resolved already",
            code="usage.arguments",
            hint="govtool ingest catalog URL --sql FOLDER --explain",
        )
    check_dialect(request.dialect)
    catalog = read_catalog(request.url, request.only)
    former = "" if request.source else catalog.database
    source = request.source or f"catalog:{catalog.database}"
    origin = SourceOrigin("catalog", address_place(request.url, store), former=former, replace=request.replace)
    settings = _options(catalog, request, source)
    root = root_of(request.sql)
    found = list(scripts(SqlRequest(request.sql), root, None)) if request.sql else []
    batch = _batch(catalog, found, settings, request)
    files = len(catalog.relations) + sum(not isinstance(item, Diagnostic) for item in found)

    def extract() -> IngestPayload:
        extraction, own = _extract(catalog, found, settings, request, progress)
        unread, shortfalls = _undefined_views(catalog, settings)
        by_place = {place_of(item.name): item for item in catalog.relations}
        derivations = [_as_known(by_place.get(d.statement.file), settings, d) for d in own.derivations]
        derivations += [*extraction.derivations, *_declared(catalog, settings)]
        return IngestPayload(
            source,
            settings.dialect,
            files,
            Coverage.of(own) + Coverage.of(extraction) + unread,
            derivations,
            (*catalog.diagnostics, *own.diagnostics, *extraction.diagnostics),
            (*own.shortfalls, *extraction.shortfalls, *shortfalls),
            {"relations": len(catalog.relations)},
            more=fact_fragments(source, _facts(catalog, settings)),
        )

    key = IngestKey("ingest catalog", source, batch, files, SourceText(root), origin)
    return ingest_once(store, key, extract, **commit)


def _options(catalog: Catalog, request: CatalogRequest, source: str) -> Options:
    from govtool.capture.sql.extract import Options
    from govtool.capture.sql.schemas.supplied import Schema

    return Options(
        dialect=check_dialect(request.dialect or catalog.dialect),
        default_catalog=catalog.default_catalog,
        default_schema=catalog.default_schema,
        schema=Schema(catalog.tables),
        source=source,
        namespace=request.namespace or catalog.namespace,
        keep_literals=request.keep_literals,
    )


def _batch(catalog: Catalog, found: Sequence[Script | Diagnostic], settings: Options, request: CatalogRequest) -> str:
    """A digest of the input and its settings, without the address: a password is no part of the batch."""
    how = (settings.source, settings.dialect, settings.namespace, settings.keep_literals)
    batch = BatchDigest("catalog", *how, request.explain)
    for item in (catalog, *found):
        batch.add_data(item)
    return str(batch)


def _extract(
    catalog: Catalog,
    found: Sequence[Script | Diagnostic],
    settings: Options,
    request: CatalogRequest,
    progress: Progress | None,
) -> tuple[Extraction, Extraction]:
    """Extract lineage from the SQL files and from the definitions of the catalog."""
    from govtool.capture.sql.extract import extract_in_turn

    own, extraction = extract_in_turn([list(_definitions(catalog)), found], settings, progress)
    if request.explain:
        from govtool.app.ingest.postgres_explain import explained

        extraction = explained(request.url, found, settings, extraction)
    return extraction, own


def _definitions(catalog: Catalog) -> Iterator[LoggedScript]:
    """A script for each function and view, with the place where its names are looked up."""
    from govtool.capture.sql.resolve.logged import LoggedScript, LoggedStatement

    functions = [(item.name, item.definition) for item in catalog.functions]
    views = [(item.name, item.definition) for item in catalog.relations if item.definition is not None]
    for name, definition in (*functions, *views):
        statement = LoggedStatement(
            definition.statement,
            place_of(name),
            1,
            spans=True,
            catalog=definition.catalog,
            schema=definition.schema,
            search_path=definition.search_path,
        )
        yield LoggedScript(name, (statement,), catalog.dialect)


def place_of(name: str) -> str:
    """Return the name that stands for the file of a relation's definition: ``catalog:shop.public.orders``."""
    return f"catalog:{name}"


def _as_known(relation: CatalogRelation | None, settings: Options, derivation: Derivation) -> Derivation:
    """A view's derivation with the types of its columns and the kind that the catalog knows."""
    evidence = derivation.statement._replace(session=None)
    if relation is None or derivation.target != dataset_id(relation.name, settings.namespace):
        return derivation._replace(statement=evidence)
    types = {column.name: column.type for column in relation.columns}
    columns = tuple(OutputColumn(c.path, types.get(c.path) or c.type) for c in derivation.columns)
    return derivation._replace(target_kind=relation.kind, columns=columns, statement=evidence)


def _declared(catalog: Catalog, settings: Options) -> Iterator[Derivation]:
    """Tables, and views without a definition, as opaque as that makes them."""
    for relation in catalog.relations:
        if relation.definition is not None:
            continue
        hidden = relation.kind != "table"
        yield Derivation(
            dataset_id(relation.name, settings.namespace),
            relation.kind,
            "declare",
            Statement(
                fingerprint=hashlib.blake2b(relation.name.encode(), digest_size=16).hexdigest(),
                kind="create_view" if hidden else "create_table",
                dialect=settings.dialect,
                file=place_of(relation.name),
                source=settings.source,
                how=HOW,
            ),
            tuple(OutputColumn(column.name, column.type) for column in relation.columns),
            status="opaque" if hidden else "understood",
            diagnostics=(_undefined(relation),) if hidden else (),
            namespace=settings.namespace,
        )


def _undefined(relation: CatalogRelation) -> Diagnostic:
    return Diagnostic("opaque", "warning", _UNDEFINED, place_of(relation.name), 1, target=relation.name)


def _undefined_views(catalog: Catalog, settings: Options) -> tuple[Coverage, tuple[Shortfall, ...]]:
    """The coverage of views whose definition the catalog does not give, and a shortfall for each."""
    from govtool.model.shortfall import Shortfall

    views = [relation for relation in catalog.relations if relation.kind != "table" and relation.definition is None]
    count = len(views)
    shortfalls = tuple(Shortfall("opaque", _undefined(view), 1, "", settings.dialect) for view in views)
    return Coverage(statements=count, opaque=count, runs_opaque=count), shortfalls


def _facts(catalog: Catalog, settings: Options) -> Iterator[Fact]:
    for relation in catalog.relations:
        dataset, place = dataset_id(relation.name, settings.namespace), place_of(relation.name)
        for each in relation.remarks:
            yield Fact(dataset, each.column, each.name, each.value, HOW, place, settings.source)


def address_place(url: str, store: Reader) -> str:
    """The address without secrets; of a file, from the project's root, wherever it is read from."""
    address = parse_address(url)
    if address.kind in ("duckdb", "sqlite"):
        return f"{address.kind}:///{path_of([address.path], store)}"
    return clean_location(url)
