"""``whatif`` from the command line."""

from __future__ import annotations

import re

import pytest
from answers import check
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, Dialects

from govtool.query.changes.types import not_compared

SQL = """create table crm.users (id int, email text, phone text);
create table crm.old (id int, email text);
create view stg.users as select id, lower(email) as address from crm.users union all select id, email from crm.old;
create view stg.phones as select u.id, u.phone from crm.users u join crm.old o on o.id = u.id;
create table mart.audience as select address as who from stg.users;
"""
POLICY = """version: 1
name: p
classes: {personal: {}}
classify: [{class: personal, columns: ["crm.users.email"]}]
rules: [{id: P, title: t, deny: {flow: {class: personal, to: {datasets: ["mart.**"]}}}}]
"""


@pytest.fixture
def warehouse(ingested):
    return ingested(SQL)


def ask(govtool, *arguments: str) -> tuple[dict, dict[str, str]]:
    answer = check(govtool("whatif", *arguments, "-f", "json").out, "whatif-1")
    return answer, {c["column"]: c["verdict"] for c in answer["columns"]}


def test_a_union_survives_the_loss_of_one_arm_and_a_join_does_not(warehouse):
    answer, found = ask(warehouse, "delete", "crm.old")
    lost = {column for column, verdict in found.items() if verdict == "lost"}
    assert lost == {"stg.phones.*", "stg.phones.id", "stg.phones.phone"}
    changed = {c["column"]: c for c in answer["columns"] if c["verdict"] in ("changes", "rows")}
    assert found["stg.users.address"] == found["mart.audience.who"] == "changes"
    assert changed["stg.users.address"]["survives"] == ["crm.users"]
    assert (changed["stg.users.address"]["hops"], changed["stg.users.address"]["via"]) == (1, ["copy"])
    assert changed["mart.audience.who"]["survives"] == ["stg.users"]
    assert changed["mart.audience.who"]["path"] == ["crm.old", "stg.users.address", "mart.audience.who"]
    assert answer["datasets"] == ["mart.audience", "stg.phones", "stg.users"]
    assert answer["unused"] == ["crm.users.phone"]
    assert answer["jobs"] == ["all.sql"]
    _, found = ask(warehouse, "delete", "crm.users", "crm.old")
    assert found["stg.users.address"] == found["mart.audience.who"] == "lost"


def test_what_is_lost_or_changes_has_its_way(ingested):
    govtool = ingested(
        "create view mart.u as select id from crm.users union all select id from crm.more;"
        "create view mart.n as select count(id) n from mart.u; create view mart.k as select id from crm.more;"
    )
    answer, found = ask(govtool, "delete", "crm.more")
    assert found == {
        "mart.k.*": "lost",
        "mart.k.id": "lost",
        "mart.u.id": "changes",
        "mart.u.*": "rows",
        "mart.n.n": "changes",
        "mart.n.*": "rows",
    }
    hops = {c["column"]: (c["hops"], c["cause"]) for c in answer["columns"]}
    assert hops["mart.k.id"] == (1, "crm.more")
    assert hops["mart.n.n"] == (2, "crm.more")
    shown = govtool("whatif", "delete", "crm.more").out
    assert "copy, survives on crm.users" in shown
    assert "datasets: mart.k, mart.n, mart.u\njobs: all.sql" in shown
    _, found = ask(govtool, "delete", "crm.more", "crm.users")
    assert set(found.values()) == {"lost"}


def test_reports_are_named(project, govtool):
    from pathlib import Path

    folder = Path(__file__).parents[2] / "fixtures" / "dbt"
    target = next(path.parent for path in sorted(folder.rglob("manifest.json")) if "exposure." in path.read_text())
    govtool("init")
    assert govtool("ingest", "dbt", str(target)).code == 0
    listed = govtool("ls", "**", "-f", "csv").out
    reports = {word.strip('"') for line in listed.splitlines() for word in line.split(",") if "exposure" in word}
    assert reports
    sources = [line.split(",")[0] for line in listed.splitlines()[1:]]
    named = set()
    for source in sources[:40]:
        done = govtool("whatif", "delete", source, "-f", "json")
        if done.code == 0:
            named.update(check(done.out, "whatif-1")["reports"])
    assert named


def test_several_drops_at_once_give_the_worst_and_name_the_cause(warehouse):
    answer, found = ask(warehouse, "drop", "crm.users.phone", "crm.old.email")
    assert found["stg.phones.phone"] == found["mart.audience.who"] == "breaks"
    causes = {c["column"]: c["cause"] for c in answer["columns"]}
    assert causes["stg.phones.phone"] == "crm.users.phone"
    assert causes["mart.audience.who"] == "crm.old.email"
    assert answer["subjects"] == ["crm.old.email", "crm.users.phone"]
    assert warehouse("whatif", "drop", "crm.users.phone", "--fail-on", "breaks").code == 1
    assert warehouse("whatif", "drop", "mart.audience.who", "--fail-on", "breaks").code == 0


def test_rename_retype_and_their_arguments(warehouse):
    _, found = ask(warehouse, "rename", "crm.users.email", "--to", "mail")
    assert (found["stg.users.address"], found["mart.audience.who"]) == ("breaks", "passes")
    _, found = ask(warehouse, "retype", "crm.users.id", "crm.old.id", "--to", "bigint")
    assert found["stg.users.id"] == "changes"
    assert warehouse("whatif", "rename", "crm.users.*", "--to", "x").code == 2
    assert warehouse("whatif", "drop", "**.nothing").code == 2
    assert "did you mean  crm.users.email" in warehouse("whatif", "drop", "crm.users.emial").err


def test_a_mask_ends_findings_of_policies(warehouse, project):
    (project / "policies").mkdir()
    (project / "policies" / "p.yml").write_text(POLICY)
    answer, found = ask(warehouse, "mask", "class:personal", "--exclude", "mart.** stg.**")
    assert answer["subjects"] == ["crm.users.email"]
    assert found["mart.audience.who"] == "changes"
    assert answer["policies"] == {
        "ended": [{"rule": "P", "column": "mart.audience.who", "source": "crm.users.email"}],
        "left": 0,
        "rules": ["P"],
    }
    assert "policies: 1 finding would end (P)" in warehouse("whatif", "mask", "crm.users.email").out


def test_the_table(warehouse):
    lines = warehouse("whatif", "delete", "crm.old").out.splitlines()
    assert lines[2].split() == ["verdict", "column", "hops", "via", "evidence"]  # the one cause is in the heading
    assert lines[3].split()[:2] == ["lost", "stg.phones.*"]
    shown = warehouse("whatif", "drop", "crm.old.id").out
    assert [line.split()[1:4] for line in shown.splitlines() if line.startswith(" breaks")] == [
        ["stg.phones.*", "(2", "columns)"],
        ["stg.users.*", "(2", "columns)"],
        ["mart.audience.*", "(1", "column)"],
    ]
    assert lines[-4].startswith("2 lost, 3 change · 3 datasets, 1 file · coverage")
    assert lines[-3:-1] == ["datasets: mart.audience, stg.phones, stg.users", "jobs: all.sql"]
    assert lines[-1] == "no longer used: crm.users.phone"


def test_a_relation_that_fares_as_a_whole_is_one_line(ingested):
    govtool = ingested(
        "create table crm.users (id int, email text, phone text);\n"
        "create view stg.users as select id, lower(email) as mail, phone from crm.users where id > 0;\n"
    )
    shown = govtool("whatif", "delete", "crm.users").out.splitlines()
    lost = [line for line in shown if line.startswith(" lost")]
    assert len(lost) == 1
    assert "stg.users.* (3 columns: id, mail …)" in lost[0]
    assert any(line.startswith("3 lost") for line in shown)
    _, found = ask(govtool, "delete", "crm.users")
    assert sorted(found) == ["stg.users.*", "stg.users.id", "stg.users.mail", "stg.users.phone"]


@pytest.mark.parametrize("form", ["plain", "csv", "markdown"])
def test_a_way_is_worded_as_impact_words_it(ingested, form):
    govtool = ingested(
        "create view b as select x from a; create view c as select x from b; create view d as select lower(x) y from c;"
    )
    for arguments in (("impact", "a.x", "--change", "drop"), ("whatif", "drop", "a.x")):
        shown = govtool(*arguments, "-f", form).out
        assert "copy ×2 → lower()" in shown
        assert "copy → copy" not in shown


def test_columns_that_are_not_known_are_not_counted(ingested):
    govtool = ingested(
        "create view b as select u.*, a.x from a join u on true; create view c as select x from b;"
        "create view w as select u.x from u; create view d as select * from a;"
    )
    reported = check(govtool("impact", "a.x", "--change", "drop", "-f", "json").out, "impact-1")["summary"]
    answer, _ = ask(govtool, "drop", "a.x")
    assert {k: v for k, v in answer["summary"].items() if k != "lost"} == {
        k: reported[k] for k in answer["summary"] if k != "lost"
    }


def test_the_type_that_a_column_has_already_is_no_change(warehouse):
    done = warehouse("whatif", "retype", "crm.users.email", "--to", "TEXT")
    assert "no change: crm.users.email is TEXT already" in done.out
    assert check(warehouse("impact", "crm.users.email", "--change", "retype:text", "-f", "json").out, "impact-1")["unchanged"] == ["crm.users.email"]  # fmt: skip
    assert "no change: crm.users.email is text already" in warehouse("impact", "crm.users.email", "--change", "retype:text").out  # fmt: skip
    answer, found = ask(warehouse, "retype", "crm.users.email", "--to", "text")
    assert (answer["unchanged"], found) == (["crm.users.email"], {})
    assert "unchanged" not in ask(warehouse, "retype", "crm.users.email", "--to", "int")[0]


@pytest.mark.parametrize(
    ("new", "said"),
    [
        ("blurb", "no type is known as 'blurb': no incompatibility can be proved"),
        ("interger", "no type is known as 'interger' (did you mean integer?): no incompatibility can be proved"),
        ("uuid", "uuid is not compared with other types: no incompatibility can be proved"),
        ("numeric(10, 2)", None),
    ],
)
def test_a_type_of_which_nothing_is_known_proves_nothing_and_says_so(warehouse, new, said):
    answer, _ = ask(warehouse, "retype", "crm.users.email", "--to", new)
    assert answer.get("not_compared") == said
    impact = warehouse("impact", "crm.users.email", "--change", f"retype:{new}", "-f", "json").out
    assert check(impact, "impact-1").get("not_compared") == said
    for shown in (
        warehouse("impact", "crm.users.email", "--change", f"retype:{new}").out,
        warehouse("whatif", "--retype", f"crm.users.email={new}", "--drop", "crm.users.phone").out,
    ):
        assert ("can be proved" in shown) == (said is not None)
        assert said is None or said in shown


def test_the_types_of_all_dialects_are_known():
    words = {kind.value.lower() for kind in exp.DataType.Type}
    for name in Dialects:
        dialect = Dialect.get_or_raise(name.value)
        kinds = dialect.parser_class.TYPE_TOKENS
        words |= {word.lower() for word, kind in dialect.tokenizer_class.KEYWORDS.items() if kind in kinds}
    names = {word for word in words if re.fullmatch(r"[a-z]\w*( \w+)*", word)} - {"ls"}
    assert len(names) > 200
    assert not [name for name in sorted(names) if "no type is known" in not_compared(name)]


ONE_EACH = (
    ["drop", "crm.users.phone"],
    ["rename", "crm.users.email", "--to", "mail"],
    ["retype", "crm.users.id", "--to", "text"],
    ["mask", "crm.old.email"],
    ["delete", "crm.old"],
)
TOGETHER = (
    *("--drop", "crm.users.phone", "--rename", "crm.users.email=mail", "--retype", "crm.users.id=text"),
    *("--mask", "crm.old.email", "--delete", "crm.old"),
)


def test_changes_of_several_kinds_have_the_worst_verdict_of_each(warehouse):
    from govtool.query.changes.whatif import VERDICTS

    worst: dict[str, str] = {}
    for arguments in ONE_EACH:
        for column, verdict in ask(warehouse, *arguments)[1].items():
            worst[column] = min(worst.get(column, verdict), verdict, key=VERDICTS.index)
    own = {"crm.users.phone", "crm.old.*", "crm.old.id", "crm.old.email"}  # what is dropped or deleted
    answer, found = ask(warehouse, *TOGETHER)
    assert found == {column: verdict for column, verdict in worst.items() if column not in own}
    assert answer["action"] == "several"
    assert [(part["action"], part["to"], part["subjects"]) for part in answer["changes"]] == [
        ("drop", None, ["crm.users.phone"]),
        ("mask", None, ["crm.old.email"]),
        ("delete", None, ["crm.old"]),
        ("rename", "mail", ["crm.users.email"]),
        ("retype", "text", ["crm.users.id"]),
    ]


def test_what_only_several_changes_together_leave_without_use(ingested):
    govtool = ingested(
        "create table t (a int, b int, c int); create view v as select a + b as x from t;"
        "create view w as select b as y from t;"
    )
    assert ask(govtool, "drop", "v")[0]["unused"] == ["t.a"]
    answer, _ = ask(govtool, "--drop", "v", "--delete", "w")
    assert answer["unused"] == ["t.a", "t.b"]


def test_one_kind_of_change_is_the_answer_of_its_command(warehouse):
    assert ask(warehouse, "--drop", "crm.users.phone") == ask(warehouse, "drop", "crm.users.phone")


def test_policies_judge_what_several_changes_hide(warehouse, tmp_path):
    (tmp_path / "p.yaml").write_text(POLICY)
    policy = ("--policy", str(tmp_path / "p.yaml"))
    answer, _ = ask(warehouse, "--mask", "crm.users.email", "--rename", "crm.users.phone=tel", *policy)
    assert [one["rule"] for one in answer["policies"]["ended"]] == ["P"]
    assert (
        ask(warehouse, "--rename", "crm.users.phone=tel", "--retype", "crm.users.id=text", *policy)[0]["policies"]
        is None
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no change is given"),
        (("--rename", "crm.users.email"), "--rename 'crm.users.email' is not COLUMN=NEW"),
        (("--retype", "=text"), "--retype '=text' is not COLUMN=NEW"),
        (("--retype", "crm.users=text"), "retype"),
        (("--drop", "crm.users.emial"), "crm.users.email"),
        (("--rename", "crm.users.email=id"), "cannot become id"),
        (("--rename", "crm.users=crm.old"), "cannot become crm.old"),
        (("--drop", "crm.users.email", "--rename", "crm.users.email=mail"), "drop and rename"),
        (("--rename", "crm.users.email=a", "--rename", "crm.users.email=b"), "rename twice"),
    ],
)
def test_mistakes_in_several_changes(warehouse, arguments, message):
    found = warehouse("whatif", *arguments)
    assert (found.code, message in found.err) == (2, True), found.err


@pytest.mark.parametrize(
    ("subject", "to", "message"),
    [
        ("crm.users.email", "email", "crm.users.email has that name already"),
        ("crm.users.email", "phone", "crm.users.email cannot become phone: there is one already"),
        ("crm.users", "users", "crm.users has that name already"),
        ("crm.users", "crm.users", "crm.users has that name already"),
        ("crm.users", "old", "crm.users cannot become old: there is one already"),
        ("crm.users", "crm.old", "crm.users cannot become crm.old: there is one already"),
    ],
)
def test_a_name_that_is_taken_is_refused(warehouse, subject, to, message):
    done = warehouse("whatif", "rename", subject, "--to", to)
    assert (done.code, f"error[usage.name-taken] {message}" in done.err) == (2, True), done.err


def test_a_cause_is_named_where_there_are_several(warehouse):
    done = warehouse("whatif", "drop", "crm.users.phone", "crm.old.email")
    assert done.out.splitlines()[2].split() == ["verdict", "column", "hops", "via", "cause", "evidence"]


def test_a_drop_takes_no_new_name(warehouse):
    done = warehouse("impact", "crm.users.email", "--change", "drop", "--to", "x")
    assert "error[usage.change] drop has no new name or type" in done.err
