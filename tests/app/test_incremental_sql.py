"""Incremental ingests of SQL: after any edit the commit is that of an ingest in full, whatever the cache holds."""

from __future__ import annotations

import json
import shutil
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from depth import LONG

from bench.incremental.oracle import compare, difference, report_difference
from govtool.answers.ingest import CoverageDemand
from govtool.app.coverage.failures import failures
from govtool.app.ingest import sql_memo_files as sql_memos
from govtool.app.ingest import sql_workers
from govtool.app.ingest.logs import pool
from govtool.app.ingest.sql import ingest_sql
from govtool.app.ingest.sql_options import SqlRequest
from govtool.app.ingest.sql_workers import extracted_by_workers
from govtool.capture.sql import collector
from govtool.capture.sql.extract import Options
from govtool.capture.sql.files import Script
from govtool.capture.sql.scripts import trees
from govtool.model import stored_rows
from govtool.store import Commit, Store
from govtool.store.cache import cache_root

SHOP = Path(__file__).parents[2] / "fixtures" / "shop"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize(("dialect", "seed"), [("postgres", 3), ("snowflake", 4)])
def test_random_edits_of_the_shop_yield_what_a_full_ingest_yields(tmp_path: Path, dialect: str, seed: int):
    """A few edits; ``python -m bench.incremental.oracle`` makes as many as are wanted, of any warehouse."""
    outcomes = list(compare(SHOP / dialect, tmp_path, dialect=dialect, edits=4 if not LONG else 10, seed=seed))
    assert [(outcome.edit, outcome.difference) for outcome in outcomes if outcome.difference] == []
    assert sum(outcome.extracted for outcome in outcomes[1:]) < sum(outcome.files for outcome in outcomes[1:])


APART = {
    "a_base.sql": "create table base (id int, email text);\ncomment on table base is 'people #pii';",
    "b_view.sql": "create view v as select * from base;",
    "c_second.sql": "create view w as select email, f(id) as n from v; -- govtool: ignore",
    "d_function.sql": "create function f(x int) returns int language sql as 'select max(id) + x from base';",
    "e_fill.sql": "insert into filled select id, email from base; insert into filled select * from w;",
    "f_usage.sql": "select a.id, b.name from unknown a join other b on a.k = b.k; select c from unknown;",
    "g_broken.sql": "select from where (; create view broken as select id from",
    "h_macro.sql": "{% macro m(c) %}lower({{ c }}){% endmacro %}",
    "i_template.sql": "create view t as select {{ m('email') }} as e from v where {{ q('x') }};",
    "j_move.sql": "alter table base rename to moved;",
    "k_star.sql": "create view x as select * from filled; create view y as select * from unknown;",
    "m_through.sql": "create view p as select id as i from base; insert into p select k from unknown;",
    "n_through.sql": "insert into x select id from base; update y set c = 1; insert into p select id from base;",
    "l_twice.sql": "create view v as select id from base;",
}
"""Scripts that look at each other, as several processes see only some of them."""
TRIGGER = (
    "create function g() returns trigger language plpgsql as $$ begin insert into audit values (new.id); return new;"
    " end $$; create trigger t after insert on base for each row execute function g();"
)


@pytest.mark.parametrize("warehouse", ["shop", "apart", "triggers", "dbt"])
def test_several_processes_yield_what_one_yields(
    tmp_path: Path, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[bool] = []
    monkeypatch.setattr(sql_workers, "WORTH", 0)

    def extracted(*arguments: Any) -> Any:
        made = extracted_by_workers(*arguments)
        used.append(made is not None)
        return made

    monkeypatch.setattr(sql_workers, "extracted_by_workers", extracted)
    folder = tmp_path / "sql"
    if warehouse == "shop":
        shutil.copytree(SHOP / "postgres", folder)
    else:
        (folder / "models").mkdir(parents=True)
        more = {"triggers": {"m_trigger.sql": TRIGGER}, "dbt": DBT}.get(warehouse, {})
        for name, text in (APART | more).items():
            (folder / name).write_text(text)
    one, several = Store.init(str(tmp_path / "one")), Store.init(str(tmp_path / "several"))
    for change in ("", "create view base2 as select * from base;"):
        if change:
            (folder / "z_later.sql").write_text(change)
        outcomes = [
            ingest_sql(store, SqlRequest((str(folder),), dialect="postgres", source="w", workers=workers))
            for store, workers in ((one, 1), (several, 3))
        ]
        assert difference(one, outcomes[0].commit, several, outcomes[1].commit) == ""
        assert report_difference(*outcomes) == ""
    assert used[:2] == [False, True]


def test_a_small_change_starts_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def started(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(pool, "Pool", started)
    ingest_sql(Store.init(str(tmp_path / "s")), SqlRequest((str(SHOP / "postgres"),), dialect="postgres", workers=2))


@pytest.mark.parametrize(
    ("text", "for_all"),
    [
        ("CREATE FUNCTION helper(x INT64) RETURNS INT64 AS (x + 1) -- moved out of g", False),
        ("CREATE FUNCTION f(x int, OUT y int) LANGUAGE sql AS 'select 1'", True),
        ("CREATE FUNCTION f() RETURNS SETOF t LANGUAGE sql AS 'select 1'", True),
        ("CREATE FUNCTION f() RETURNS @t TABLE (id int) AS BEGIN RETURN END", True),
        ("CREATE TYPE t AS TABLE (id int)", True),
        ("CREATE FUNCTION app.sha256(x text) RETURNS text LANGUAGE plpython3u AS 'return x'", True),
        ("CREATE FUNCTION f(i int) RETURNS int AS $$ BEGIN RETURN i; END $$ LANGUAGE plpgsql", True),
        ("CREATE TABLE t (id int) LOCATION '/data/t'", True),
        ("CREATE TABLE t (id int) USING csv OPTIONS (path '/data/t')", True),
        ("CREATE TABLE t (more int) INHERITS (base)", True),
        ("ALTER TABLE t INHERIT base", True),
        ("CREATE TABLE t PARTITION OF base FOR VALUES IN (1)", True),
        ("SELECT type, rule, location, r.trigger AS t FROM partitions -- part of the partition of base", False),
    ],
)
def test_processes_are_given_what_may_hold_for_all_scripts_and_no_other_function(text: str, for_all: bool):
    scripts = [Script(f"{name}.sql", f"SELECT {name} FROM {name} -- {'.' * 40}") for name in "abcdef"]
    parts = sql_workers.shared_out([*scripts, Script("x.sql", text)], Options(dialect="postgres"), 2)
    assert [any(each.file == "x.sql" for each in part.scripts) for part in parts] == [for_all, True]


class _Two:
    """A small warehouse that is ingested with memos and, into another store, without."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder / "sql"
        self.folder.mkdir()
        self._patch = monkeypatch
        self.store, self.full = Store.init(str(folder / "store")), Store.init(str(folder / "full"))
        self.extracted: list[str] = []
        self.request = SqlRequest((str(self.folder),), dialect="postgres", source="w")

    def write(self, name: str, text: str) -> None:
        (self.folder / name).parent.mkdir(exist_ok=True)
        (self.folder / name).write_text(text)

    def ingest(self) -> Commit:
        """Ingest both ways, and compare."""
        from govtool.app.ingest import sql_extraction as ingesting
        from govtool.capture.sql.extract import ScriptMaker

        parsed: list[str] = []
        parse = ScriptMaker.parse

        def noting(maker, rendered):  # type: ignore[no-untyped-def]
            parsed.append(maker.script.file)
            return parse(maker, rendered)

        with self._patch.context() as patch:
            patch.setattr(ScriptMaker, "parse", noting)
            ours = ingest_sql(self.store, self.request)
        self.extracted = sorted(set(parsed))
        with self._patch.context() as patch:
            patch.setattr(ingesting, "lineage_with_memos", lambda *_, **__: None)
            theirs = ingest_sql(self.full, self.request)
        assert difference(self.store, ours.commit, self.full, theirs.commit) == ""
        assert report_difference(ours, theirs) == ""
        return ours.commit


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Two]:
    warehouse = _Two(tmp_path, monkeypatch)
    warehouse.write("ddl.sql", "CREATE TABLE users (id int, email text);\nCREATE TABLE orders (id int, user_id int);")
    warehouse.write("a.sql", "CREATE VIEW a AS SELECT * FROM users;")
    warehouse.write("b.sql", "CREATE VIEW b AS SELECT email, id FROM a;")
    warehouse.write("c.sql", "CREATE VIEW c AS SELECT id FROM orders;")
    return warehouse


def test_a_comment_extracts_its_own_file_and_no_other(two: _Two):
    two.ingest()
    assert two.extracted == ["a.sql", "b.sql", "c.sql", "ddl.sql"]
    two.write("a.sql", "-- users, as they are\nCREATE VIEW a AS SELECT * FROM users;")
    two.ingest()
    assert two.extracted == ["a.sql"]


def test_a_script_that_is_understood_in_part_is_not_read_again(two: _Two):
    two.write("part.sql", "CREATE VIEW p AS SELECT id, colour FROM wares, shelves;")
    assert two.ingest().summary["coverage"]["partial"] == 1
    two.write("a.sql", "-- users, as they are\nCREATE VIEW a AS SELECT * FROM users;")
    assert two.ingest().summary["coverage"]["partial"] == 1
    assert two.extracted == ["a.sql"]


def test_a_statement_of_which_nothing_is_known_is_read_again_only_where_its_text_is_asked_for(two: _Two):
    two.write("far.sql", "CREATE VIEW far AS SELECT id FROM dblink('host=x', 'select 1') AS t;")
    two.ingest()
    two.write("a.sql", "-- users, as they are\nCREATE VIEW a AS SELECT * FROM users;")
    assert two.ingest().summary["coverage"]["opaque"] == 1
    assert two.extracted == ["a.sql"]
    asked = ingest_sql(two.store, two.request, demand=CoverageDemand(errors=False, shortfalls=True))
    assert [one.text for one in failures(asked.shortfalls, keep_literals=True)] == [
        "CREATE VIEW far AS SELECT id FROM dblink('host=x', 'select 1') AS t"
    ]


def test_the_words_of_what_is_not_understood_follow_renamed_tables(two: _Two):
    two.write("odd.sql", "UPDATE people SET id = = 3;")
    two.ingest()
    two.write("moves.sql", "ALTER TABLE people RENAME TO persons;")
    two.ingest()
    assert two.extracted == ["moves.sql", "odd.sql"]


def test_a_new_column_reaches_who_stars_over_it_and_not_who_names_others(two: _Two):
    two.ingest()
    two.write(
        "ddl.sql",
        "CREATE TABLE users (id int, phone text, email text);\nCREATE TABLE orders (id int, user_id int);",
    )
    two.ingest()
    assert two.extracted == ["a.sql", "b.sql", "ddl.sql"]  # b looks at the columns of a


def test_what_is_written_to_a_view_follows_its_definition(two: _Two):
    two.write("fill.sql", "INSERT INTO a (id) SELECT user_id FROM orders;")
    two.ingest()
    for text in (
        "CREATE VIEW a AS SELECT ref AS id, email FROM people;",
        "CREATE VIEW a AS SELECT id, email FROM people, users;",
        "CREATE TABLE a (id int, email text);",
        "CREATE VIEW a AS SELECT id, email FROM users;",
        "CREATE VIEW a AS SELECT id, email FROM users WHERE id > 0;",
    ):
        two.write("a.sql", text)
        two.ingest()
        assert "fill.sql" in two.extracted
    two.write("a.sql", "CREATE VIEW a AS SELECT id, email FROM users WHERE id > 1;")
    two.ingest()
    assert two.extracted == ["a.sql"]
    two.write("tr.sql", "CREATE TRIGGER tr INSTEAD OF INSERT ON a FOR EACH ROW EXECUTE FUNCTION f();")
    two.ingest()
    assert "fill.sql" in two.extracted


def test_a_walk_that_is_made_after_all_does_not_see_the_columns_that_it_names_later(two: _Two):
    two.write(
        "late.sql",
        "CREATE VIEW late AS WITH w AS (SELECT DISTINCT wares.* FROM wares), n AS (SELECT w.colour FROM w), "
        "z AS (SELECT * FROM a) SELECT n.colour, z.id FROM n, z;",
    )
    two.ingest()
    two.write("a.sql", "CREATE VIEW a AS SELECT id, email, 1 AS more FROM users;")  # late looks at it behind colour
    two.ingest()
    assert "late.sql" in two.extracted


def test_a_column_that_another_statement_shows_settles_whose_a_name_is(two: _Two):
    two.write("open.sql", "CREATE VIEW o AS SELECT colour FROM wares w, shelves s WHERE w.id = s.id;")
    two.ingest()
    two.write("shows.sql", "CREATE VIEW z AS SELECT w.colour FROM wares w;")
    two.ingest()
    assert two.extracted == ["open.sql", "shows.sql"]


def test_a_function_changes_who_calls_it(two: _Two):
    two.write("f.sql", "CREATE FUNCTION f(x text) RETURNS text AS 'SELECT lower(x)' LANGUAGE sql;")
    two.write("calls.sql", "CREATE VIEW called AS SELECT f(email) AS e FROM users;")
    two.ingest()
    two.write("f.sql", "CREATE FUNCTION f(x text) RETURNS text AS 'SELECT ''none''' LANGUAGE sql;")
    two.ingest()
    assert two.extracted == ["calls.sql", "f.sql"]


def test_functions_of_one_name_change_those_who_call_them(two: _Two):
    one = "CREATE FUNCTION f(x text) RETURNS text AS 'SELECT lower(x)' LANGUAGE sql;"
    own = "CREATE FUNCTION f(x text) RETURNS text AS 'SELECT ''h''' LANGUAGE sql;"
    calls = "CREATE VIEW h AS SELECT f(email) AS e FROM users;"
    two.write("f1.sql", one)
    two.write("g.sql", "CREATE VIEW g AS SELECT f(email) AS e FROM users;")
    two.write("h.sql", f"{own} {calls}")
    two.ingest()
    two.write("f0.sql", "CREATE FUNCTION f(x text, y text) RETURNS text AS 'SELECT y' LANGUAGE sql;")
    two.write("i.sql", "CREATE VIEW i AS SELECT f('', email) AS e FROM users;")
    two.ingest()
    two.write("i.sql", "CREATE VIEW i AS SELECT f('', email) AS v FROM users;")
    two.ingest()
    two.write("f1.sql", one.replace("lower(x)", "''none''"))
    two.ingest()
    two.write("h.sql", calls)
    two.ingest()
    (two.folder / "f1.sql").unlink()
    two.ingest()
    (two.folder / "f0.sql").rename(two.folder / "z.sql")
    two.ingest()


def test_a_comment_behind_a_function_changes_no_caller(two: _Two):
    function = "CREATE FUNCTION f(x text) RETURNS text AS 'SELECT lower(x)' LANGUAGE sql;"
    two.write("f.sql", function)
    two.write("calls.sql", "CREATE VIEW g AS SELECT f(email) AS e FROM users;")
    two.ingest()
    two.write("f.sql", f"{function}\n-- lower case\n")
    two.ingest()
    assert two.extracted == ["f.sql"]
    two.write("f.sql", function.replace("lower(x)", "upper(x)"))
    two.ingest()
    assert two.extracted == ["calls.sql", "f.sql"]


def test_a_file_that_fails_keeps_what_it_said_and_costs_no_other_file(two: _Two):
    two.ingest()
    two.write("c.sql", "CREATE VIEW c AS SELECT (((;")
    two.ingest()
    two.write("b.sql", "CREATE VIEW b AS SELECT id FROM a;")
    two.ingest()
    assert two.extracted == ["b.sql", "c.sql"]


def test_hints_follow_the_columns_that_a_failed_file_had(two: _Two):
    two.write("ddl.sql", "CREATE TABLE crm.users (id int, email text);")
    two.write("c.sql", "CREATE VIEW c AS SELECT * FROM things;")
    two.write("things.sql", "CREATE TABLE old.things (id int);")
    two.ingest()
    two.write("things.sql", "CREATE TABLE old.things (((;")
    two.ingest()
    two.write("things.sql", "CREATE TABLE old.other (id int);")
    two.ingest()
    two.write("things.sql", "CREATE TABLE old.things (id int);")
    two.ingest()


def test_calls_are_known_by_what_scripts_with_memos_define(two: _Two):
    two.write("p.sql", "CREATE PROCEDURE etl.load() LANGUAGE sql AS $$ INSERT INTO d SELECT id FROM orders $$;")
    two.write("calls.sql", "CALL etl.load();")
    assert two.ingest().summary["coverage"]["opaque"] == 0
    two.write("b.sql", "CREATE VIEW b AS SELECT id FROM a;")
    assert two.ingest().summary["coverage"]["opaque"] == 0
    two.write("p.sql", "CREATE PROCEDURE etl.other() LANGUAGE sql AS $$ INSERT INTO d SELECT id FROM orders $$;")
    assert two.ingest().summary["coverage"]["opaque"] == 1


@pytest.mark.parametrize("call", ["CALL etl.renew();", "SELECT etl.renew();", "SELECT renew();"])
def test_a_script_that_calls_is_read_again_only_if_what_it_calls_is_gone(two: _Two, call: str):
    kind = "PROCEDURE etl.{}()" if call.startswith("CALL") else "FUNCTION etl.{}() RETURNS void"
    routine = f"CREATE {kind} LANGUAGE sql AS $$ INSERT INTO d SELECT id FROM orders $$;"
    two.write("p.sql", routine.format("renew"))
    two.write("calls.sql", call)
    assert two.ingest().summary["coverage"]["opaque"] == 0
    two.write("b.sql", "CREATE VIEW b AS SELECT id FROM a;")
    two.ingest()
    assert "calls.sql" not in two.extracted
    two.write("p.sql", routine.format("other"))
    assert two.ingest().summary["coverage"]["opaque"] == 1
    assert "calls.sql" in two.extracted
    two.write("p.sql", routine.format("renew"))
    assert two.ingest().summary["coverage"]["opaque"] == 0


def test_templates_are_read_again_only_if_a_macro_changed(two: _Two):
    macro = "{% macro key() %}id{% endmacro %}\n"
    two.write("m.sql", macro + "CREATE VIEW m AS SELECT id FROM users;")
    two.write("t.sql", "CREATE VIEW t AS SELECT {{ key() }} FROM users;")
    two.write("u.sql", "{# no macro here #}CREATE VIEW u AS SELECT email FROM users;")
    two.ingest()
    two.write("m.sql", macro + "-- a comment\nCREATE VIEW m AS SELECT id FROM users;")
    two.write("u.sql", "{# still no macro here #}CREATE VIEW u AS SELECT email FROM users;")
    two.ingest()
    assert two.extracted == ["m.sql", "u.sql"]
    two.write("m.sql", macro.replace("id", "email") + "CREATE VIEW m AS SELECT id FROM users;")
    two.ingest()
    assert "t.sql" in two.extracted


DBT = {
    "dbt_project.yml": "name: shop\n",
    "models/users.yml": "models: [{name: users_v, description: All of them, columns: [{name: id}]}]",
    "models/users_v.sql": "select id, email from users",
    "models/starred.sql": "select {{ dbt_utils.star(ref('users_v')) }} from {{ ref('users_v') }}",
    "models/twice.sql": "select {{ dbt_utils.star(ref('starred')) }}, 1 as one from {{ ref('starred') }}",
    "models/ring_a.sql": "select {{ dbt_utils.star(ref('ring_b')) }} from {{ ref('ring_b') }}",
    "models/ring_b.sql": "select {{ dbt_utils.star(ref('ring_a')) }}, id from {{ ref('ring_a') }} join a using (id)",
    "models/reads.sql": "select * from {{ ref('twice') }}",
    "models/listed.sql": "{% for node in graph.nodes.values() if 'hot' in node.tags %}select id from {{ node.alias }} {% endfor %}",
}
"""Models, some of whose templates ask for the columns of others."""


@pytest.fixture
def dbt(two: _Two) -> _Two:
    for name, text in DBT.items():
        two.write(name, text)
    two.ingest()
    return two


def test_of_a_dbt_project_the_changed_models_are_read_and_those_that_are_told_other_columns(dbt: _Two):
    dbt.write("models/reads.sql", "-- all of it\nselect * from {{ ref('twice') }}")
    dbt.ingest()
    assert dbt.extracted == ["models/reads.sql"]
    dbt.write("models/users_v.sql", "select id, email, 1 as more from users")
    dbt.ingest()
    told = ["models/starred.sql", "models/twice.sql"]
    assert dbt.extracted == ["models/reads.sql", *told, "models/users_v.sql"]
    dbt.write("models/users_v.sql", "select id, email, 2 as more from users where id > 0")
    dbt.ingest()
    assert dbt.extracted == ["models/users_v.sql"]  # the columns are as they were
    dbt.write("models/new.sql", "select one from {{ ref('reads') }}")
    dbt.ingest()
    assert dbt.extracted == ["models/listed.sql", "models/new.sql"]  # who looks at all nodes sees one more


def test_a_template_that_was_told_other_columns_on_the_way_is_rendered_as_a_full_ingest_does(dbt: _Two):
    """It asks for several relations; what it was told of the first is not asked for again."""
    asked = "{{ dbt_utils.union_relations([ref('users_v'), ref('starred'), ref('later')]) }}"
    dbt.write("models/several.sql", f"{asked} union all select {{{{ dbt_utils.star(ref('twice')) }}}} from x")
    dbt.write("models/later.sql", "select {{ dbt_utils.star(ref('starred')) }}, 1 as n from {{ ref('starred') }}")
    dbt.ingest()
    for text in ("select id, 2 as n from users", "select email from users", "select * from nobody_knows"):
        dbt.write("models/later.sql", text)
        dbt.ingest()
        assert "models/several.sql" in dbt.extracted
        assert "models/starred.sql" not in dbt.extracted
    dbt.write("fill.sql", "insert into users_v select * from b")
    dbt.ingest()


def test_descriptions_and_tags_cost_no_model_unless_it_looks_at_them(dbt: _Two):
    dbt.write(
        "models/users.yml", "models: [{name: users_v, description: Some, config: {tags: [hot]}, columns: [{name: id}]}]"
    )
    commit = dbt.ingest()
    assert dbt.extracted == ["models/listed.sql"]
    assert commit.summary["coverage"]["opaque"] == 0
    dbt.write("models/users.yml", "models: [{name: users_v, columns: [{name: id}, {name: mail}]}]")
    dbt.ingest()
    assert "models/users_v.sql" in dbt.extracted  # which columns there are may settle whose a name is


def test_a_macro_and_a_model_that_asks_no_more_are_read_as_a_full_ingest_reads_them(dbt: _Two):
    dbt.write("macros/m.sql", "{% macro key() %}id{% endmacro %}")
    dbt.ingest()
    dbt.write("models/starred.sql", "select id from {{ ref('users_v') }}")
    dbt.ingest()
    dbt.write("models/ring_a.sql", "select {{ key() }} from {{ ref('ring_b') }}")
    dbt.ingest()
    dbt.ingest()
    (dbt.folder / "models" / "users_v.sql").unlink()
    dbt.ingest()


def test_statements_that_settle_each_other_are_opened_once(two: _Two):
    """Each of two scripts fills what the other fills, and makes a table that the other makes, too."""
    both = (
        "CREATE TABLE scratch AS SELECT {} FROM users;\nINSERT INTO filled SELECT id FROM scratch;\nDROP TABLE scratch;"
    )
    two.write("m.sql", "CREATE VIEW m AS SELECT * FROM users;\n" + both.format("*"))
    two.write("n.sql", "CREATE VIEW n AS SELECT * FROM users;\n" + both.format("*"))
    two.write("early.sql", "DROP TABLE scratch;")
    two.ingest()
    for columns in ("id int, email text, phone text", "id int", "email text, id int"):
        two.write("ddl.sql", f"CREATE TABLE users ({columns});\nCREATE TABLE orders (id int, user_id int);")
        two.ingest()


def test_a_script_without_a_memo_writes_its_fragment_again_only_if_it_changed(two: _Two):
    two.write("altered.sql", "CREATE TABLE l (id int);\nALTER TABLE l ADD COLUMN later text;")
    before = two.ingest()
    two.write("new.sql", "-- of no lineage\n")
    after = two.ingest()
    assert "altered.sql" in two.extracted
    assert _fragments(two.store, before) == _fragments(two.store, after)


def test_a_change_that_says_the_same_is_compared_and_not_encoded(two: _Two, monkeypatch: pytest.MonkeyPatch):
    two.ingest()
    encoded: list[int] = []
    encode = stored_rows.encode_spans
    monkeypatch.setattr(stored_rows, "encode_spans", lambda spans: encoded.append(1) or encode(spans))
    two.write("b.sql", "CREATE VIEW b AS SELECT email, id FROM a; -- a comment behind it")
    two.ingest()
    assert encoded == []
    two.write("b.sql", "-- a comment before it\nCREATE VIEW b AS SELECT email, id FROM a;")
    two.ingest()
    assert encoded == [1]


def _fragments(store: Store, commit: Commit) -> set[str]:
    return {ref.sha256 for ref in store.fragments(commit) if ref.table == "derivations"}


def test_a_renamed_table_has_the_columns_that_it_has_now(two: _Two):
    two.write("moves.sql", "ALTER TABLE users RENAME TO people;")
    two.ingest()
    two.write("ddl.sql", "CREATE TABLE users (id int, phone text);\nCREATE TABLE orders (id int, user_id int);")
    two.ingest()
    assert "moves.sql" in two.extracted


def test_a_script_of_a_memo_that_is_opened_has_trees_within_the_room_too(two: _Two, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(trees, "ROOM", 150)
    two.ingest()
    two.write("b.sql", "CREATE VIEW b AS SELECT id FROM a;")
    two.ingest()
    two.write("ddl.sql", "CREATE TABLE users (id int, phone text);\nCREATE TABLE orders (id int, user_id int);")
    two.ingest()
    assert two.extracted == ["a.sql", "b.sql", "ddl.sql"]


@pytest.mark.parametrize(
    "script",
    [
        "CREATE VIEW v AS SELECT * FROM users; CREATE TEMP TABLE users AS SELECT *, 1 AS k FROM users WHERE id > 1;\n"
        "CREATE TABLE made AS SELECT * FROM users;",
        "CREATE TEMP TABLE users AS SELECT 1 AS k; DROP TABLE users; CREATE TABLE made AS SELECT * FROM users;",
        "CREATE TABLE kid () INHERITS (users); UPDATE users SET email = a.id FROM a; DELETE FROM ONLY users;",
    ],
)
def test_a_script_that_is_opened_knows_its_temporary_tables_and_what_inherits(two: _Two, script: str):
    two.write("script.sql", script)
    two.ingest()
    two.write("ddl.sql", "CREATE TABLE users (id int, phone text);\nCREATE TABLE orders (id int, user_id int);")
    two.ingest()
    assert "script.sql" in two.extracted


@pytest.mark.parametrize(
    ("parent", "child"),
    [
        ("CREATE TABLE p (id int PRIMARY KEY, n int);", "CREATE TABLE c (pid int REFERENCES p ON DELETE CASCADE);"),
        (
            "CREATE TABLE p (id int, n int, PRIMARY KEY (n, id));",
            "CREATE TABLE c (x int, y int, FOREIGN KEY (x, y) REFERENCES p);",
        ),
    ],
)
def test_keys_of_a_table_whose_script_is_not_read_again_are_known(two: _Two, parent: str, child: str):
    two.write("parent.sql", parent)
    two.write("child.sql", child)
    two.ingest()
    two.write("child.sql", child + " -- changed")
    two.ingest()
    assert "parent.sql" not in two.extracted


def test_what_holds_for_all_scripts_is_compared_as_a_whole(two: _Two):
    two.ingest()
    two.write(
        "trigger.sql",
        "CREATE FUNCTION seen() RETURNS trigger AS $$ BEGIN INSERT INTO log SELECT new.email; RETURN new; END $$ "
        "LANGUAGE plpgsql;\nCREATE TRIGGER t AFTER INSERT ON users FOR EACH ROW EXECUTE FUNCTION seen();",
    )
    two.ingest()
    assert len(two.extracted) == 5


@pytest.mark.parametrize("length", [0, 1, 70, 1000])
def test_a_cut_file_of_the_cache_costs_an_ingest_in_full_and_nothing_else(two: _Two, length: int):
    two.ingest()
    (file,) = (cache_root() / sql_memos.FOLDER).iterdir()
    file.write_bytes(file.read_bytes()[:length])
    two.write("b.sql", "CREATE VIEW b AS SELECT id FROM a;")
    two.ingest()
    assert two.extracted == ["a.sql", "b.sql", "c.sql", "ddl.sql"]


_HOSTILE = [
    "null",
    "[]",
    '["", {}, {}, {}, {}]',
    '["", {"a.sql": null}, {}, {}, {}]',
    "[" * 100_000,
    '{"a": 1e999}',
]


@pytest.mark.parametrize("body", _HOSTILE, ids=range(len(_HOSTILE)))
def test_a_file_of_another_shape_is_none(two: _Two, body: str):
    two.ingest()
    _forge(body)
    two.write("b.sql", "CREATE VIEW b AS SELECT id FROM a;")
    two.ingest()


def test_memos_of_another_shape_are_none(two: _Two):
    """Each value of a memo in turn becomes one of another type."""
    two.ingest()
    (file,) = (cache_root() / sql_memos.FOLDER).iterdir()
    sound = file.read_bytes()
    head, *memos = sound.partition(b"\n")[2].decode().split("\n")
    of_a = json.loads(head)[1].index("a.sql")
    for place in range(1, 10):
        for wrong in (None, 7, "text", [[]], {"x": []}):
            forged = json.loads(memos[of_a])
            forged[place] = wrong
            _forge("\n".join([head, *memos[:of_a], json.dumps(forged), *memos[of_a + 1 :]]))
            number = place * 100 + len(json.dumps(wrong))
            two.write("b.sql", f"-- {number} {wrong!r}\nCREATE VIEW b AS SELECT id FROM a;")
            two.ingest()


def _forge(body: str) -> None:
    import hashlib

    (file,) = (cache_root() / sql_memos.FOLDER).iterdir()
    file.write_bytes(hashlib.sha256(body.encode()).hexdigest().encode() + b"\n" + body.encode())


def test_another_store_and_another_branch_have_memos_of_their_own(two: _Two, tmp_path: Path):
    two.ingest()
    other = Store.init(str(tmp_path / "other"))
    first = ingest_sql(other, two.request).commit
    assert difference(other, first, two.store, two.ingest()) == ""
    assert len(list((cache_root() / sql_memos.FOLDER).iterdir())) == 2


def test_a_cache_that_cannot_be_written_is_passed_over(two: _Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    monkeypatch.setenv("GOVTOOL_CACHE", str(blocked))
    two.ingest()
    two.write("b.sql", "CREATE VIEW b AS SELECT id FROM a;")
    two.ingest()
    assert len(two.extracted) == 4


def test_memos_take_a_share_of_the_cache(two: _Two, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GOVTOOL_CACHE_SIZE", "4000")
    two.ingest()
    shutil.copyfile(next((cache_root() / sql_memos.FOLDER).iterdir()), cache_root() / sql_memos.FOLDER / "old")
    two.write("b.sql", "CREATE VIEW b AS SELECT id FROM a;")
    two.ingest()
    assert len(list((cache_root() / sql_memos.FOLDER).iterdir())) == 1


def test_what_one_ingest_left_is_freed_by_the_next_in_the_same_process(monkeypatch: pytest.MonkeyPatch):
    class Node:
        def __init__(self) -> None:
            self.itself = self

    monkeypatch.setattr(collector, "MANY_YOUNG", 100)
    with collector.uncollected():
        nodes = [Node() for _ in range(1000)]
        left = weakref.ref(nodes[0])
        del nodes
    assert left() is not None
    with collector.uncollected():
        assert left() is None
