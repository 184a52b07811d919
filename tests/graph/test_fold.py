"""What a script does to a dataset in the course of its statements."""

from __future__ import annotations

from govtool.app.versions.index import index_of
from govtool.graph.index import Index
from govtool.model import ColumnRef, Derivation, Edge, EdgeKind, OutputColumn, Statement


def says(
    target: str, source: str | None, line: int, mode: str = "replace", *, file: str = "job.sql", **more
) -> Derivation:
    edges = (Edge(ColumnRef(source, "x"), "x", EdgeKind.IDENTITY),) if source else ()
    statement = Statement(
        f"{line}{source}", more.pop("kind", "create_table_as"), "", file, line,
        session=more.pop("session", None), first_seen=more.pop("first_seen", None),
    )  # fmt: skip
    return Derivation(
        target, more.pop("target_kind", "table"), mode, statement, (OutputColumn("x"),) if source else (), edges=edges
    )


def flows(*derivations: Derivation) -> set[tuple[str, str]]:
    """Value flow from visible dataset to visible dataset, through what is passed through."""
    index = index_of(derivations)
    return {
        (index.dataset_name(start), index.dataset_name(end))
        for start in range(index.dataset_count)
        if not index.is_elided(start)
        for end in reach(index, index.find_column(start, "x"))
    }


def reach(index: Index, node: int | None) -> set[int]:
    found: set[int] = set()
    seen: set[int] = set()
    stack = [node] if node is not None else []
    while stack:
        for edge in index.out_edges(stack.pop()):
            goal = index.edge_target[edge]
            if index.is_rows(goal) or goal in seen:
                continue
            seen.add(goal)
            if index.is_elided(index.node_dataset[goal]):
                stack.append(goal)
            else:
                found.add(index.node_dataset[goal])
    return found


def test_a_later_replace_in_a_file_ends_what_was_before() -> None:
    assert flows(says("v", "a", 1), says("v", "b", 5)) == {("b", "v")}


def test_text_order_counts_not_the_order_of_arrival() -> None:
    assert flows(says("v", "b", 5), says("v", "a", 1)) == {("b", "v")}


def test_two_files_that_define_one_relation_are_alternatives() -> None:
    assert flows(says("v", "a", 1), says("v", "b", 5, file="other.sql")) == {("a", "v"), ("b", "v")}


def test_definitions_on_one_line_are_alternatives() -> None:
    assert flows(says("v", "a", 3), says("v", "b", 3)) == {("a", "v"), ("b", "v")}


def test_a_select_named_by_its_file_replaces_nothing() -> None:
    assert flows(says("v", "a", 3, kind="select"), says("v", "b", 9, kind="select")) == {("a", "v"), ("b", "v")}


def test_inserts_accumulate_on_top_of_the_last_replace() -> None:
    assert flows(says("t", "a", 1), says("t", "b", 2, "append"), says("t", "c", 3), says("t", "d", 4, "append")) == {
        ("c", "t"),
        ("d", "t"),
    }


def test_drop_then_create_replaces() -> None:
    assert flows(says("t", "a", 1), says("t", None, 2, "drop"), says("t", "b", 3, "append")) == {("b", "t")}


def test_a_scratch_table_is_passed_through() -> None:
    script = (says("scratch", "a", 1), says("out", "scratch", 2), says("scratch", None, 3, "drop"))
    assert flows(*script) == {("a", "out")}
    index = index_of(script)
    assert "scratch" not in [index.dataset_name(d) for d in index.datasets()]


def test_a_scratch_table_used_twice_keeps_its_two_lives_apart() -> None:
    script = (
        says("scratch", "a", 1), says("out1", "scratch", 2),
        says("scratch", "b", 3), says("out2", "scratch", 4), says("scratch", None, 5, "drop"),
    )  # fmt: skip
    assert flows(*script) == {("a", "out1"), ("b", "out2")}


def test_a_table_read_before_it_is_replaced_is_the_old_one() -> None:
    script = (says("t", "a", 1), says("out", "t", 2), says("t", "b", 3))
    assert flows(*script) == {("a", "out"), ("b", "t")}


def test_a_dropped_table_that_others_speak_of_stays() -> None:
    assert flows(says("t", None, 1, "drop"), says("t", "a", 1, file="b.sql"), says("v", "t", 1, file="c.sql")) == {
        ("a", "t"),
        ("t", "v"),
    }


def test_a_dropped_table_does_not_appear() -> None:
    index = index_of([says("t", "a", 1), says("t", None, 2, "drop")])
    assert [index.dataset_name(d) for d in index.datasets()] == ["a"]
    index = index_of([says("gone", None, 1, "drop"), says("v", "a", 2)])
    assert [index.dataset_name(d) for d in index.datasets()] == ["a", "v"]


def test_a_rename_moves_what_was_made_in_the_same_script() -> None:
    script = (says("t_new", "a", 1), says("t", None, 2, "drop"), says("t", "t_new", 3, "rename"))
    assert flows(*script) == {("a", "t")}


def test_a_session_orders_by_time() -> None:
    first = says("v", "a", 9, session="s1", first_seen="2026-01-01", file="log.csv")
    second = says("v", "b", 2, session="s1", first_seen="2026-01-02", file="log.csv")
    other = says("v", "c", 1, session="s2", first_seen="2026-01-03", file="log.csv")
    assert flows(first, second) == {("b", "v")}
    assert flows(first, second, other) == {("b", "v"), ("c", "v")}


def test_declared_columns_come_without_edges() -> None:
    declared = Derivation(
        "t",
        "table",
        "declare",
        Statement("f", "create_table", "", "ddl.sql"),
        (OutputColumn("a", "int"), OutputColumn("b")),
    )
    index = index_of([declared])
    t = index.find_dataset("t")
    assert t is not None
    assert [(index.path(n), index.type(n)) for n in index.columns(t)] == [("a", "int"), ("b", None)]
    assert index.edge_count == 0


def test_a_temporary_table_is_its_scripts_own() -> None:
    def script(name: str, source: str, out: str) -> tuple[Derivation, ...]:
        return (
            says("tmp", source, 1, file=name, target_kind="temporary"),
            says(out, "tmp", 2, file=name),
        )

    assert flows(*script("a.sql", "a", "out_a"), *script("b.sql", "b", "out_b")) == {("a", "out_a"), ("b", "out_b")}


def test_a_temporary_table_does_not_hide_a_real_one_of_its_name() -> None:
    script = (
        says("t", "a", 1, file="a.sql", target_kind="temporary"), says("out", "t", 2, file="a.sql"),
        says("t", "b", 1, file="b.sql"), says("v", "t", 1, file="c.sql"),
    )  # fmt: skip
    assert flows(*script) == {("a", "out"), ("b", "t"), ("t", "v")}


def test_an_overwrite_keeps_the_declared_columns() -> None:
    ddl = Derivation(
        "t", "table", "declare", Statement("d", "create_table", "", "job.sql", 1), (OutputColumn("y", "int"),)
    )
    index = index_of([ddl, says("t", "a", 2, kind="insert"), says("t", "b", 9, kind="insert_overwrite")])
    t = index.find_dataset("t")
    assert t is not None
    assert [(index.path(n), index.type(n)) for n in index.columns(t)] == [("x", None), ("y", "int")]
    assert flows(ddl, says("t", "a", 2, kind="insert"), says("t", "b", 9, kind="insert_overwrite")) == {("b", "t")}
    index = index_of([ddl, says("t", "a", 2, kind="create_table_as")])
    assert [index.path(n) for n in index.columns(index.find_dataset("t"))] == ["x"]


def temporaries_of(*sources: str) -> tuple[Derivation, ...]:
    """In each source a file of the same name, with a temporary table of the same name."""
    made = []
    for source in sources:
        for one in (
            says('temp."q.sql".t', f"{source}.in", 1, target_kind="temporary", file="q.sql"),
            says(f"{source}.out", 'temp."q.sql".t', 2, file="q.sql"),
        ):
            made.append(one._replace(statement=one.statement._replace(source=source)))
    return tuple(made)


def test_temporary_tables_of_two_sources_have_names_of_their_own() -> None:
    made = temporaries_of("a", "sql:b/c")
    index = index_of(made)
    names = [index.dataset_name(d) for d in range(index.dataset_count)]
    assert [name for name in names if name.startswith("temp.")] == ['temp."a/q.sql".t', 'temp."sql:b/c/q.sql".t']
    assert sorted(set(names)) == names
    assert flows(*made) == {("a.in", "a.out"), ("sql:b/c.in", "sql:b/c.out")}
    shown = [index.dataset_name(d) for d in index.datasets()]
    assert not any(name.startswith("temp.") for name in shown)


def test_a_temporary_table_of_one_source_keeps_its_name() -> None:
    index = index_of(temporaries_of("a"))
    assert 'temp."q.sql".t' in [index.dataset_name(d) for d in range(index.dataset_count)]


def test_unread_temporary_tables_of_several_sources_leave_nothing() -> None:
    made = [one for one in temporaries_of("a", "b", "c") if one.target_kind == "temporary"]
    index = index_of(made)
    assert [index.dataset_name(d) for d in index.datasets()] == ["a.in", "b.in", "c.in"]
    index = index_of([*made, says("v", "a.in", 1)])
    assert [index.dataset_name(d) for d in index.datasets()] == ["a.in", "b.in", "c.in", "v"]


def test_a_lasting_table_of_the_name_stays_beside_temporary_ones() -> None:
    made = [*temporaries_of("a", "b"), says("mart.x", 'temp."q.sql".t', 1, file="other.sql")]
    index = index_of(made)
    assert 'temp."q.sql".t' in [index.dataset_name(d) for d in index.datasets()]
    assert ('temp."q.sql".t', "mart.x") in flows(*made)


def test_temporary_tables_without_a_session_in_their_name_are_told_apart_too() -> None:
    made = [says("t", "x", 1, target_kind="temporary"), says("v", "t", 2)]
    both = [
        one._replace(
            target=f"v_{source}" if one.target == "v" else "t", statement=one.statement._replace(source=source)
        )
        for source in ("a", "b")
        for one in made
    ]
    index = index_of(both)
    names = [index.dataset_name(d) for d in range(index.dataset_count)]
    assert names == ['"a/t"', '"b/t"', "v_a", "v_b", "x"]
