"""Sets the extractor's answer about views beside PostgreSQL's own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp

from bench.oracles.cluster import Cluster
from bench.oracles.views import Column, Deps, ViewLineage, lineage_of
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.capture.sql.schemas.supplied import schema_from_mapping
from govtool.model import ROWS, Derivation, EdgeKind
from govtool.model.kinds import ROW_SET, VALUE_FLOW

Tables = Mapping[str, Mapping[str, str]]
"""Columns with their types (of PostgreSQL) by table."""

SCHEMA = "views"


@dataclass(frozen=True)
class View:
    """A query to be made a view. ``columns`` names its columns, where they would not be unique otherwise."""

    name: str
    query: str
    columns: tuple[str, ...] = ()

    @property
    def sql(self) -> str:
        """The statement that makes it."""
        listed = f" ({', '.join(self.columns)})" if self.columns else ""
        return f"CREATE VIEW {self.name}{listed} AS\n{self.query}"


@dataclass
class Verdict:
    """What was compared for one view."""

    view: View
    differences: dict[str, str] = field(default_factory=dict)
    """By what differs: names, contributed, contributed kinds, referenced, referenced kinds, depends."""


ASPECTS = {
    "names": "output columns, by name and order",
    "contributed": "contributed columns of every output",
    "contributed kinds": "… each as value flow, conditional or window",
    "referenced": "referenced columns",
    "referenced kinds": "… each with its clause",
    "depends": "all columns of the view (`pg_depend`)",
    "named": "… those of unused outputs of subqueries included (`pg_depend`)",
}


@dataclass
class Outcome:
    """All views of a corpus."""

    verdicts: list[Verdict]
    refused: dict[str, str]
    """Queries that PostgreSQL does not take, with its reason."""

    def equal(self, aspect: str) -> int:
        """How many views agree in one aspect."""
        return sum(aspect not in verdict.differences for verdict in self.verdicts)

    def different(self) -> dict[str, dict[str, str]]:
        """The views that differ in anything."""
        return {verdict.view.name: verdict.differences for verdict in self.verdicts if verdict.differences}


def compare_views(cluster: Cluster, tables: Tables, views: Sequence[View], prelude: str = "") -> Outcome:
    """Create the views for real, extract them, and compare. ``prelude`` is SQL that runs before."""
    cluster.run(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; CREATE SCHEMA {SCHEMA};")
    path = f"SET search_path = {SCHEMA}, pg_catalog;"
    cluster.run(path + prelude)
    for name, columns in tables.items():
        cluster.run(f"{path} CREATE TABLE {name} ({', '.join(f'{c} {t}' for c, t in columns.items())});")
    made: list[View] = []
    refused: dict[str, str] = {}
    errors = cluster.attempt([path, *(view.sql for view in views)])[1:]
    again = []
    for view, error in zip(views, errors, strict=True):
        if error is not None and "specified more than once" in error:  # valid as a query, not as a view
            again.append(View(view.name, view.query, tuple(f"c{n}" for n in range(1, _width(cluster, path, view) + 1))))
        elif error is not None:
            refused[view.name] = error
        else:
            made.append(view)
    for view, error in zip(again, cluster.attempt([path, *(view.sql for view in again)])[1:], strict=True):
        if error is None:
            made.append(view)
        else:
            refused[view.name] = error
    lineage = lineage_of(cluster, SCHEMA)
    schema = schema_from_mapping(tables, "postgres")
    scripts = [Script(f"{view.name}.sql", view.sql) for view in made]
    extraction = extract(scripts, Options(dialect="postgres", schema=schema, evidence=False))
    derivations = {derivation.target: derivation for derivation in extraction.derivations}
    return Outcome([_verdict(view, lineage[view.name], derivations.get(view.name)) for view in made], refused)


def _width(cluster: Cluster, path: str, view: View) -> int:
    return len(cluster.run(f"{path}\n{view.query.rstrip().rstrip(';')}\n\\gdesc\n"))


def _verdict(view: View, truth: ViewLineage, derivation: Derivation | None) -> Verdict:
    if derivation is None:
        verdict = Verdict(view)
        verdict.differences.update(dict.fromkeys(ASPECTS, "nothing was extracted"))
        return verdict
    # What PostgreSQL calls ?column? has no name; ours is written by position.
    truth.names = [f"_c{n}" if name == "?column?" else name for n, name in enumerate(truth.names)]
    return judge(view, truth, derivation)


def judge(view: View, truth: ViewLineage, derivation: Derivation, *, references: bool = True) -> Verdict:
    """Compare one derivation with what is true of it.

    Args:
        view: The view.
        truth: What the database says.
        derivation: What the extractor says.
        references: Whether the truth has every column that the query names; Spark's plans drop those without use.
    """
    verdict = Verdict(view)
    differences = verdict.differences
    names = [plain(column.path) for column in derivation.columns]
    if names != truth.names:
        differences["names"] = f"{names} instead of {truth.names}"
    contributed: dict[str, set[tuple[Column, str]]] = {}
    referenced: set[tuple[Column, str]] = set()
    everything: set[Column] = set()
    for edge in derivation.edges:
        column = (plain(edge.source.dataset), plain(edge.source.path))
        if edge.kind is EdgeKind.READ:
            continue
        if edge.kind is EdgeKind.UNION_ALL:  # removes no row
            continue
        everything.add(column)
        if edge.target_path == ROWS and edge.kind in ROW_SET:
            referenced.add((column, edge.kind.label))
        else:
            kind = "value" if edge.kind in VALUE_FLOW else edge.kind.label
            contributed.setdefault(plain(edge.target_path), set()).add((column, kind))
    _compare_contributed(truth, contributed, differences)
    if references and not by_position(view.query):
        read = {plain(edge.source.dataset) for edge in derivation.edges if edge.kind is EdgeKind.READ}
        ours = everything | {(plain(ref.dataset), plain(ref.path).split(".")[0]) for ref in derivation.references}
        theirs = {column for column in truth.depends if column[0] in read | {table for table, _ in ours}}
        more = {table for table, _ in ours - theirs}
        # Of a whole row PostgreSQL keeps the table alone.
        theirs |= {column for column in ours if column[0] in more - {table for table, _ in theirs}}
        if ours != theirs:
            differences["named"] = _difference(ours, theirs)
    if {column for column, _ in referenced} != {column for column, _ in truth.referenced}:
        differences["referenced"] = _difference({c for c, _ in referenced}, {c for c, _ in truth.referenced})
    if referenced != truth.referenced:
        differences["referenced kinds"] = _difference(referenced, truth.referenced)
    # PostgreSQL also counts what an inner query puts out and no one uses; the tree says which columns those are.
    if everything != truth.columns or not everything <= truth.depends:
        differences["depends"] = _difference(everything, truth.columns & truth.depends)
    return verdict


def by_position(query: str) -> bool:
    """Whether a query takes columns by position: ``*``, of which PostgreSQL keeps what it stood for, or ``t(a, b)``."""
    tree = sqlglot.parse_one(query, dialect="postgres")
    if any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star)):
        return True
    return any(alias.args.get("columns") for alias in tree.find_all(exp.TableAlias))


def _compare_contributed(
    truth: ViewLineage, contributed: dict[str, set[tuple[Column, str]]], differences: dict[str, str]
) -> None:
    expected: dict[str, Deps] = dict(zip(truth.names, truth.contributed, strict=True))
    columns, kinds = [], []
    for name in dict.fromkeys([*expected, *contributed]):
        ours, theirs = contributed.get(name, set()), set(expected.get(name, ()))
        if {column for column, _ in ours} != {column for column, _ in theirs}:
            columns.append(f"{name}: {_difference({c for c, _ in ours}, {c for c, _ in theirs})}")
        if ours != theirs:
            kinds.append(f"{name}: {_difference(ours, theirs)}")
    if columns:
        differences["contributed"] = "; ".join(columns)
    if kinds:
        differences["contributed kinds"] = "; ".join(kinds)


def _difference(ours: set[Column] | set[tuple[Column, str]], theirs: set[Column] | set[tuple[Column, str]]) -> str:
    more, less = sorted(map(_text, ours - theirs)), sorted(map(_text, theirs - ours))
    return " ".join([*(f"+{item}" for item in more), *(f"-{item}" for item in less)])


def _text(item: Column | tuple[Column, str]) -> str:
    first, second = item
    return f"{first}.{second}" if isinstance(first, str) else f"{first[0]}.{first[1]} {second}"


def plain(path: str) -> str:
    """The column of a path, without quotes, as a catalog has it."""
    quoted = re.match(r'"((?:[^"]|"")*)"', path)
    if quoted:
        return quoted[1].replace('""', '"')
    return re.split(r"[.\[]", path, maxsplit=1)[0]
