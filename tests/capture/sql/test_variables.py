"""Script variables: which assignments reach which statement, and what becomes of their values."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from lineage_cases import lines_of

from govtool.capture.sql.extract import Extraction, Options, extract
from govtool.capture.sql.files import Script
from govtool.capture.sql.resolve.inline import inline_function
from govtool.capture.sql.resolve.knowledge import Knowledge
from govtool.capture.sql.scripts.control.branches import Arm, Path
from govtool.capture.sql.scripts.control.reaching import VariableStep, every, reaching
from govtool.capture.sql.syntax.lexer import lexer
from govtool.model import HIDDEN, EdgeKind

# -- which assignments reach --------------------------------------------------------------------------------------------


@dataclass
class _Program:
    """Statements and branches, to be run."""

    steps: list[VariableStep] = field(default_factory=list)
    branches: int = 0

    def block(self, rng: random.Random, path: Path, depth: int, *, loops: bool) -> list[object]:
        found: list[object] = []
        for _ in range(rng.randint(0, 4)):
            if depth and rng.random() < 0.4:
                self.branches += 1
                found.append(self.branch(rng, self.branches, path, depth - 1, loops=loops))
            else:
                names = tuple(rng.sample("ab", rng.randint(0, 1)))
                step = VariableStep(len(self.steps), path, names, keeps=bool(names) and rng.random() < 0.2)
                self.steps.append(step)
                found.append(step)
        return found

    def branch(self, rng: random.Random, number: int, path: Path, depth: int, *, loops: bool) -> tuple[object, ...]:
        if loops and rng.random() < 0.4:
            always = rng.random() < 0.5
            arm = Arm(number, 0, always, True)
            return ("loop", always, self.block(rng, (*path, arm), depth, loops=loops))
        count = rng.randint(1, 3)
        rest = rng.random() < 0.5
        arms = [Arm(number, i, rest and i == count - 1) for i in range(count)]
        return ("if", rest, [self.block(rng, (*path, arm), depth, loops=loops) for arm in arms])


_State = dict[str, frozenset[int]]


def _runs(block: list[object], state: _State, seen: dict[int, list[_State]]) -> Iterator[_State]:
    """All runs of a block, loops at most twice round; what each statement finds goes into ``seen``."""
    states = [state]
    for item in block:
        after: list[_State] = []
        for now in states:
            if isinstance(item, VariableStep):
                seen[item.number].append(now)
                new = dict(now)
                for name in item.names:
                    new[name] = (now.get(name, frozenset()) if item.keeps else frozenset()) | {item.number}
                after.append(new)
                continue
            kind, always, inner = item  # type: ignore[misc]
            if kind == "if":
                after += [] if always else [now]
                for arm in inner:
                    after += _runs(arm, now, seen)
            else:
                once = list(_runs(inner, now, seen))
                after += ([] if always else [now]) + once
                for state_ in once:
                    after += _runs(inner, state_, seen)
        states = [dict(items) for items in {tuple(sorted(s.items())) for s in after}]
    yield from states


@pytest.mark.parametrize("loops", [False, True], ids=["branches", "loops"])
@pytest.mark.parametrize("seed", range(150))
def test_what_reaches_a_statement_is_what_some_run_leaves(seed: int, loops: bool) -> None:
    program = _Program()
    block = program.block(random.Random(seed), (), 2, loops=loops)
    seen: dict[int, list[_State]] = defaultdict(list)
    list(_runs(block, {}, seen))
    found = reaching(program.steps)
    everything = every(program.steps)
    assert set(found) == set(everything) == {step.number for step in program.steps}
    for number, states in seen.items():
        for name in "ab":
            left = frozenset().union(*(state.get(name, frozenset()) for state in states))
            assert set(found[number].get(name, ())) == left
            assert left <= set(everything[number].get(name, ()))


def test_loops_within_loops_leave_nothing_out() -> None:
    arms = tuple(Arm(i, 0, False, True) for i in range(1, 9))
    steps = [
        VariableStep(0, (), ("a",)),
        VariableStep(1, arms, ()),
        VariableStep(2, arms, ("a",)),
        VariableStep(3, (), ("a",)),
        VariableStep(4, (), ()),
    ]
    assert sorted(reaching(steps)[1]["a"]) == [0, 2]
    assert reaching(steps)[4]["a"] == (3,)


def test_a_handler_is_come_to_from_anywhere() -> None:
    arm = (Arm(1, 0, handler=True),)
    steps = [
        VariableStep(0, (), ("a",)),
        VariableStep(1, (), ("a",)),
        VariableStep(2, arm, ()),
        VariableStep(3, arm, ("a",)),
        VariableStep(4, (), ()),
    ]
    found = reaching(steps)
    assert set(found[2]["a"]) >= {0, 1}
    assert set(found[4]["a"]) == {1, 3}


def test_a_name_that_ends_stands_for_nothing() -> None:
    steps = [VariableStep(0, (), ("a",)), VariableStep(1, (), ("a",), ends=True), VariableStep(2, (), ())]
    assert reaching(steps)[2] == {}


# -- what becomes of values ---------------------------------------------------------------------------------------------


def _extract(dialect: str, **files: str) -> Extraction:
    return extract([Script(f"{name}.sql", text) for name, text in files.items()], Options(dialect=dialect))


def test_values_that_come_round_through_functions_come_to_an_end() -> None:
    text = """DECLARE @x nvarchar(9) = '', @y nvarchar(9)
    WHILE 1 = 1 BEGIN
      SET @y = lower(@x)
      SELECT @x = concat(reverse(@y), a) FROM s
      INSERT INTO t (p, q) VALUES (@x, @y)
    END"""
    found = lines_of(_extract("tsql", a=text))
    assert found == ["t.* <- s read", "t.p <- s.a transformation", "t.q <- s.a transformation"]


def test_a_long_row_of_assignments_that_another_file_asks_for() -> None:
    row = "\n".join(f"SET @x = @x + {i}" for i in range(2000))
    made = f"DECLARE @x int = (SELECT max(a) FROM s)\n{row}\nSELECT @x AS m INTO made"
    found = lines_of(_extract("tsql", a="INSERT INTO t (p) SELECT m FROM made", b=made))
    assert {"made.m <- s.a aggregation", "t.p <- made.m identity"} <= set(found)


def test_a_column_that_usage_shows_is_no_variable() -> None:
    text = """DECLARE a INT64 DEFAULT (SELECT max(k) FROM z);
    INSERT INTO u (x) SELECT s.a FROM s;
    INSERT INTO u (x) SELECT a FROM s;
    INSERT INTO w (x) SELECT a FROM other WHERE b = 1;"""
    found = lines_of(_extract("bigquery", a=text))
    assert "u.x <- s.a identity" in found
    assert "w.x <- z.k aggregation" in found


def test_an_ambiguous_value_stays_ambiguous() -> None:
    text = "DECLARE @x int; SELECT @x = a FROM s JOIN r ON s.i = r.i; INSERT INTO t (p) VALUES (@x)"
    notes = [note for note in _extract("tsql", a=text).diagnostics if note.code == "ambiguous"]
    assert [note.target for note in notes] == ["t.p"]
    shown = _extract("tsql", a=text, b="SELECT s.a FROM s")
    assert "t.p <- s.a identity" in lines_of(shown)


@pytest.mark.parametrize("behind", [False, True])
def test_table_functions_of_other_files(behind: bool) -> None:
    body = """CREATE FUNCTION f(x int) RETURNS TABLE (a int, b int) LANGUAGE plpgsql AS $$
    DECLARE v int; BEGIN v := (SELECT max(k) FROM s); RETURN QUERY SELECT v, l FROM s2; END $$;"""
    files = {"one": body, "two": "INSERT INTO t (p, q) SELECT a, b FROM f(3)"}
    if behind:
        files = dict(reversed(files.items()))
    found = lines_of(_extract("postgres", **files))
    assert {"t.p <- s.k aggregation", "t.q <- s2.l identity", "t.* <- s read, s2 read"} <= set(found)


def test_a_recursive_table_function_comes_to_an_end() -> None:
    text = """CREATE FUNCTION f(x int) RETURNS TABLE (a int) LANGUAGE plpgsql AS $$
    BEGIN RETURN QUERY SELECT k FROM s; RETURN QUERY SELECT g.a FROM f(x - 1) g; END $$;
    INSERT INTO t (p) SELECT a FROM f(3);"""
    assert "t.p <- s.k identity" in lines_of(_extract("postgres", a=text))


def test_knowledge_keeps_what_a_function_says_of_its_columns() -> None:
    text = "CREATE FUNCTION f(x int, OUT a int, OUT b int) LANGUAGE sql AS $$ SELECT k, l FROM s WHERE m = x $$"
    lex = lexer("postgres")
    tree = lex.parse(lex.tokenize(text), text)
    assert tree is not None
    function = inline_function(tree, "postgres")
    assert function is not None
    assert (function.parameters, function.columns, function.is_table) == (("x",), ("a", "b"), True)
    known = Knowledge(functions={"f": function})
    assert Knowledge.from_json(known.to_json()).functions["f"] == function


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("postgres", "INSERT INTO u VALUES ((SELECT max(id) FROM s), 3)"),
        (
            "postgres",
            "DO $$ DECLARE r record; BEGIN FOR r IN SELECT id FROM s LOOP INSERT INTO u VALUES (r.id); END LOOP; END $$",
        ),
        ("tsql", "DECLARE @i int; SELECT @i = id FROM s; INSERT INTO u VALUES (@i)"),
    ],
)
def test_values_into_columns_that_are_not_known_are_not_lost(dialect: str, text: str) -> None:
    extraction = extract([Script("a.sql", text)], Options(dialect=dialect))
    [made] = [d for d in extraction.derivations if d.target == "u"]
    assert [(e.source.text, e.target_path, e.kind) for e in made.edges if e.kind is EdgeKind.OPAQUE] == [
        ("s.id", HIDDEN, EdgeKind.OPAQUE)
    ]
    assert (made.status, made.columns, made.columns_complete) == ("partial", (), False)


def test_constants_into_columns_that_are_not_known_are_understood() -> None:
    extraction = extract([Script("a.sql", "INSERT INTO u VALUES (1, 'x')")], Options(dialect="postgres"))
    assert [(d.status, d.edges) for d in extraction.derivations] == [("understood", ())]
