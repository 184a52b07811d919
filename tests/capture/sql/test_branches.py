"""Branches of control flow: where statements stand, whatever the script does."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.app.versions.index import index_of
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.capture.sql.scripts.control.branches import Arm, exclusive
from govtool.capture.sql.scripts.script import parse_script
from govtool.query.changes.impact import impact


def paths(text: str, dialect: str) -> dict[str, tuple[tuple[int, int], ...]]:
    """Arms by the table that a statement writes."""
    return {
        s.text.split()[2].strip("();"): tuple((arm.branch, arm.number) for arm in s.branch)
        for s in parse_script(text, dialect)
        if s.status == "parsed" and s.head in ("insert", "create")
    }


def test_paths_part_where_their_arms_differ() -> None:
    assert exclusive((Arm(1, 0),), (Arm(1, 1),))
    assert exclusive((Arm(1, 0), Arm(2, 0)), (Arm(1, 0), Arm(2, 1), Arm(3, 0)))
    assert not exclusive((Arm(1, 0),), (Arm(2, 1),))
    assert not exclusive((Arm(1, 0),), (Arm(1, 0), Arm(2, 1)))
    assert not exclusive((), (Arm(1, 1),))


def test_tsql_arms_end_without_a_word() -> None:
    text = """
        IF @a = 1 INSERT INTO t1 SELECT 1 FROM s
        INSERT INTO t2 SELECT 1 FROM s
        IF @a = 1 BEGIN INSERT INTO t3 SELECT 1 FROM s INSERT INTO t4 SELECT 1 FROM s END ELSE INSERT INTO t5 SELECT 1 FROM s
        INSERT INTO t6 SELECT 1 FROM s
        WHILE @a > 1 BEGIN IF @b = 1 INSERT INTO t7 SELECT 1 FROM s END
        INSERT INTO t8 SELECT 1 FROM s
    """
    assert paths(text, "tsql") == {
        "t1": ((1, 0),),
        "t2": (),
        "t3": ((2, 0),),
        "t4": ((2, 0),),
        "t5": ((2, 1),),
        "t6": (),
        "t7": ((3, 0), (4, 0)),
        "t8": (),
    }


@pytest.mark.parametrize("broken", ["END IF;", "END LOOP;", "END CASE;", "END;", "ELSE", "ELSIF x THEN", "WHEN x THEN"])
def test_ends_without_a_beginning_change_nothing(broken: str) -> None:
    assert paths(f"{broken} INSERT INTO a SELECT 1 FROM s;", "bigquery").get("a", ()) == ()


def test_an_open_branch_ends_with_its_block_and_routine() -> None:
    text = """
        CREATE PROCEDURE p() BEGIN IF x THEN INSERT INTO a SELECT 1 FROM s; END;
        INSERT INTO b SELECT 1 FROM s;
    """
    assert paths(text, "bigquery") == {"a": ((1, 0),), "b": ()}


# -- a script of branches, and what an interpreter says is left of it --------------------------------------------------

Block = Sequence[object]

STATEMENTS = st.one_of(
    st.tuples(st.just("replace"), st.sampled_from(["t", "u"])),
    st.tuples(st.just("append"), st.sampled_from(["t", "u"])),
    st.tuples(st.just("drop"), st.sampled_from(["t", "u"])),
)
BLOCKS: st.SearchStrategy[Block] = st.recursive(
    st.lists(STATEMENTS, max_size=3),
    lambda block: st.lists(
        st.one_of(
            STATEMENTS,
            st.tuples(st.just("if"), st.lists(block, min_size=1, max_size=3), st.booleans()),
            st.tuples(st.just("while"), block),
        ),
        max_size=3,
    ),
    max_leaves=8,
)


def written(block: Block, lines: list[str]) -> None:
    """The block as BigQuery writes it; each statement reads a column that is named by its line."""
    for item in block:
        kind = item[0]  # type: ignore[index]
        if kind == "if":
            _, arms, has_else = item  # type: ignore[misc]
            for number, arm in enumerate(arms):
                last = has_else and number and number == len(arms) - 1
                lines.append("IF x THEN" if not number else "ELSE" if last else "ELSEIF x THEN")
                lines.append("SELECT 1;")
                written(arm, lines)
            lines.append("END IF;")
        elif kind == "while":
            lines.append("WHILE x DO")
            written(item[1], lines)  # type: ignore[index]
            lines.append("END WHILE;")
        else:
            table = item[1]  # type: ignore[index]
            column = f"c{len(lines) + 1}"
            lines.append(
                {
                    "replace": f"CREATE OR REPLACE TABLE {table} AS SELECT {column} AS a FROM s;",
                    "append": f"INSERT INTO {table} (a) SELECT {column} FROM s;",
                    "drop": f"DROP TABLE {table};",
                }[kind]
            )


State = tuple[tuple[str, frozenset[str]], ...]


def runs(block: Block, states: set[State], line: list[int]) -> set[State]:
    """All states that some run of the block may leave: for each table, which columns of ``s`` are in it."""
    for item in block:
        kind = item[0]  # type: ignore[index]
        if kind == "if":
            _, arms, has_else = item  # type: ignore[misc]
            after: set[State] = set()
            for arm in arms:
                line[0] += 2
                after |= runs(arm, states, line)
            line[0] += 1
            states = after if has_else and len(arms) > 1 else after | states
        elif kind == "while":
            line[0] += 1
            states = states | runs(item[1], states, line)  # type: ignore[index]
            line[0] += 1
        else:
            line[0] += 1
            states = {_after(state, kind, item[1], f"c{line[0]}") for state in states}  # type: ignore[index]
    return states


def _after(state: State, kind: str, table: str, column: str) -> State:
    tables = dict(state)
    if kind == "append":
        tables[table] = tables.get(table, frozenset()) | {column}
    else:
        tables[table] = frozenset({column}) if kind == "replace" else frozenset()
    return tuple(sorted(tables.items()))


@settings(max_examples=examples(150), deadline=None)
@given(BLOCKS)
def test_what_is_left_is_what_some_run_leaves(block: Block) -> None:
    lines: list[str] = []
    written(block, lines)
    extraction = extract([Script("f.sql", "\n".join(lines))], Options(dialect="bigquery"))
    left = runs(block, {()}, [0])
    expected = {(table, c) for state in left for table, columns in state for c in columns}
    found = {
        (d.target, edge.source.path)
        for d in extraction.derivations
        if d.target in ("t", "u")
        for edge in d.edges
        if edge.target_path == "a"
    }
    assert found == expected, "\n".join(lines)
    index = index_of(extraction.derivations)
    reached = {
        (entry.dataset, column)
        for column in {c for _, c in expected}
        for entry in impact(index, f"s.{column}").columns
        if entry.dataset in ("t", "u") and entry.column.endswith(".a")
    }
    assert reached == expected, "the graph's own fold leaves them alone"
