"""Column lineage of SQL, without a store."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import IO, TYPE_CHECKING

from govtool.api.arguments import checked

if TYPE_CHECKING:
    from govtool.answers.lineage import LineageAnswer
    from govtool.api.arguments import Paths
    from govtool.app.ingest.sql_options import Progress
    from govtool.app.project.requests import SchemaArgument


@checked
def lineage(
    sql: str | None = None,
    *,
    paths: Paths | None = None,
    dialect: str | None = None,
    schema: SchemaArgument | None = None,
    catalog: str | None = None,
    explain: bool = False,
    default_catalog: str | None = None,
    default_schema: str | None = None,
    relation_from: str | None = None,
    var: Mapping[str, object] | Iterable[str] | None = None,
    semantics: str = "precise",
    follow_links: bool = False,
    stdin: IO[bytes] | None = None,
    progress: Progress | None = None,
) -> LineageAnswer:
    """Return the column lineage of SQL. No store is read or written.

    >>> answer = lineage("create view v as select lower(name) as n from users")
    >>> list(answer.rows())
    [('v.n', 'users.name', ('transformation',), '<stdin>')]

    Options that are not given are those of ``[sql]`` in govtool.toml. Statements may come in any order; they are
    resolved against each other.

    Args:
        sql: The text of one or more statements. Give this or ``paths``.
        paths: Files and folders instead; ``-`` reads ``stdin``.
        dialect: The SQL dialect: ``postgres``, ``snowflake`` …; by default generic SQL.
        schema: Files of DDL or JSON, or columns by table: ``{"users": ["id", "name"]}``.
        catalog: The address of a database that takes the place of a schema: ``postgresql://reader@dw/shop``.
        explain: Ask that database, a PostgreSQL, about what the text leaves open. Nothing is run.
        default_catalog: The catalog of names without one.
        default_schema: The schema of names without one.
        relation_from: The relation that a file of one SELECT makes: ``{schema}/{table}.sql``.
        var: Values for templates, by name.
        semantics: ``precise``, or ``lineagex`` to count the columns of UNION ALL arms as references.
        follow_links: Follow symbolic links in folders also where they lead out of these.
        stdin: A binary stream, for the path ``-``.
        progress: Called as ``progress(done, total)``.

    Raises:
        UsageError: nothing to read, an unknown dialect or semantics, a schema that cannot be read.
        SourceError: the catalog cannot be read.
    """
    from govtool.app.lineage.relations import lineage_of
    from govtool.app.project.requests import check_semantics, sql_request, texts
    from govtool.errors import UsageError

    check_semantics(semantics)
    if sql is not None and paths is not None:
        raise UsageError("both SQL and paths are given", code="usage.arguments", hint="give one of them")
    if sql is not None:
        paths, stdin = "-", io.BytesIO(sql.encode("utf-8", "surrogatepass"))
    if not texts(paths):
        raise UsageError("nothing to read", code="usage.arguments", hint="give files or folders, or - for stdin")
    request = sql_request(
        texts(paths),
        dialect=dialect,
        schema=schema,
        catalog=catalog,
        explain=explain,
        default_catalog=default_catalog,
        default_schema=default_schema,
        relation_from=relation_from,
        var=var,
        follow_links=follow_links,
    )
    return lineage_of(request, semantics=semantics, stdin=stdin, progress=progress)
