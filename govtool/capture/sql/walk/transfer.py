"""COPY, LOAD, UNLOAD and EXPORT: between tables and files or stages."""

from __future__ import annotations

from sqlglot import exp

from govtool.capture.sql import nodes
from govtool.capture.sql.walk.dependencies import OPAQUE, bounded
from govtool.capture.sql.walk.insert import InsertWalk
from govtool.capture.sql.walk.relation import QueryOutput, file_name
from govtool.capture.sql.walk.scope import Scope
from govtool.capture.sql.walk.writes import BY_NAME, BY_POSITION, Write
from govtool.model import ROWS


class TransferWalk(InsertWalk):
    """Walks statements that move data in or out."""

    def _copy(self, tree: exp.Copy) -> None:
        """COPY in either direction, between a table or query and files or stages."""
        this = tree.this
        files = tree.args.get("files") or []
        if tree.args.get("kind"):  # into a table
            columns, _ = self._column_list(this)
            output = QueryOutput()
            query = next((f for f in files if isinstance(f, nodes.Subquery)), None)
            table = this.this if isinstance(this, nodes.Schema) else this
            if query is not None:
                output = self._by_target(
                    self.query(query, None, None), self._target(table), columns, {}, [], False, tree, query
                )
            else:
                output = self._from_files(table, columns, [file_name(name) for f in files if (name := _location(f))])
            write = self._write(table, output, "copy", "append", self._kind_of(table), query, defines=False)
            write.fills = BY_NAME if columns else BY_POSITION
            write.dataset_reads = tuple(file_name(name) for f in files if (name := _location(f)))
            return
        inner = this.this if isinstance(this, nodes.Schema) else this
        if isinstance(inner, nodes.Query):
            output = self.query(inner, None, None)
        else:
            scope = Scope(None)
            self.add_source(inner, scope, None)
            output = self.star(scope)
            columns, _ = self._column_list(this)
            if columns:
                kept = QueryOutput()
                for name in columns:
                    kept.add(
                        name,
                        scope.sources[0].get(name, self.interner) or scope.sources[0].assume(name, self.interner) or (),
                    )
                output = kept
        for target in (name for f in files if (name := _location(f))):
            self.writes.append(self._taken(Write(file_name(target), "copy", "replace", "file", output)))

    def _from_files(self, table: exp.Expr, columns: list[str], files: list[str]) -> QueryOutput:
        """The columns of a table that is filled from files: by position, where it is known what the files hold."""
        known = [self.lookup.table(name) for name in files]
        target = self.lookup.table(self._target(table))
        names = columns or (list(target.columns) if target.complete else [])
        output = QueryOutput()
        if not known or not all([file.complete and file.columns for file in known]):  # noqa: C419
            for name in names if columns else ():
                output.add(name, ())
            for file in known:  # what it holds may have come from anywhere, and goes anywhere
                self.rows[self.interner.ref(file.id, ROWS) | OPAQUE] = None
            return output
        made = [[file.deps(column, self.interner) for column in file.columns] for file in known]
        for position, name in enumerate(names or list(known[0].columns)):
            found = [dep for deps in made if position < len(deps) for dep in deps[position]]
            output.add(name, bounded(found))
        return output

    def _load(self, tree: exp.LoadData) -> None:
        table = tree.this
        path = tree.args.get("inpath")
        files = tree.args.get("files")
        mode = "replace" if tree.args.get("overwrite") else "append"
        write = self._write(table, QueryOutput(), "load", mode, self._kind_of(table), None, defines=False)
        found = [path] if isinstance(path, nodes.Expr) else []
        for option in files.expressions if isinstance(files, nodes.Properties) else ():
            if option.name.lower() == "uris" and isinstance(option.args.get("value"), nodes.Array):
                found.extend(option.args["value"].expressions)
        write.dataset_reads = tuple(file_name(name) for item in found if (name := _location(item)))

    def _export(self, tree: exp.Export) -> None:
        output = self.query(tree.this, None, None)
        options = tree.args.get("options")
        uri = (
            next((p.args["value"].name for p in options.expressions if p.name.lower() == "uri"), "")
            if options is not None
            else ""
        )
        if not uri:
            self.diagnose("opaque", "EXPORT DATA without a constant uri", tree)
            return
        self.writes.append(self._taken(Write(file_name(uri), "copy", "replace", "file", output)))


def written_files(tree: exp.Expr) -> list[str]:
    """The names of the files that a COPY, an EXPORT or an INSERT into a directory writes."""
    if isinstance(tree, nodes.Insert):
        return [file_name(tree.this.this.name)]
    if isinstance(tree, nodes.Export):
        options = tree.args.get("options")
        items = options.expressions if options is not None else ()
        return [file_name(item.args["value"].name) for item in items if item.name.lower() == "uri"]
    return [file_name(name) for file in tree.args.get("files") or () if (name := _location(file))]


def _location(node: exp.Expr) -> str:
    if isinstance(node, nodes.Literal):
        return str(node.name)
    if isinstance(node, nodes.Table):
        this = node.this
        return this.name if isinstance(this, (nodes.Var, nodes.Identifier)) else ""
    if isinstance(node, nodes.Var):
        return node.name
    return ""
