"""Erasure plans: keys and what is joined on them, what holds a subject's data, in which order, and what may stay."""

from __future__ import annotations

import pytest
from depth import examples
from hypothesis import given, settings
from policy_samples import TODAY, policy, random_graph, sql

from govtool.app.erasure.columns import parse_subject
from govtool.app.versions.index import index_of
from govtool.model import EdgeKind
from govtool.policy.classes.governed import govern
from govtool.policy.erasure.column_plan import erasure_plan
from govtool.policy.files.policy_set import PolicySet
from govtool.query.selection.select import select

SHOP = """
CREATE TABLE crm.users (id int, email text, country text);
CREATE TABLE shop.orders (id int, user_id int, status text, amount numeric);
CREATE TABLE geo.countries (code text, name text);
CREATE VIEW stg.users AS SELECT id, lower(email) AS email, country FROM crm.users;
CREATE TABLE mart.sales AS
  SELECT u.id AS customer, o.amount, c.name FROM stg.users u
  JOIN shop.orders o ON o.user_id = u.id JOIN geo.countries c ON c.code = u.country WHERE o.status = 'x';
INSERT INTO mart.history (customer, amount) SELECT customer, amount FROM mart.sales;
INSERT INTO mart.mail SELECT email AS m FROM stg.users;
CREATE TABLE mart.daily AS
  SELECT name, count(DISTINCT customer) AS n FROM mart.sales GROUP BY name HAVING count(DISTINCT customer) >= 10;
CREATE TABLE mart.n AS SELECT count(*) AS n FROM crm.users;
CREATE TABLE ml.hash AS SELECT sha2(email, 256) AS h FROM stg.users;
"""
POLICY = policy("""
classes: {personal: {}, personal.contact: {}, pseudonymous: {}}
classify:
  - {class: personal.contact, columns: ["crm.users.email"]}
  - {class: personal, columns: ["crm.users.*", "shop.orders.*"]}
declassify:
  - {name: hashed, kind: mask, functions: ["@hash"], from: [personal], to: pseudonymous}
  - {name: k10, kind: aggregate, functions: [count], from: [personal], to: none, min_group_size: 10}
metadata:
  - {datasets: [mart.mail], retention: 7d}
  - {datasets: [crm.users], retention: 400d, owner: crm}
rules:
  - {id: RET, title: t, require: {metadata: {class: personal, keys: [retention], retention_max: 365d}}}
""")
NONE = PolicySet(())


def planned(index, column="crm.users.id", policies=NONE, **options):
    node = select(index, column).node
    return erasure_plan(govern(index, policies, TODAY), [node], TODAY, **options)


def actions(plan):
    return {task.dataset: task.action for task in plan.tasks}


def test_a_shop_from_the_key_to_what_may_stay():
    plan = planned(sql(SHOP), policies=POLICY)
    assert actions(plan) == {
        "crm.users": "delete",
        "shop.orders": "delete",
        "stg.users": "follows",
        "mart.mail": "expires",
        "mart.sales": "rebuild",
        "ml.hash": "rebuild",
        "mart.history": "delete",
        "mart.daily": "stays",
        "mart.n": "stays",
    }
    tasks = {task.dataset: task for task in plan.tasks}
    assert tasks["mart.history"].keys == ("customer",)
    assert tasks["shop.orders"].why.startswith("joined on stg.users.id in t.sql:")
    assert tasks["ml.hash"].classes == ("pseudonymous",)
    assert [h.passed for h in tasks["ml.hash"].columns] == [("hashed",)]
    assert tasks["mart.daily"].why == "declassified: k10"
    assert {d for d, t in tasks.items() if t.lacks} == {
        "crm.users",
        "shop.orders",
        "stg.users",
        "mart.sales",
        "mart.history",
    }
    assert tasks["crm.users"].owner == "crm"
    # What a dataset is made of comes before it.
    order = {d: t.order for d, t in tasks.items()}
    assert order["crm.users"] < order["stg.users"] < order["mart.sales"] < order["mart.history"]
    assert order["mart.n"] == 0


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("ON COMMIT DROP", {"crm.users": "delete", "web.visits": "delete"}),
        ("KEEP FOR EVER", {"crm.users": "delete", "web.visits": "unknown"}),
    ],
)
def test_joins_of_a_statement_with_a_clause_of_its_own(clause, expected, capfd):
    index = sql(f"""
        CREATE TABLE crm.users (id int, region int); CREATE TABLE web.visits (user_id int, n int, region int);
        CREATE TEMP TABLE recent {clause} AS
          SELECT v.n FROM crm.users u JOIN web.visits v ON v.user_id = u.id AND v.region = u.region;
    """)
    assert actions(planned(index)) == expected
    assert capfd.readouterr().err == ""


def test_without_policies_nothing_is_declassified_and_nothing_expires():
    found = actions(planned(sql(SHOP)))
    assert (found["mart.daily"], found["mart.mail"]) == ("rebuild", "search")


def test_a_retention_that_does_not_end_in_time_is_no_help():
    assert actions(planned(sql(SHOP), policies=POLICY, within="3d"))["mart.mail"] == "search"


@pytest.mark.parametrize(
    ("text", "keys", "perhaps"),
    [
        ("SELECT o.x FROM crm.users u JOIN o ON o.uid = u.id", {"crm.users.id", "o.uid"}, set()),
        ("SELECT o.x FROM crm.users u, o WHERE o.uid = u.id AND o.x > 3", {"crm.users.id", "o.uid"}, set()),
        ("SELECT o.x FROM crm.users u JOIN o ON o.uid = u.id AND o.kind = u.kind", {"crm.users.id", "o.uid"}, set()),
        ("SELECT o.x, u.id FROM crm.users u JOIN o ON o.day = u.day", {"crm.users.id"}, set()),
        ("SELECT o.x FROM crm.users u JOIN o USING (id)", {"crm.users.id", "o.id"}, set()),
        (
            "SELECT o.x FROM crm.users u JOIN o ON o.uid = u.id JOIN p ON p.oid = o.oid",
            {"crm.users.id", "o.uid"},
            set(),
        ),
        (
            "SELECT o.x FROM crm.users u JOIN o ON o.uid = u.id JOIN p ON p.uid = o.uid",
            {"crm.users.id", "o.uid", "p.uid"},
            set(),
        ),
        (
            "SELECT o.x FROM crm.users u JOIN o ON abs(o.uid - u.id) + length(o.x) = 0",
            {"crm.users.id"},
            set(),
        ),
        ("SELECT o.x FROM crm.users u JOIN o USING (id) JOIN p USING (id)", {"crm.users.id"}, {"o", "p"}),
    ],
)
def test_what_is_joined_on_the_key(text, keys, perhaps):
    schema = {
        "crm.users": {"id": "int", "kind": "int", "day": "date"},
        "o": {"id": "int", "uid": "int", "oid": "int", "kind": "int", "day": "date", "x": "int"},
        "p": {"id": "int", "uid": "int", "oid": "int"},
    }
    plan = planned(sql(f"CREATE TABLE made AS {text}", schema))
    assert {column for column, _ in plan.keys if not column.startswith("made.")} == keys
    assert {t.dataset for t in plan.tasks if t.action == "unknown" and t.dataset != "made"} == perhaps


def test_a_key_that_has_one_source_leads_to_it_and_one_of_several_is_unknown():
    one = sql("CREATE TABLE raw.u (id int, x int); CREATE TABLE crm.users AS SELECT id FROM raw.u;")
    assert actions(planned(one)) == {"raw.u": "delete", "crm.users": "rebuild"}
    several = sql(
        "CREATE TABLE a.u (id int); CREATE TABLE b.u (id int);"
        "CREATE TABLE crm.users AS SELECT id FROM a.u UNION ALL SELECT id FROM b.u;"
    )
    assert actions(planned(several)) == {"crm.users": "rebuild", "a.u": "unknown", "b.u": "unknown"}


def test_what_a_union_puts_beside_a_key_may_be_one() -> None:
    both = "create view v as select id from crm.users union all select person from old.users union all select 0 from c"
    tasks = planned(sql(f"create table crm.users (id int); create table c (d int); {both}")).tasks
    found = {task.dataset: (task.action, task.why) for task in tasks}
    assert found["old.users"] == ("unknown", "old.users.person is a source of v.id, as a key is")
    assert "c" not in found


def test_an_opaque_step_is_unknown_and_says_so():
    index = sql(
        "CREATE TABLE crm.users (id int, x text); CREATE TABLE m.f AS SELECT nested.* FROM crm.users u, f(u.x) nested"
    )
    task = next(t for t in planned(index).tasks if t.dataset == "m.f")
    assert task.action in ("unknown", "rebuild")
    assert task.steps


def test_a_circle_shares_a_place():
    index = sql(
        "CREATE TABLE crm.users (id int); INSERT INTO a SELECT id FROM crm.users; INSERT INTO a SELECT id FROM b;"
        "INSERT INTO b SELECT id FROM a; INSERT INTO c SELECT id FROM b;"
    )
    order = {t.dataset: t.order for t in planned(index).tasks}
    assert order == {"crm.users": 1, "a": 2, "b": 2, "c": 3}


@settings(deadline=None, max_examples=examples(60))
@given(random_graph())
def test_nothing_that_copies_a_planned_value_is_left_out(derivations):
    index = index_of(derivations)
    subject = next((n for d in index.datasets() for n in index.columns(d) if not index.is_unknown(n)), None)
    if subject is None:
        return
    plan = erasure_plan(govern(index, NONE, TODAY), [subject], TODAY)
    held = {h.column for t in plan.tasks for h in t.columns if h.mode == "value" and t.action != "unknown"}
    assert {index.name(n) for n in index.columns(index.node_dataset[subject])} <= held
    for edge in range(index.edge_count):
        target = index.edge_target[edge]
        if index.kind(edge) is EdgeKind.IDENTITY and index.name(index.edge_source[edge]) in held:
            assert index.name(target) in held or index.is_elided(index.node_dataset[target])
    orders = [t.order for t in plan.tasks if t.action not in ("stays", "unknown")]
    assert orders == sorted(orders)
    assert 0 not in orders


@pytest.mark.parametrize(
    ("text", "column", "value"),
    [
        ("a.b=42", "a.b", "42"),
        ("a.b", "a.b", None),
        ("a.b=x=y", "a.b", "x=y"),
        ('a."c=d"=1', 'a."c=d"', "1"),
        ("a.b=", "a.b", ""),
    ],
)
def test_subjects_as_written(text, column, value):
    requested = parse_subject(text)
    assert requested == (column, value)
    assert value in (None, "") or value not in repr(requested)


@pytest.mark.parametrize(
    ("statement", "key"),
    [
        ("UPDATE crm.profile SET mail = u.email FROM crm.users u WHERE u.id = crm.profile.uid", ("uid",)),
        (
            "MERGE INTO crm.profile p USING crm.users u ON u.id = p.uid WHEN MATCHED THEN UPDATE SET mail = u.email",
            ("uid",),
        ),
        ("UPDATE crm.profile SET mail = u.email FROM crm.users u WHERE u.id > crm.profile.uid", ()),
    ],
)
def test_the_key_of_an_update_is_what_its_condition_compares(statement, key):
    """``search`` where a condition compares no two columns: the statement tells no key."""
    tables = "CREATE TABLE crm.users (id int, email text); CREATE TABLE crm.profile (uid int, mail text);"
    found = {task.dataset: task for task in planned(sql(tables + statement)).tasks}["crm.profile"]
    assert (found.action, tuple(found.keys)) == ("delete" if key else "search", key)
