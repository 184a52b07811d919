"""COPY, LOAD, UNLOAD and EXPORT: between tables and files or stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import OPAQUE, bounded
from govtool.capture.sql.walk.expressions.rows import star_of
from govtool.capture.sql.walk.queries.sources import add_source
from govtool.capture.sql.walk.query import output_of
from govtool.capture.sql.walk.relation import QueryOutput, file_name
from govtool.capture.sql.walk.scope import Scope
from govtool.capture.sql.walk.writes import BY_NAME, BY_POSITION, Write
from govtool.capture.sql.walk.writing.insert import by_target
from govtool.capture.sql.walk.writing.recording import Statement, column_list, kind_of, target_name, write_to
from govtool.model import ROWS


def _copy(walk: Walk, tree: exp.Copy) -> None:
    """COPY in either direction, between a table or query and files or stages."""
    files = tree.args.get("files") or []
    if _runs_program(tree):
        walk.diagnose("opaque", "COPY runs a program: what it reads and writes is not known", tree)
    if not tree.args.get("kind"):
        _copy_into_files(walk, tree.this, files)
    elif files and _is_place(tree.this):  # Snowflake's COPY INTO location unloads
        _copy_into_files(walk, files[0], [tree.this])
    else:
        _copy_into_table(walk, tree)


def _runs_program(tree: exp.Copy) -> bool:
    """Return whether PostgreSQL's COPY takes its rows from a program, or hands them to one."""
    files = tree.args.get("files") or []
    return any([type(file) is nodes.Identifier and file.name.lower() == "program" for file in files])  # noqa: C419


def _is_place(node: exp.Expr) -> bool:
    """Return whether what is copied into is a stage or an address, not a table."""
    if not isinstance(node, nodes.Table):
        return False
    return isinstance(node.this, nodes.Literal) or (isinstance(node.this, nodes.Var) and node.name.startswith("@"))


def _copy_into_table(walk: Walk, tree: exp.Copy) -> None:
    """The columns of a query over files, or of the files."""
    this = tree.this
    files = tree.args.get("files") or []
    names = [file_name(name) for file in files if (name := _location(file))]
    columns, _ = column_list(walk, this)
    table = this.this if isinstance(this, nodes.Schema) else this
    query = next((file for file in files if isinstance(file, nodes.Subquery)), None)
    if query is not None:
        output = output_of(walk, query, None, None)
        output = by_target(walk, output, target_name(walk, table), columns, {}, [], False, tree, query)
    else:
        output = _from_files(walk, table, columns, names)
    write = write_to(walk, table, output, "copy", "append", kind_of(walk, table), query, defines=False)
    write.fills = BY_NAME if columns else BY_POSITION
    write.dataset_reads = tuple(names)


def _copy_into_files(walk: Walk, this: exp.Expr, files: Sequence[exp.Expr]) -> None:
    """Each file or stage has all the columns of a table or a query."""
    inner = this.this if isinstance(this, nodes.Schema) else this
    if isinstance(inner, (nodes.Query, nodes.Subquery)):
        output = output_of(walk, inner, None, None)
    else:
        scope = Scope(None)
        add_source(walk, inner, scope, None)
        output = star_of(walk, scope)
        columns, _ = column_list(walk, this)
        if columns:
            source = scope.sources[0]
            output = QueryOutput()
            for name in columns:
                output.add(name, source.get(name, walk.interner) or source.assume(name, walk.interner) or ())
    targets = [file_name(name) for file in files if (name := _location(file))]
    for target in targets:
        walk.writes.append(walk.taken(Write(target, "copy", "replace", "file", output)))
    if not targets:  # TO STDOUT: the client gets the rows, as those of a SELECT
        walk.writes.append(walk.taken(Write("", "select", "replace", "query", output)))


def _from_files(walk: Walk, table: exp.Expr, columns: list[str], files: list[str]) -> QueryOutput:
    """The columns of a table that is filled from files: by position, where it is known what the files hold."""
    known = [walk.lookup.table(name) for name in files]
    target = walk.lookup.table(target_name(walk, table))
    names = columns or (list(target.columns) if target.complete else [])
    output = QueryOutput()
    if not known or not all([file.complete and file.columns for file in known]):  # noqa: C419
        for name in names if columns else ():
            output.add(name, ())
        for file in known:  # what it holds may have come from anywhere, and goes anywhere
            walk.rows[walk.interner.ref(file.id, ROWS) | OPAQUE] = None
        return output
    made = [[file.deps(column, walk.interner) for column in file.columns] for file in known]
    for position, name in enumerate(names or list(known[0].columns)):
        found = [dep for deps in made if position < len(deps) for dep in deps[position]]
        output.add(name, bounded(found))
    return output


def _load(walk: Walk, tree: exp.LoadData) -> None:
    table = tree.this
    path = tree.args.get("inpath")
    files = tree.args.get("files")
    mode = "replace" if tree.args.get("overwrite") else "append"
    found = [path] if isinstance(path, nodes.Expr) else []
    for option in files.expressions if isinstance(files, nodes.Properties) else ():
        if option.name.lower() == "uris" and isinstance(option.args.get("value"), nodes.Array):
            found.extend(option.args["value"].expressions)
    names = [file_name(name) for item in found if (name := _location(item))]
    output = _from_files(walk, table, [], names)
    write = write_to(walk, table, output, "load", mode, kind_of(walk, table), None, defines=False)
    write.dataset_reads = tuple(names)


def _export(walk: Walk, tree: exp.Export) -> None:
    output = output_of(walk, tree.this, None, None)
    options = tree.args.get("options")
    uri = (
        next((p.args["value"].name for p in options.expressions if p.name.lower() == "uri"), "")
        if options is not None
        else ""
    )
    if not uri:
        walk.diagnose("opaque", "EXPORT DATA without a constant uri", tree)
        return
    walk.writes.append(walk.taken(Write(file_name(uri), "copy", "replace", "file", output)))


def written_files(tree: exp.Expr) -> list[str]:
    """The names of the files that a COPY, an EXPORT or an INSERT into a directory writes."""
    if isinstance(tree, nodes.Insert):
        return [file_name(tree.this.this.name)]
    if isinstance(tree, nodes.Export):
        options = tree.args.get("options")
        items = options.expressions if options is not None else ()
        return [file_name(item.args["value"].name) for item in items if item.name.lower() == "uri"]
    unloads = bool(tree.args.get("kind")) and _is_place(tree.this)
    files = [tree.this] if unloads else tree.args.get("files") or ()
    return [file_name(name) for file in files if (name := _location(file))]


def _location(node: exp.Expr) -> str:
    if isinstance(node, nodes.Literal):
        return str(node.name)
    if isinstance(node, nodes.Table):
        this = node.this
        return this.name if isinstance(this, (nodes.Var, nodes.Identifier, nodes.Literal)) else ""
    if isinstance(node, nodes.Var):
        return node.name
    return ""


STATEMENTS: Final[dict[type, Statement]] = {nodes.Copy: _copy, nodes.LoadData: _load, nodes.Export: _export}
