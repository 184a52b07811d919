"""Small graphs for tests: a terse notation for derivations, and random ones."""

from __future__ import annotations

from hypothesis import strategies as st

from govtool.app.versions.index import index_of
from govtool.graph.index import Index
from govtool.model import KIND_BY_LABEL, ColumnRef, Derivation, Edge, EdgeKind, OutputColumn, Statement
from govtool.names import join_name, split_name


def edge(text: str, **more) -> Edge:
    """``edge("s.a -> b identity")``: from column ``a`` of dataset ``s`` to column ``b`` of the target."""
    source, _, target, kind = text.split(" ")
    parts = split_name(source)
    return Edge(ColumnRef(join_name(parts[:1]), join_name(parts[1:])), target, KIND_BY_LABEL[kind], **more)


def view(target: str, columns: str, *edges: str | Edge, **more) -> Derivation:
    """A derivation of ``target``; every call is a file of its own unless ``file`` and ``line`` say otherwise."""
    place = (more.pop("file", f"{target}.sql"), more.pop("line", 1))
    statement = Statement(
        more.pop("fingerprint", f"{place}"), more.pop("kind", "create_view"), more.pop("dialect", "postgres"), *place
    )
    outputs = tuple(OutputColumn(*c.split(":")) for c in columns.split())
    made = tuple(e if isinstance(e, Edge) else edge(e) for e in edges)
    return Derivation(
        target, more.pop("target_kind", "view"), more.pop("mode", "replace"), statement, outputs, edges=made, **more
    )


def graph(*derivations: Derivation) -> Index:
    """The index of derivations."""
    return index_of(derivations)


DATASETS = ("a", "b", "c", "d", "t1", "t2")
PATHS = ("x", "y", "s", "s.f", "s.f.g", "s.h")
TO_ROWS = (EdgeKind.JOIN, EdgeKind.FILTER, EdgeKind.DISTINCT, EdgeKind.UNION_ALL)
TO_COLUMN = (EdgeKind.IDENTITY, EdgeKind.TRANSFORMATION, EdgeKind.AGGREGATION, EdgeKind.CONDITIONAL)


@st.composite
def random_edge(draw) -> Edge:
    source, path, star = draw(st.sampled_from(DATASETS)), draw(st.sampled_from(PATHS)), draw(st.booleans())
    shape = draw(st.integers(0, 9))
    if shape == 0:
        return Edge(ColumnRef(source, "*"), "*", EdgeKind.READ)
    if shape == 1:
        ends = draw(st.sampled_from([("*", "*"), (path, "*"), ("*", "x"), (path, "y")]))
        return Edge(ColumnRef(source, ends[0]), ends[1], EdgeKind.OPAQUE, reason="opaque")
    if shape == 2:
        return Edge(ColumnRef(source, "*"), draw(st.sampled_from(["*", "x"])), EdgeKind.IDENTITY, star=True)
    if shape < 5:
        return Edge(ColumnRef(source, path), "*", draw(st.sampled_from(TO_ROWS)), star=star)
    return Edge(ColumnRef(source, path), draw(st.sampled_from(PATHS)), draw(st.sampled_from(TO_COLUMN)), star=star)


@st.composite
def random_graph(draw) -> list[Derivation]:
    """Derivations with cycles, structs, temporary datasets, opaque edges and statements that write several datasets."""
    found = []
    for number in range(draw(st.integers(1, 7))):
        target = draw(st.sampled_from(DATASETS))
        temporary = target.startswith("t")
        columns = draw(st.lists(st.sampled_from(PATHS), unique=True, max_size=4))
        found.append(
            view(
                target,
                " ".join(columns),
                *draw(st.lists(random_edge(), max_size=4)),
                file=f"{number if draw(st.booleans()) else 0}.sql",
                fingerprint="f",
                mode="replace" if temporary else draw(st.sampled_from(["replace", "append", "update", "delete"])),
                target_kind="temporary" if temporary else "view",
            )
        )
    return found
