"""Whole rows and columns by position: what ``f(*)``, ``to_json(t)`` and Snowflake's ``$1`` stand for."""

from __future__ import annotations

from sqlglot import exp

from govtool.capture.sql.walk.dependencies import OPAQUE, REF_SHIFT, STAR, Deps, bounded
from govtool.capture.sql.walk.relation import QueryOutput, Source
from govtool.capture.sql.walk.scope import Environment, Scope
from govtool.capture.sql.walk.state import StatementWalkState


class RowWalk(StatementWalkState):
    """Resolves what names no column."""

    def positional(self, node: exp.Expr, qualifier: tuple[str, ...] | None, scope: Scope) -> Deps:
        """Return the dependencies of Snowflake's ``$n``, a column by its position; nothing for another parameter."""
        number = node.name
        if not number.isdigit() or self.dialect != "snowflake":
            return ()
        shown = [source for source in scope.sources if not source.hidden]
        if qualifier:
            found = scope.find(qualifier)
            shown = [found] if found is not None else []
        if len(shown) == 1 and shown[0].table is not None and _is_file(shown[0].table.id):
            return shown[0].table.deps(f"_c{number}", self.interner)
        position = int(number) - 1
        for source in shown:
            output = self.source_star(source)
            if output.open:  # what is counted is not known from here on
                return bounded(
                    (dep >> REF_SHIFT << REF_SHIFT) | OPAQUE for s in shown for dep in self.whole_row(s, node)
                )
            if 0 <= position < len(output.deps):
                return tuple(dep & ~STAR for dep in output.deps[position])
            position -= len(output.deps)
        if shown:
            self.diagnose("unresolved", f"no source in scope has a column ${number}", node)
        return ()

    def whole_row(self, source: Source, node: exp.Expr) -> Deps:
        """Return the dependencies on all columns of a FROM item: ``to_json(t)``, ``count(t.*)``."""
        return self.passing(self.source_star(source), node)

    def passing(self, output: QueryOutput, node: exp.Expr) -> Deps:
        """Return the dependencies on all columns of an output, those behind a ``*`` that is not expanded included."""
        interner = self.interner
        found = [dep & ~STAR for deps in output.deps for dep in deps]
        unknown = False
        for star in output.open:
            table = star.table
            unknown = unknown or not table.virtual
            shown = [name for name in table.used.listed() if name not in star.except_]
            found.extend(dep | star.arm for name in shown for dep in table.deps(name, interner))
            found.extend(dep | star.arm for dep in table.hidden(interner))
        if unknown:
            self.diagnose("star-unresolved", "the columns behind a * are not all known", node)
        return bounded(found)

    # ---- implemented by ProjectionWalk -----------------------------------------------------------

    def source_star(self, source: Source) -> QueryOutput:
        """Return the output of ``source.*``. Implemented by ``ProjectionWalk``."""
        raise NotImplementedError

    def starred_columns(
        self, star: exp.Expr, scope: Scope, env: Environment | None, base: QueryOutput | None = None
    ) -> QueryOutput:
        """Return the output of a ``*``. Implemented by ``ProjectionWalk``."""
        raise NotImplementedError


def _is_file(dataset: str) -> bool:
    """Return whether a dataset is a stage or file, whose columns have no names."""
    return dataset.startswith('"@') or (dataset.startswith('"') and "://" in dataset)
