"""Rules in Python, from a package that is really installed: a module and its .dist-info on the path."""

from __future__ import annotations

import importlib
from datetime import date

import pytest
from policy_samples import TODAY, checked, policy, reported, sql

from govtool.app.questions.policy import lint
from govtool.errors import UsageError
from govtool.policy.classes.governed import govern
from govtool.policy.rules.baseline import Accepted, accepted
from govtool.policy.rules.check import check
from govtool.render.policy import explanation

MODULE = '''
from govtool.policy.view import Found, View


def masked(view: View, options):
    """Columns of a class that a dataset shows must have gone through a declassifier."""
    for column in view.columns(options["in"]):
        for held in view.classes(column):
            if held.mode == "value" and not held.passed:
                source = next(n for n in view.columns_of(held.class_) if not view.into(n) and view.path(n, column))
                way = view.path(source, column)
                yield Found(column, why=f"{len(way)} edges, {way[-1].kind}", source=source, classes=(held.class_,))
    options["in"] = "gone"


def facts(view, options):
    for dataset in view.datasets("mm.*"):
        about = view.facts(dataset)
        if about.owner is None:
            yield Found(dataset, why=f"zones {sorted(about.zones)}, base {view.base is not None}", verdict="unknown")
    yield from (Found(n, state="tagged", why=view.type(n)) for n in view.columns("crm.**") if "raw" in view.tags(n))


def late(view, options):
    yield Found("mm.t.c", why="before it failed")
    raise ZeroDivisionError("half way")


def quits(view, options):
    raise SystemExit(3)


def elsewhere(view, options):
    return [Found("no.such.thing")]


def wrong(view, options):
    return ["mm.t.c"]


def nothing(view, options):
    return None


number = 7
'''
NAMES = ("masked", "facts", "late", "quits", "elsewhere", "wrong", "nothing", "number", "broken", "absent")
CLASSES = """
classes: {personal: {}, pseudonymous: {}}
classify: [{class: personal, columns: ["crm.users.email"]}]
metadata: [{columns: ["crm.users.email"], tags: [raw]}]
declassify: [{name: keyed, kind: mask, functions: ["@keyed"], from: [personal], to: pseudonymous}]
zones: {mart: {datasets: ["mm.**"]}}
rules:
"""
SQL = """create table crm.users (email text);
create table mm.t as select lower(email) as c, hmac(email, 'k', 'sha256') as h from crm.users"""
MASKED = '  - {id: P1, title: masked, python: acme-masked, with: {in: "mm.**"}}\n'


def install(folder, monkeypatch, name: str, points: dict[str, str], module: str) -> None:
    """A distribution with a module."""
    info = folder / f"{name}-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    lines = "".join(f"{key} = {value}\n" for key, value in points.items())
    (info / "entry_points.txt").write_text(f"[govtool.rules]\n{lines}")
    (folder / f"{name}_module.py").write_text(module)
    monkeypatch.syspath_prepend(str(folder))
    importlib.invalidate_caches()


@pytest.fixture(autouse=True)
def acme(tmp_path, monkeypatch):
    points = {f"acme-{name}": f"acme_module:{name}" for name in NAMES}
    points["acme-broken"] = "acme_missing_module:rule"
    monkeypatch.delitem(__import__("sys").modules, "acme_module", raising=False)
    install(tmp_path / "site", monkeypatch, "acme", points, MODULE)


def rules(text: str):
    return policy(CLASSES + text)


def test_findings_are_like_all_others():
    result = checked(sql(SQL), rules(MASKED))
    (finding,) = result.findings
    assert (finding.column, finding.source, finding.classes) == ("mm.t.c", "crm.users.email", ("personal",))
    assert finding.why == "1 edges, transformation"
    assert [(s.source, s.target) for s in finding.steps] == [("crm.users.email", "mm.t.c")]
    assert finding.evidence.line == 2
    again = checked(sql(SQL.replace("\n", "\n\n\n  ")), rules(MASKED)).findings
    assert [f.fingerprint for f in again] == [finding.fingerprint]  # the options are as new each time
    assert accepted(result.findings, {finding.fingerprint: Accepted()})[0].accepted


def test_facts_tags_types_and_the_base():
    text = "  - {id: P2, title: facts, severity: note, python: acme-facts}\n"
    now, before = sql(SQL), sql(SQL.splitlines()[0])
    assert [(f.column, f.verdict.label, f.why) for f in checked(now, rules(text)).findings] == [
        ("crm.users.email", "violated", "TEXT"),
        ("mm.t", "unknown", "zones ['mart'], base False"),
    ]
    result = checked(now, rules(text), base=before)
    assert [(f.column, f.why) for f in result.findings] == [("mm.t", "zones ['mart'], base True")]
    assert result.known == 1


def test_waivers_and_approvals():
    waiver = 'waivers: [{rule: P1, columns: ["mm.t.c"], reason: r, approved_by: a, expires: 2027-01-01}]\n'
    assert reported(checked(sql(SQL), rules(MASKED + waiver))) == [("P1", "mm.t.c", "waived")]
    approved = MASKED.replace("}}", "}, unless: [{approved: [{columns: [mm.t.c], by: dpo}]}]}")
    assert reported(checked(sql(SQL), rules(approved))) == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("quits", "SystemExit: 3"),
        ("elsewhere", "RuleError: it names 'no.such.thing', which is not in the graph"),
        ("wrong", "RuleError: it yields str, not Found"),
        ("nothing", "RuleError: it gives NoneType, not findings"),
        ("number", "RuleError: acme_module:number cannot be called"),
        ("broken", "ModuleNotFoundError: No module named 'acme_missing_module'"),
        ("absent", "AttributeError: module 'acme_module' has no attribute 'absent'"),
        ("masked", "KeyError: 'in'"),
    ],
)
def test_a_rule_that_fails_is_unknown_and_the_others_are_judged(name, why):
    failing = f"  - {{id: A, title: fails, python: acme-{name}}}\n"
    result = checked(sql(SQL), rules(failing + MASKED))
    assert reported(result) == [("P1", "mm.t.c", "violated"), ("A", f"python:acme-{name}", "unknown")]
    assert result.findings[1].why == f"the rule failed: {why}"
    assert (
        result.findings[1].fix
        == f"mend the rule of acme 1.2 ({'acme_missing_module:rule' if name == 'broken' else 'acme_module:' + name})"
    )


def test_a_failure_is_hidden_by_nothing_and_what_came_before_it_counts():
    text = (
        "  - {id: A, title: fails, python: acme-late}\n"
        'waivers: [{rule: A, columns: ["**", "mm.t.c"], reason: r, approved_by: a, expires: 2027-01-01}]\n'
    )
    index, policies = sql(SQL), rules(text)
    result = checked(index, policies)
    assert reported(result) == [("A", "python:acme-late", "unknown"), ("A", "mm.t.c", "waived")]
    assert reported(checked(index, policies, base=index)) == [("A", "python:acme-late", "unknown")]
    assert not accepted(result.findings, {f.fingerprint: Accepted() for f in result.findings})[0].accepted


def test_unknown_and_doubtful_names_have_a_place(tmp_path, monkeypatch):
    with pytest.raises(UsageError) as caught:
        rules("  - id: P1\n    title: masked\n    python: acme-maskd\n")
    assert caught.value.code == "policy.unknown-python-rule"
    assert caught.value.location == "p.yml:12"
    assert caught.value.nearest[0] == "acme-masked"
    install(tmp_path / "more", monkeypatch, "other", {"acme-masked": "other_module:rule"}, "")
    with pytest.raises(UsageError, match=r"acme 1\.2 \(acme_module:masked\), other 1\.2") as caught:
        rules(MASKED)
    assert caught.value.code == "policy.ambiguous-python-rule"


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            "{id: P1, title: t, python: acme-masked, deny: {opaque: {class: personal, to: {zone: mart}}}}",
            "needs one of",
        ),
        (
            "{id: P1, title: t, with: {a: 1}, require: {metadata: {class: personal, keys: [owner]}}}",
            "with is for rules",
        ),
        ("{id: P1, title: t, python: acme-masked, unless: [{declassified: [keyed]}]}", "no unless declassified"),
    ],
)
def test_what_does_not_go_together(rule, message):
    with pytest.raises(UsageError, match=message) as caught:
        rules(f"  - {rule}\n")
    assert caught.value.location == "p.yml:10"


def test_explain_and_lint_name_the_package():
    policies = rules(MASKED + "  - {id: B, title: broken, python: acme-broken}\n")
    text = "\n".join(explanation(policies, policies.rules))
    assert 'Judged by acme-masked of acme 1.2 (acme_module:masked), with {"in": "mm.**"}.' in text
    remarks = {(r.code, r.message) for r in lint(policies, sql(SQL), TODAY)}
    assert ("rule-python", "P1 is Python code of acme 1.2 (acme_module:masked)") in remarks
    assert (
        "rule-broken",
        "B cannot be loaded from acme 1.2 (acme_missing_module:rule): "
        "ModuleNotFoundError: No module named 'acme_missing_module'",
    ) in remarks
    assert not {code for code, _ in remarks} & {"class-unused", "rule-idle"}


def test_a_rule_cannot_change_the_view():
    from govtool.policy.view import View

    index, policies = sql(SQL), rules(MASKED)
    view = View(govern(index, policies, TODAY), TODAY)
    with pytest.raises(AttributeError):
        view.today = date(2000, 1, 1)
    with pytest.raises(ValueError, match="no class persnal"):
        view.columns_of("persnal")
    with pytest.raises(KeyError, match="no column crm"):
        view.path("crm.nobody.x", "mm.t.c")
    for ends in (("crm.nobody.x", "mm.t.c"), ("crm.users.email", "crm.nobody.x"), ("", "crm.nobody.x")):
        with pytest.raises(KeyError, match=r"no column crm\.nobody\.x"):
            view.steps(*ends)
    assert [view.steps(*ends) for ends in (("crm.users", "mm.t.c"), ("crm.users.email", "mm.t"))] == [(), ()]
    assert len(view.steps("crm.users.email", "mm.t.c")) == 1
    assert view.columns_of("personal") == ["crm.users.email", "mm.t.c", "mm.t.h"]
    assert view.path("mm.t.c", "crm.users.email") == []
    assert [e.target for e in view.out_of("crm.users.email")] == ["mm.t.c", "mm.t.h"]
    assert check(govern(index, policies, TODAY), TODAY).held() == ()
