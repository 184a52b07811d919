"""Places of the expressions that make edges: the text that stands there."""

from __future__ import annotations

import pytest

from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.model import EdgeKind
from govtool.model.places import EdgeEnds, Place, decoded, place_of, ranks
from govtool.names import dataset_id

READS = (EdgeKind.READ, EdgeKind.OPAQUE, EdgeKind.UNION_ALL)


def placed(sql: str, dialect: str = "postgres", file: str = "q.sql") -> list[tuple[str, str, Place | None]]:
    """Source, target and place of every edge that an expression makes."""
    found = extract([Script(file, sql)], Options(dialect=dialect, evidence=True))
    result: list[tuple[str, str, Place | None]] = []
    for one in found.derivations:
        names = ranks(column.path for column in one.columns)
        for edge in one.edges:
            if edge.kind not in READS:
                ends = EdgeEnds(edge.source, edge.target_path, edge.kind, edge.arm)
                place = place_of(one.statement.places, one.statement.line, names, ends)
                result.append((edge.source.text, f"{one.target}.{edge.target_path}", place))
    return result


def texts(sql: str, dialect: str = "postgres") -> dict[tuple[str, str], str | None]:
    """The text of the place of each edge; None where there is none."""
    lines = sql.split("\n")
    found: dict[tuple[str, str], str | None] = {}
    for source, target, place in placed(sql, dialect):
        text = None
        if place is not None and place.column is not None and place.end_column is not None:
            part = lines[place.line - 1 : place.end_line]
            part[-1] = part[-1][: place.end_column]
            part[0] = part[0][place.column - 1 :]
            text = "\n".join(part)
        found[source, target] = text
    return found


def test_a_column_is_followed_to_the_cte_that_computes_it() -> None:
    sql = """-- the import CTEs of dbt
CREATE VIEW v AS
WITH src AS (SELECT id, lower(email) AS mail, cast(n AS int) FROM t),
final AS (
  SELECT src.*, case
    when u.k > 1 then u.k end AS k FROM src JOIN u ON u.id = src.id AND u.z = 1)
SELECT * FROM final WHERE mail IN ('a', 'b')"""
    found = texts(sql)
    assert found["t.email", "v.mail"] == "lower(email) AS mail"
    assert found["t.id", "v.id"] == "id"
    assert found["u.k", "v.k"] == "case\n    when u.k > 1 then u.k end AS k"
    assert found["u.id", "v.*"] == found["t.id", "v.*"] == "u.id = src.id"
    assert found["u.z", "v.*"] == "u.z = 1"
    assert found["t.email", "v.*"] == "mail IN ('a', 'b')"


def test_arms_of_a_union_have_places_of_their_own() -> None:
    found = texts("insert into d (x) select a + 1 from s union all select coalesce(b, 0)\nfrom t")
    assert found["s.a", "d.x"] == "a + 1"
    assert found["t.b", "d.x"] == "coalesce(b, 0)"


def test_assignments_and_conditions_of_update_and_merge() -> None:
    update = texts("update d set x = s.a, y = upper(s.b) from s where s.k = d.k and s.z > 3")
    assert update["s.b", "d.y"] == "y = upper(s.b)"
    assert update["s.z", "d.x"] == "s.z > 3"
    merge = texts(
        "merge into d using s on d.k = s.k when matched then update set x = s.a"
        " when not matched then insert (k, x) values (s.k, abs(s.q))",
        "snowflake",
    )
    assert (merge["s.a", "d.x"], merge["s.q", "d.x"]) == ("x = s.a", "abs(s.q)")
    assert merge["d.k", "d.*"] == "d.k = s.k"


def test_columns_of_one_name_in_two_tables() -> None:
    found = texts("select 1 as one from a join b on a.i = b.i where a.s = 1 and lower(b.s) = 'x'")
    (target,) = {target for _, target in found}
    assert found["a.s", target] == "a.s = 1"
    assert found["b.s", target] == "lower(b.s) = 'x'"


def test_a_statement_behind_others_and_in_a_body() -> None:
    sql = "create table s (c int);\ncreate function f() returns void as $$\nbegin\n  insert into d (x)\n  select c * 2"
    found = texts(sql + " from s where c > 1;\nend $$ language plpgsql;")
    assert found["s.c", "d.x"] == "c * 2"
    assert found["s.c", "d.*"] == "c > 1"


def test_a_template_gives_its_own_lines() -> None:
    sql = """{{ config(materialized='table') }}
{% set cols = ['p'] %}
select
  {% for c in cols %}
  sum({{ c }}) as total_{{ c }},
  {% endfor %}
  lower(email) as email
from {{ ref('orders') }} where status = '{{ var("x", "y") }}' and kind <> 3 group by 2"""
    found = {(source, target.rpartition(".")[2]): place for source, target, place in placed(sql)}
    assert found["orders.email", "email"] == Place(7, 3, 7, 23)
    assert found["orders.p", "total_p"] == Place(5, None, 5, None)  # a loop made it
    assert found["orders.kind", "*"] is not None
    assert found["orders.kind", "*"].column == sql.split("\n")[7].index("kind") + 1


@pytest.mark.parametrize("places", ["x", "1:2+3|1:1+1 a@b", "0:1+q", "|= a", "1:2>3"])
def test_a_text_that_cannot_be_read_gives_no_place(places: str) -> None:
    from govtool.model import ColumnRef

    assert place_of(places, 1, {"a": 0}, EdgeEnds(ColumnRef("t", "a"), "a", EdgeKind.IDENTITY)) is None


def test_places_are_short() -> None:
    (one,) = extract([Script("q.sql", "select a, b\nfrom t")], Options(dialect="postgres", evidence=True)).derivations
    assert one.statement.places == "0:8+1,0:11+1"
    assert decoded("0:8+1,0:11+1") is not None


def test_logs_and_answers_without_evidence_keep_none() -> None:
    (one,) = extract([Script("q.sql", "select a from t")], Options(dialect="postgres", evidence=False)).derivations
    assert one.statement.places is None


def test_a_column_of_a_union_inside_has_a_place_in_each_of_its_arms() -> None:
    sql = (
        "create view v as with q as (select a + 1 as x from s union all select b + 2 from t) select x from q\n"
        "union all select x from (select c + 3 as x from u union select d + 4 from w) z"
    )
    found = texts(sql)
    assert {source: text for (source, target), text in found.items() if target == "v.x"} == {
        "s.a": "a + 1 as x",
        "t.b": "b + 2",
        "u.c": "c + 3 as x",
        "w.d": "d + 4",
    }


def test_where_the_arm_is_not_known_the_place_is_that_of_the_item_outside() -> None:
    recursive = "with recursive q as (select a + 1 as x from s union all select x * 2 from q) select x from q"
    assert texts(f"create view v as {recursive}")["s.a", "v.x"] == "x"
    joined = "(select a + 1 as x from s union all select b + 2 from t) q join u on true"
    found = texts(f"create view v as select x from (select q.x from {joined} union all select c from w) z")
    assert found["s.a", "v.x"] == found["t.b", "v.x"] == "q.x"


@pytest.mark.parametrize("namespace", ["prod", "postgres://db:5432", "s3://bucket", "hive:"])
def test_columns_of_one_name_have_places_of_their_own_in_a_namespace(namespace: str) -> None:
    sql = "CREATE VIEW v AS\nSELECT o.x FROM o\nJOIN p ON o.id = p.o\nJOIN q ON q.id = p.q\nJOIN o_q ON o_q.id = p.r"
    (found,) = extract([Script("q.sql", sql)], Options(dialect="postgres", namespace=namespace)).derivations
    lines = {
        edge.source.text: place.line
        for edge in found.edges
        if edge.kind is EdgeKind.JOIN
        for place in [place_of(found.statement.places, 1, {"x": 0}, EdgeEnds(edge.source, edge.target_path, edge.kind))]
        if place is not None
    }
    names = {name: f"{dataset_id(name, namespace)}.id" for name in ("o", "q", "o_q")}
    assert [lines[names["o"]], lines[names["q"]], lines[names["o_q"]]] == [3, 4, 5]


def test_tabs_and_letters_that_get_longer_in_lower_case_do_not_move_places() -> None:
    found = texts('create view v as\n\tselect\ta,\tcase\twhen "İ" > 1 then b end c from s')
    assert (found["s.a", "v.a"], found["s.b", "v.c"]) == ("a", 'case\twhen "İ" > 1 then b end c')


def test_what_a_part_of_with_writes_has_its_places_there() -> None:
    part = "merge into d using s on s.id = d.id when matched then update set v = s.w + 1 returning d.v"
    found = texts(f"with m as ({part}) insert into log (n) select v from m")
    assert (found["s.w", "d.v"], found["d.v", "log.n"]) == ("v = s.w + 1", "v")


def test_a_line_of_the_template_is_that_of_the_text_behind_a_tag_that_strips_whitespace() -> None:
    sql = """select
  {% for c in ['a', 'b'] -%}
  t.{{ c }},
  {% endfor -%}
  t.z
from t"""
    places = {source: place for source, _, place in placed(sql) if place is not None}
    assert {source: place.line for source, place in places.items()} == {"t.a": 3, "t.b": 3, "t.z": 5}
