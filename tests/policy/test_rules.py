"""Rules on small warehouses. Sinks have names that no pattern matches: only lineage can tell."""

from __future__ import annotations

from datetime import date

import pytest
from policy_samples import checked, policy, reported, sql

from govtool.app.versions.index import index_of
from govtool.model import ColumnRef, Counted, Derivation, Edge, EdgeKind, OutputColumn, Statement
from govtool.policy.classes.dataset_facts import ToolFact
from govtool.policy.rules.finding import RuleVerdict
from govtool.policy.rules.waivers import inline_waivers, waived
from govtool.render.findings import summary, way

CLASSES = """
classes:
  personal: {}
  personal.contact: {}
  personal.contact.email: {}
  personal.id: {entropy: low}
  health: {}
  pseudonymous: {}
classify:
  - {class: personal.contact.email, columns: ["**.email"]}
  - {class: personal.id, columns: ["**.ssn"]}
  - {class: health, columns: ["**.diagnosis"]}
declassify:
  - {name: keyed-hash, kind: mask, functions: ["@keyed"], from: [personal], to: pseudonymous}
  - {name: hash, kind: mask, functions: ["@hash"], from: [personal], to: pseudonymous}
  - {name: k-aggregate, kind: aggregate, functions: [count, sum], from: [personal], to: none, min_group_size: 10}
zones:
  marketing: {datasets: ["mm.**"], region: us, purposes: [ads], optional: true}
  clinic: {datasets: ["clinic.**"], region: eu, purposes: [care], owner: dr, retention: 2y, optional: true}
rules:
"""
FLOW = """
  - id: F
    title: no contact in marketing
    deny: {flow: {class: personal, to: {zone: marketing}%s}}
    unless: [{declassified: [keyed-hash, hash]}]
"""
USERS = {"crm.users": {"id": "int", "email": "text", "ssn": "text", "age": "int"}}


def flow(select: str, extra: str = "", via: str = "", schema=USERS):
    rules = policy(CLASSES + FLOW % (f", via: {via}" if via else "") + extra)
    return checked(sql(f"create table mm.t as {select}", schema), rules)


@pytest.mark.parametrize(
    ("select", "verdict"),
    [
        ("select email as c from crm.users", "violated"),
        ("select lower(email) as c from crm.users", "violated"),
        ("select substr(ssn, 1, 3) as c from crm.users", "violated"),
        ("select max(ssn) as c from crm.users having count(*) >= 100", "violated"),
        ("select string_agg(email, ',') as c from crm.users having count(*) > 100", "violated"),
        ("select any_value(email) as c from crm.users having count(*) > 100", "violated"),
        ("select hmac(email, 'k', 'sha256') as c from crm.users", None),
        ("select substr(hmac(lower(email), 'k', 'sha256'), 1, 8) as c from crm.users", None),
        ("select sha256(email) as c from crm.users", None),
        ("select sha256(ssn) as c from crm.users", "violated"),
        ("select email || sha256(email) as c from crm.users", "violated"),
        ("select case when age > 3 then sha256(email) else email end as c from crm.users", "violated"),
        ("select count(email) as c from crm.users group by age having count(*) >= 10", None),
        ("select count(lower(email)) as c from crm.users group by age having count(*) > 9", None),
        ("select count(email) as c from crm.users group by age having count(*) >= 9", "violated"),
        ("select count(email) as c from crm.users group by age", "violated"),
        ("select id as c from crm.users where email = 'x'", None),
        ("select 1 as c from crm.users", None),
    ],
)
def test_what_declassifies_and_what_does_not(select, verdict):
    result = flow(select)
    assert reported(result) == ([("F", "mm.t.c", verdict)] if verdict else [])


def test_a_filter_is_an_influence_on_rows():
    select = "select id as c from crm.users where email = 'x'"
    assert reported(flow(select, via="any")) == [("F", "mm.t.*", "violated")]
    assert reported(flow(select, via="indirect")) == [("F", "mm.t.*", "violated")]
    assert reported(flow("select email as c from crm.users", via="indirect")) == []


def test_a_condition_is_an_influence_on_its_column():
    select = "select case when email like 'a%' then 1 else 0 end as c from crm.users"
    assert reported(flow(select)) == []
    assert reported(flow(select, via="any")) == [("F", "mm.t.c", "violated")]


@pytest.mark.parametrize("value", ["sha256(ssn)", "hex(sha256(upper(ssn)))", "concat(sha256(ssn), '-', id)"])
def test_a_hash_that_can_be_guessed_is_named_and_no_other_is_proposed(value):
    (finding,) = flow(f"select {value} as c from crm.users").findings
    assert finding.why == "sha256() has no key, and the values of personal.id are few enough to try"
    assert finding.fix == "keyed-hash (@keyed) or k-aggregate (count, sum, groups of 10 or more)"


def test_a_hash_that_nothing_accepts_has_no_key():
    without = "".join(line for line in CLASSES.splitlines(keepends=True) if "@hash" not in line)
    rules = policy(without + (FLOW % "").replace(", hash", ""))
    (finding,) = checked(
        sql("create table mm.t as select md5(lower(email)) as c from crm.users", USERS), rules
    ).findings
    assert finding.why == "lower() keeps the value; md5() is a hash without a key"


def test_the_path_goes_through_every_table_and_names_the_statement():
    rules = policy(CLASSES + FLOW % "")
    index = sql(
        "create view s.u as select email as a from crm.users;\ncreate view s.v as select upper(a) as b from s.u;\n"
        "create table mm.t as select b as c from s.v",
        USERS,
    )
    (finding,) = checked(index, rules).findings
    assert finding.path == ("crm.users.email", "s.u.a", "s.v.b", "mm.t.c")
    assert finding.evidence.place == "t.sql:3"
    assert "upper() keeps the value" in finding.why
    assert finding.classes == ("personal.contact.email",)
    for cut in range(3):
        texts = ["select email as a from crm.users", "select upper(a) as b from s.u", "select b as c from s.v"]
        texts[cut] = texts[cut].replace(["email", "upper(a)", "b"][cut] + " as", "'' as")
        views = [f"create view {n} as {t};" for n, t in zip(["s.u", "s.v", "mm.t"], texts, strict=True)]
        assert reported(checked(sql("\n".join(views), USERS), rules)) == []


def test_sources_are_first_ones_and_a_circle_has_one():
    rules = policy(CLASSES + FLOW % "")
    index = sql(
        "create view s.u as select email from crm.users; create table mm.t as select email as c from s.u", USERS
    )
    assert [f.source for f in checked(index, rules).findings] == ["crm.users.email"]
    circle = sql(
        "insert into a.x (email) select email from a.y; insert into a.y (email) select email from a.x;"
        "create table mm.t as select email as c from a.y",
        {"a.x": ["email"], "a.y": ["email"]},
    )
    assert [f.source for f in checked(circle, rules).findings] == ["a.x.email"]


def test_an_opaque_step_is_unknown_and_an_opaque_rule_denies_it():
    made = Derivation(
        "mm.t",
        "table",
        "replace",
        Statement("f", "create_table_as", "spark", "job.py"),
        (OutputColumn("c"), OutputColumn("d")),
        edges=(Edge(ColumnRef("crm.users", "email"), "c", EdgeKind.OPAQUE, reason="python-udf: embed"),),
    )
    rules = policy(
        CLASSES
        + FLOW % ""
        + "  - {id: O, title: nothing opaque, deny: {opaque: {class: personal, to: {zone: marketing}}}}\n"
    )
    result = checked(index_of([made]), rules)
    assert reported(result) == [("O", "mm.t.c", "violated"), ("F", "mm.t.c", "unknown")]
    assert "python-udf: embed" in result.findings[1].why


ENTITY = """
  - {id: X, title: t, deny: {flow: {class: health, to: {zone: marketing}}}, unless: [{declassified: [people]}]}
"""


@pytest.mark.parametrize(
    ("having", "found"),
    [
        ("count(distinct u.id) >= 10", 0),
        ("10 <= count(distinct u.id)", 0),
        ("count(distinct u.id) > 8", 1),
        ("count(*) >= 10", 1),
        ("count(u.id) >= 10", 1),
        ("count(distinct v.visit) >= 10", 1),
        ("count(distinct u.id) >= 10 or 1 = 1", 1),
        ("count(distinct u.id) >= 10 and count(*) >= 50", 0),
        ("count(distinct u.id) >= 5 and count(*) >= 50", 1),
        ("count(distinct u.id + 1) >= 10", 1),
    ],
)
def test_k_counts_people_where_an_entity_is_named(having, found):
    text = CLASSES.replace(
        "zones:",
        "  - {name: people, kind: aggregate, functions: [count], from: [health], to: none, min_group_size: 10,"
        " entity: [crm.users.id]}\nzones:",
    )
    index = sql(
        "create view s.u as select id from crm.users;"
        "create table mm.t as select v.ward, count(v.diagnosis) as c from s.u u join h.v v on v.uid = u.id "
        f"group by v.ward having {having}",
        {**USERS, "h.v": ["uid", "visit", "ward", "diagnosis"]},
    )
    assert len(reported(checked(index, policy(text + ENTITY)))) == found


@pytest.mark.parametrize(
    ("having", "why"),
    [
        ("count(*) >= 10", "its HAVING counts rows, not crm.users.id"),
        ("count(v.uid) >= 10", "its HAVING counts rows with h.v.uid, not crm.users.id"),
        ("count(distinct v.visit) >= 10", "its HAVING counts distinct h.v.visit, not crm.users.id"),
        ("count(distinct abs(u.id)) >= 10", "its HAVING counts distinct what is no plain column, not crm.users.id"),
        ("count(distinct u.id) >= 9", "its HAVING counts distinct crm.users.id, only 9 of 10"),
    ],
)
def test_a_finding_says_what_was_counted_instead(having, why):
    text = CLASSES.replace(
        "zones:",
        "  - {name: people, kind: aggregate, functions: [count], from: [health], to: none, min_group_size: 10,"
        " entity: [crm.users.id]}\nzones:",
    )
    index = sql(
        "create table mm.t as select v.ward, count(v.diagnosis) as c from crm.users u join h.v v on v.uid = u.id "
        f"group by v.ward having {having}",
        {**USERS, "h.v": ["uid", "visit", "ward", "diagnosis"]},
    )
    (finding,) = (f for f in checked(index, policy(text + ENTITY)).findings if f.verdict.label == "violated")
    assert why in finding.why


REGION = """
  - {id: R, title: stays in the EU, deny: {flow: {class: health, from: {region: eu}, to: {region: "!eu"}}}}
"""


def test_a_dataset_without_a_region_is_unknown_never_held():
    rules = policy(CLASSES + REGION)
    index = sql(
        "create table mm.t as select diagnosis as c from clinic.p; create table x.t as select diagnosis as c from clinic.p",
        {"clinic.p": ["diagnosis"]},
    )
    assert reported(checked(index, rules)) == [("R", "mm.t.c", "violated"), ("R", "x.t.c", "unknown")]
    elsewhere = sql("create table mm.t as select diagnosis as c from lab.p", {"lab.p": ["diagnosis"]})
    assert ("R", "mm.t.c", "unknown") in reported(checked(elsewhere, rules))
    at_home = sql("create table clinic.t as select diagnosis as c from clinic.p", {"clinic.p": ["diagnosis"]})
    assert reported(checked(at_home, rules)) == []


@pytest.mark.parametrize(
    ("rule", "fact"),
    [
        (REGION, "a region"),
        ("\n  - {id: R, title: care, require: {purpose: {class: health, any_of: [care]}}}\n", "purposes"),
    ],
)
def test_what_no_dataset_states_is_one_unknown_finding_for_all_of_them(rule, fact):
    rules = policy(CLASSES + rule)
    index = sql("create table x.t as select diagnosis as c from lab.p", {"lab.p": ["diagnosis"]})
    (finding,) = checked(index, rules).findings
    assert (finding.verdict.label, finding.column, finding.classes) == ("unknown", "any dataset", ("health",))
    assert finding.why == f"no dataset is in a zone with {fact}: not known of 2 columns (2 datasets)"
    healthy = sql("create table x.t as select bed as c from lab.p", {"lab.p": ["bed"]})
    assert reported(checked(healthy, rules)) == []


JOIN = """
  - {id: J, title: never joined, deny: {join: {classes: [health, personal.contact], in: "**"}}}
"""
TWO = {"h.v": ["uid", "diagnosis"], "crm.users": ["id", "email"]}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("create table w.t as select v.diagnosis a, u.email b from h.v v join crm.users u on u.id = v.uid", True),
        ("create table w.t as select v.diagnosis a from h.v v join crm.users u on u.email = v.uid", True),
        (
            "create table w.t as select diagnosis a from h.v where uid in (select id from crm.users where email > '')",
            True,
        ),
        ("create table w.t as select diagnosis a from h.v union all select email from crm.users", False),
        ("create table w.t as select diagnosis a from h.v union select email from crm.users", False),
        ("create table w.t as select v.diagnosis a from h.v v join crm.users u on u.id = v.uid", False),
        ("insert into w.t (a) select diagnosis from h.v; insert into w.t (a) select email from crm.users", False),
        (
            "create view s.a as select uid, diagnosis d from h.v; create view s.b as select id, email e from crm.users;"
            "create table w.t as select d, e from s.a join s.b on id = uid",
            True,
        ),
        (
            "create table crm.users (id int, email text, note text); update crm.users u set note = v.diagnosis from h.v v where v.uid = u.id",
            True,
        ),
        (
            "create temp table z as select v.diagnosis a, u.email b from h.v v join crm.users u on u.id = v.uid;"
            "create table w.t as select a from z",
            True,
        ),
    ],
)
def test_classes_that_come_together(text, found):
    result = checked(sql(text, TWO), policy(CLASSES + JOIN))
    sinks = {"crm.users.*"} if "update crm" in text else {"w.t.*"}
    assert {f.column for f in result.findings} == (sinks if found else set())


def test_purpose_metadata_and_their_unknowns():
    rules = policy(
        CLASSES
        + "  - {id: P, title: only care, require: {purpose: {class: health, any_of: [care]}}}\n"
        + "  - {id: M, title: owned, require: {metadata: {class: health, keys: [owner, retention], retention_max: 400d}}}\n"
    )
    index = sql(
        "create table mm.t as select diagnosis as c from clinic.p; create table x.t as select diagnosis as c from clinic.p",
        {"clinic.p": ["diagnosis"]},
    )
    result = checked(index, rules)
    assert reported(result) == [
        ("M", "clinic.p", "violated"),
        ("M", "mm.t", "violated"),
        ("M", "x.t", "violated"),
        ("P", "mm.t.c", "violated"),
        ("P", "x.t.c", "unknown"),
    ]
    assert [f.why for f in result.findings[:2]] == [
        "a retention of 2y, more than 400d",
        "no owner and no retention",
    ]


def test_a_change_is_judged_against_a_base_only():
    rules = policy(
        CLASSES + "  - {id: C, title: contract, deny: {change: {columns: ['mm.**'], kinds: [drop, retype]}}}\n"
    )
    before = sql("create table mm.t (a int, b text)")
    after = sql("create table mm.t (a bigint)")
    assert checked(after, rules).skipped == ("C",)
    assert reported(checked(after, rules, base=before)) == [("C", "mm.t.a", "violated"), ("C", "mm.t.b", "violated")]
    assert reported(checked(before, rules, base=before)) == []


def test_only_what_the_change_brings():
    rules = policy(CLASSES + FLOW % "")
    before = sql("create table mm.t as select email as c from crm.users", USERS)
    after = sql(
        "create table mm.t as select email as c from crm.users; create table mm.u as select email as d from crm.users",
        USERS,
    )
    result = checked(after, rules, base=before)
    assert reported(result) == [("F", "mm.u.d", "violated")]
    assert result.known == 1


WAIVER = """
waivers:
  - {rule: F, columns: ["mm.t.c"], reason: asked, approved_by: dpo, expires: %s}
"""


@pytest.mark.parametrize(
    ("expires", "verdict", "remarks"),
    [
        ("2027-06-01", "waived", []),
        ("2026-12-01", "waived", ["waiver-expires"]),
        ("2026-11-21", "waived", ["waiver-expires"]),
        ("2026-11-20", "violated", ["waiver-expired"]),
    ],
)
def test_a_waiver_ends(expires, verdict, remarks):
    rules = policy(CLASSES + FLOW % "" + WAIVER % expires)
    index = sql("create table mm.t as select email as c, email as d from crm.users", USERS)
    result = checked(index, rules)
    assert sorted(reported(result)) == [("F", "mm.t.c", verdict), ("F", "mm.t.d", "violated")]
    assert [r.code for r in result.remarks] == remarks


@pytest.mark.parametrize(
    ("rule", "said"),
    [("FLOWW1", "names no rule of these policies: FLOWW1; did you mean FLOW1"), ("NOPE", "policies: NOPE")],
)
def test_a_waiver_in_sql_of_a_rule_that_does_not_exist(rule, said):
    rules = policy(CLASSES + FLOW.replace("id: F", "id: FLOW1") % "")
    stated = inline_waivers([ToolFact("mm.t", None, "waiver", f"allow {rule} until 2027-06-01 because x", "a.sql:1")])
    _, remarks = waived([], rules, date(2026, 11, 21), stated)
    assert [(r.code, r.severity, r.place) for r in remarks] == [("waiver-unknown-rule", "warning", "a.sql:1")]
    assert remarks[0].message.endswith(said)


def test_warnings_about_policies_are_counted():
    result = checked(sql("select 1"), policy(CLASSES + FLOW % "" + WAIVER % "2027-06-01"))
    assert "0 errors, 0 warnings, 1 policy warning" in summary(result, strict=False)


def test_an_unused_waiver_is_a_warning_and_an_approval_is_part_of_the_rule():
    rules = policy(CLASSES + FLOW % "" + WAIVER % "2027-06-01")
    assert [r.code for r in checked(sql("select 1"), rules).remarks] == ["waiver-unused"]
    approved = (FLOW % "").replace(
        "hash]}]", "hash]}, {approved: [{columns: [mm.t.c], by: dpo, expires: 2026-12-01}]}]"
    )
    index = sql("create table mm.t as select email as c from crm.users", USERS)
    assert reported(checked(index, policy(CLASSES + approved))) == []
    assert reported(checked(index, policy(CLASSES + approved), today=date(2026, 12, 2))) == [
        ("F", "mm.t.c", "violated")
    ]


def test_fingerprints_survive_reformatting_and_differ_by_state():
    rules = policy(CLASSES + FLOW % "")
    one = checked(sql("create table mm.t as select email as c from crm.users", USERS), rules)
    other = checked(
        sql("-- a comment\n\n\nCREATE TABLE mm.t AS\n  SELECT u.email AS c\n  FROM crm.users AS u", USERS), rules
    )
    assert [f.fingerprint for f in one.findings] == [f.fingerprint for f in other.findings]
    influenced = flow("select case when email > '' then 1 end as c from crm.users", via="any")
    assert influenced.findings[0].fingerprint != one.findings[0].fingerprint


def test_to_none_ends_a_class_and_a_mask_does_not_for_rules_that_do_not_accept_it():
    strict = (FLOW % "").replace("    unless: [{declassified: [keyed-hash, hash]}]\n", "")
    rules = policy(CLASSES + strict)
    masked = sql("create table mm.t as select hmac(email, 'k', 'sha256') as c from crm.users", USERS)
    (finding,) = checked(masked, rules).findings
    assert finding.verdict is RuleVerdict.VIOLATED
    assert finding.state == "value via keyed-hash"
    counted = sql("create table mm.t as select count(email) as c from crm.users having count(*) >= 10", USERS)
    assert reported(checked(counted, rules)) == []


def test_a_rule_on_what_a_declassifier_makes():
    rules = policy(
        CLASSES + "  - {id: S, title: no pseudonyms, deny: {flow: {class: pseudonymous, to: {zone: marketing}}}}\n"
    )
    index = sql("create table mm.t as select sha256(email) as c, email as d from crm.users", USERS)
    assert reported(checked(index, rules)) == [("S", "mm.t.c", "violated")]


PAY = """
classes: {pay: {}}
classify: [{class: pay, columns: ["**.salary"]}]
declassify:
  - {name: k, kind: aggregate, functions: [count, sum, avg], min_group_size: 10, from: [pay], to: none, entity: [crm.u.id]}
rules: [{id: F, title: t, deny: {flow: {class: pay, to: {datasets: "share.**"}}}, unless: [{declassified: [k]}]}]
"""


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("sum(salary)", None),
        ("coalesce(round(avg(salary)), 0)", None),
        ("sum(salary) / count(distinct id)", None),
        ("sum(salary * hours)", "made of crm.u.hours and crm.u.salary"),
        ("sum(salary) filter (where id = 42)", "crm.u.id decides what of a group is taken in"),
        ("sum(case when id = 42 then salary end)", "crm.u.id decides what of a group is taken in"),
        ("sum(case when team = 'x' then salary end)", "crm.u.team decides what of a group is taken in"),
        ("count(salary) - count(salary) filter (where id <> 42)", "crm.u.id decides what of a group is taken in"),
        ("sum(salary * (id = 42)::int)", "are not shown"),
    ],
)
def test_a_large_group_shows_nothing_where_the_aggregate_takes_in_less(value, why):
    text = f"create table share.t as select c, {value} as v from crm.u group by c having count(distinct id) >= 10"
    found = checked(sql(text), policy(PAY)).findings
    assert [f.column for f in found] == ([] if why is None else ["share.t.v"])
    assert all(why in f.why for f in found)


ROWS = PAY.replace(", entity: [crm.u.id]", "")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("sum(salary)", True),
        ("sum(active::int)", True),
        ("sum(salary * active::int)", False),
        ("sum(salary * (email = 'x')::int)", False),
        ("sum(salary * cast(email = 'x' as int))", False),
        ("sum(salary / nullif(id - 42, 0))", False),
    ],
)
@pytest.mark.parametrize("rules", [PAY, ROWS])
def test_what_multiplies_by_a_truth_value_takes_in_some_of_the_group(value, shown, rules):
    text = (
        "create table crm.u (id int, email text, team text, salary int, active boolean);"
        f"create table share.t as select team, {value} as v from crm.u group by team having count(distinct id) >= 10"
    )
    assert reported(checked(sql(text), policy(rules))) == ([] if shown else [("F", "share.t.v", "violated")])


@pytest.mark.parametrize(
    ("joined", "by_rows"),
    [
        ("crm.u u", "held"),
        ("crm.u u join crm.d d on u.team = d.id", "unknown"),
        ("crm.u u join crm.d d using (id)", "unknown"),
        ("crm.u u join (select id from crm.d where id > 3) d on u.team = d.id", "unknown"),
        ("crm.u u cross join (values (1), (2), (3)) v(n)", "violated"),
        ("crm.u u, (values (1), (2), (3)) v(n)", "violated"),
        ("crm.u u, generate_series(1, 10)", "violated"),
        ("crm.u u cross join (select 1 as n union all select 2) v", "violated"),
        ("(select u.* from crm.u u, generate_series(1, 10)) u", "violated"),
        ("crm.u u, v", "violated"),
        ("w u", "violated"),
        ("crm.u u cross join crm.d d", "violated"),
        ("crm.u u join crm.d d on true", "violated"),
    ],
)
def test_rows_that_are_joined_to_every_row_are_no_members_of_its_group(joined, by_rows):
    text = (
        "create table share.t as with recursive v as (select 1 as n union all select n + 1 from v where n < 10),"
        " w as (select u.* from crm.u u cross join v)"
        f" select u.team, sum(u.salary) as v from {joined} group by u.team having %s >= 10"
    )
    schema = {"crm.u": dict.fromkeys(("id", "team", "salary"), "int"), "crm.d": {"id": "int"}}
    found = reported(checked(sql(text % "count(*)", schema), policy(ROWS)))
    assert found == ([] if by_rows == "held" else [("F", "share.t.v", by_rows)])
    assert reported(checked(sql(text % "count(distinct u.id)", schema), policy(PAY))) == []


@pytest.mark.parametrize(
    ("joined", "shown"),
    [
        ("crm.u u join crm.x x on x.uid = u.id", True),
        ("crm.u u join crm.x x using (id)", True),
        ("crm.u u join crm.u x on x.id = 42", False),
        ("crm.u u join crm.u x on x.boss = u.id", False),
    ],
)
def test_a_join_of_a_dataset_with_itself_may_sum_up_others_than_are_counted(joined, shown):
    text = f"create table share.t as select u.c, sum(x.salary) v from {joined} group by u.c having count(distinct u.id) >= 10"
    found = reported(checked(sql(text), policy(PAY)))
    assert found == ([] if shown else [("F", "share.t.v", "violated")])


@pytest.mark.parametrize(
    ("edge", "why"),
    [
        (None, None),
        (Edge(ColumnRef("crm.u", "team"), "v", EdgeKind.CONDITIONAL), "crm.u.team decides what of a group is taken in"),
        (Edge(ColumnRef("crm.u", "id"), "v", EdgeKind.WINDOW), "crm.u.id decides what of a group is taken in"),
        (Edge(ColumnRef("crm.u", "id"), "v", EdgeKind.AGGREGATION, ("cast", "sum")), "which identifies members"),
        (Edge(ColumnRef("crm.u", "id"), "v", EdgeKind.AGGREGATION, ("count",)), None),
        (Edge(ColumnRef("crm.u", "hours"), "v", EdgeKind.AGGREGATION, ("sum",)), "crm.u.hours and crm.u.salary"),
        (Edge(ColumnRef("crm.u", "boss"), "*", EdgeKind.JOIN), "crm.u is joined with itself or by a constant"),
        (Edge(ColumnRef("crm.o", "uid"), "*", EdgeKind.FILTER), None),
    ],
)
def test_what_the_edges_say_of_an_aggregate_counts_whatever_having_says(edge, why):
    counted = (Counted(10, "distinct", (ColumnRef("crm.u", "id"),)),)
    statement = Statement("f", "create_table", "postgres", "t.sql", min_group=10, min_group_of=counted)
    edges = [
        Edge(ColumnRef("crm.u", "*"), "*", EdgeKind.READ),
        Edge(ColumnRef("crm.u", "id"), "*", EdgeKind.FILTER),
        Edge(ColumnRef("crm.u", "salary"), "v", EdgeKind.AGGREGATION, ("sum",)),
    ]
    every = tuple(edges if edge is None else [*edges, edge])
    index = index_of([Derivation("share.t", "table", "replace", statement, (OutputColumn("v"),), edges=every)])
    found = checked(index, policy(PAY)).findings
    assert [f.column for f in found] == ([] if why is None else ["share.t.v"])
    assert all(why in f.why for f in found)


def test_a_join_is_told_by_two_ways_that_exist():
    text = """
        create table stg.users as select id, email as address from crm.users;
        create table mart.joined as select u.address, o.diagnosis as d from stg.users u join clinic.visits o using (id)
    """
    rules = CLASSES + "  - {id: J, title: t, deny: {join: {classes: [personal.contact, health], in: ['mart.**']}}}\n"
    (finding,) = checked(sql(text), policy(rules)).findings
    assert finding.source == "clinic.visits.* + stg.users.*"
    assert finding.paths == (
        ("crm.users.email", "stg.users.address", "mart.joined.address"),
        ("clinic.visits.diagnosis", "mart.joined.d"),
    )
    assert finding.path == finding.paths[0]
    assert way(finding) == (
        "crm.users.email ──copy──▶ stg.users.address ──copy──▶ mart.joined.address"
        " + clinic.visits.diagnosis ──copy──▶ mart.joined.d"
    )


def test_what_an_update_holds_already_is_a_way_of_one_column():
    text = "update mm.t set d = o.diagnosis from clinic.visits o where o.id = mm.t.id"
    rules = CLASSES + "  - {id: J, title: t, deny: {join: {classes: [personal.contact, health], in: ['mm.**']}}}\n"
    schema = {"mm.t": {"id": "int", "email": "text", "d": "text"}, "clinic.visits": {"id": "int", "diagnosis": "text"}}
    findings = checked(sql(text, schema), policy(rules)).findings
    for finding in findings:
        steps = [(start, [(s.source, s.target) for s in some]) for start, some in finding.ways]
        assert all(not some or some[0][0] == start for start, some in steps)


def test_a_change_that_adds_a_column_begins_its_way_somewhere():
    rules = CLASSES + "  - {id: C, title: t, deny: {change: {columns: ['mm.**'], kinds: [add]}}}\n"
    before = sql("create table mm.t as select id as a from crm.users", USERS)
    after = sql("create table mm.t as select id as a, age as b from crm.users", USERS)
    (finding,) = checked(after, policy(rules), base=before).findings
    assert way(finding) == "crm.users.age ──copy──▶ mm.t.b"
    assert finding.path == ("crm.users.age", "mm.t.b")
