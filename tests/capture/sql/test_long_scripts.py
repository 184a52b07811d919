"""Scripts of thousands of like statements take time in proportion to their number.

Nothing is timed here: what takes the square of these numbers does not end in the time of a test.
"""

from __future__ import annotations

import pytest

from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script

COUNT = 8_000


def edges(*texts: str) -> set[str]:
    found = extract([Script(f"{n}.sql", text) for n, text in enumerate(texts)], Options(dialect="postgres"))
    return {
        f"{edge.source.dataset}.{edge.source.path} -> {derivation.target}.{edge.target_path}"
        for derivation in found.derivations
        for edge in derivation.edges
    }


@pytest.mark.parametrize(
    "unit",
    [
        "insert into t select * from u{n};\n",
        "insert into t select * from u{n};\nalter table t drop column a;\n",
        "insert into t select a from u{n};\nalter table t drop column a;\n",
    ],
)
def test_a_table_that_is_only_filled(unit: str) -> None:
    text = "".join(unit.replace("{n}", str(n)) for n in range(COUNT // (1 + unit.count("alter"))))
    assert "u7.a -> t.a" in edges(text, "select a from u7;") or "u7.* -> t.*" in edges(text)


def test_what_fills_a_table_counts_where_it_stands() -> None:
    silent = "insert into t select * from u;\n" * 3
    named = "insert into t (a, b) select c, d from v;\n"
    read = "create view w as select * from t;\n"
    for text in (silent + named + read, silent + read + named, named + silent + read):
        assert {"t.a -> w.a", "t.b -> w.b"} <= edges(text)
        assert {"t.a -> w.a", "t.b -> w.b"} <= edges(silent, text.replace(silent, ""))
    dropped = "alter table t drop column a;\nalter table t drop column b;\n"
    assert "t.a -> w.a" not in edges(silent + named + dropped + read)
    renamed = "alter table t rename column a to c;\nalter table t drop column b;\n"
    assert "t.c -> w.c" in edges(silent + named + renamed + read)


@pytest.mark.parametrize(
    "unit", ["alter table t add column c{n} int;\n", "alter table t rename column c{n} to c{m};\nselect a from t;\n"]
)
def test_a_table_that_is_altered_again_and_again(unit: str) -> None:
    count = COUNT // 4
    text = "".join(unit.replace("{n}", str(n)).replace("{m}", str(n + 1)) for n in range(count))
    found = edges(f"create table t (a int, c0 int);\n{text}create view v as select * from t;")
    last = count if "rename" in unit else count - 1
    assert {"t.a -> v.a", f"t.c{last} -> v.c{last}"} <= found


def test_a_union_of_many_queries() -> None:
    text = " union all ".join(f"select a from u{n}" for n in range(COUNT))
    assert {"u0.a -> v.a", f"u{COUNT - 1}.a -> v.a"} <= edges(f"create view v as {text}")


def test_a_select_of_many_names_that_either_source_may_have() -> None:
    names = ", ".join(f"a{n}" for n in range(COUNT // 2))
    found = edges(f"create view v as select {names} from t join u on t.x = u.x;")
    assert {"t.a7 -> v.a7", "u.a7 -> v.a7"} <= found


def test_a_line_of_many_calls_of_unknown_macros() -> None:
    calls = ", ".join(f"{{{{ u{n}() }}}} as a{n}" for n in range(COUNT // 4))
    (made,) = extract([Script("m.sql", f"select {calls} from t")], Options(dialect="postgres")).derivations
    assert {note.message.partition(" is")[0] for note in made.diagnostics} >= {"macro u7", "macro u1999"}


def test_joins_within_each_other_that_are_too_deep_to_parse() -> None:
    """Each name is looked at where it stands, not behind a copy of all that comes before it."""
    count = 10_000
    text = "select * from " + "(" * count + "t" + " join u on t.a = u.b)" * count
    found = extract([Script("deep.sql", text)], Options(dialect="postgres"))
    assert [each.code for each in found.diagnostics] == ["nesting"]
