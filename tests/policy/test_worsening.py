"""A baseline, a waiver and a base accept as much as got through then: more is shown."""

from __future__ import annotations

import json

import pytest
from policy_samples import TODAY, checked, policy, sql

from govtool.policy.rules.baseline import accepted, baseline_object, read_baseline

RULES = """
classes: {personal: {}}
classify: [{class: personal, columns: ["crm.users.email"]}]
rules: [{id: F, title: t, deny: {flow: {class: personal, to: {datasets: ["share.**"]}, via: any}}}]
"""
WAIVER = """
waivers: [{rule: F, columns: ["share.t.w"], reason: r, approved_by: a, expires: 2027-01-01%s}]
"""
ORDER = {
    "influence": "case when email = 'x' then 1 else 0 end",
    "hidden": "sha256(email)",
    "aggregate": "sum(length(email))",
    "part": "substr(email, 1, 1)",
    "whole": "lower(email)",
}
PAIRS = [(a, b) for a in ORDER for b in ORDER]


def graph(value: str):
    return sql(f"create table share.t as select {value} as w from crm.users")


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_a_baseline_accepts_no_more_than_it_has_seen(tmp_path, before, after):
    file = tmp_path / "baseline.json"
    file.write_text(json.dumps(baseline_object(checked(graph(ORDER[before]), policy(RULES)).findings)))
    (found,) = (f for f in checked(graph(ORDER[after]), policy(RULES)).findings if f.column == "share.t.w")
    assert found.strength == after
    (marked,) = accepted([found], read_baseline(file))
    weaker = list(ORDER).index(before) < list(ORDER).index(after)
    same_state = (before == "influence") == (after == "influence")
    assert marked.accepted == (same_state and not weaker)
    assert marked.worse_than == (before if same_state and weaker else "")


@pytest.mark.parametrize(("before", "after"), [("part", "whole"), ("whole", "part"), ("hidden", "part")])
def test_a_base_hides_no_worsening(before, after):
    found = checked(graph(ORDER[after]), policy(RULES), base=graph(ORDER[before]))
    worse = list(ORDER).index(before) < list(ORDER).index(after)
    assert [f.worse_than for f in found.findings] == ([before] if worse else [])
    assert found.known == (0 if worse else 1)


@pytest.mark.parametrize(
    ("most", "verdict"), [("", "waived"), (", at_most: part", "violated"), (", at_most: whole", "waived")]
)
def test_a_waiver_may_say_how_much_it_accepts(most, verdict):
    rules = policy(RULES + WAIVER % most)
    (found,) = checked(graph(ORDER["whole"]), rules).findings
    assert found.verdict.label == verdict
    (less,) = checked(graph(ORDER["part"]), rules).findings
    assert less.verdict.label == "waived"
    assert checked(graph(ORDER["part"]), rules, TODAY).remarks == ()


def test_a_value_beside_a_part_of_itself_counts():
    (found,) = (f for f in checked(graph("substr(email, 1, 1) || email"), policy(RULES)).findings)
    assert found.strength == "whole"


def test_an_encryption_that_is_undone_is_whole():
    (found,) = checked(graph("pgp_sym_decrypt(pgp_sym_encrypt(email, 'k'), 'k')"), policy(RULES)).findings
    assert found.strength == "whole"


def test_what_was_unknown_and_is_violated_now_is_worse(tmp_path):
    (found,) = checked(graph(ORDER["whole"]), policy(RULES)).findings
    file = tmp_path / "b.json"
    entry = {"fingerprint": found.fingerprint, "verdict": "unknown", "strength": "whole"}
    file.write_text(json.dumps({"schema": "baseline/1", "findings": [entry]}))
    (marked,) = accepted([found], read_baseline(file))
    assert (marked.accepted, marked.worse_than) == (False, "unknown")


def test_a_baseline_of_an_earlier_version_accepts_what_it_did(tmp_path):
    (found,) = checked(graph(ORDER["whole"]), policy(RULES)).findings
    file = tmp_path / "b.json"
    file.write_text(json.dumps({"schema": "baseline/1", "findings": [{"fingerprint": found.fingerprint}]}))
    assert accepted([found], read_baseline(file))[0].accepted


CLASSES = """
classes: {personal: {}, personal.contact: {}, health: {}}
classify:
  - {class: personal, columns: ["crm.users.id"]}
  - {class: %s, columns: ["crm.users.email"]}
rules: [{id: F, title: t, severity: %s, deny: {flow: {class: [personal, health], to: {datasets: ["share.**"]}}}}]
"""
AS_BEFORE = CLASSES % ("personal", "warning")


@pytest.mark.parametrize(
    ("rules", "worse_than"),
    [
        (AS_BEFORE, ""),
        (CLASSES % ("personal", "note"), ""),
        (CLASSES % ("personal", "error"), "warning"),
        (CLASSES % ("personal.contact", "warning"), "personal"),
        (CLASSES % ("health", "warning"), "personal"),
        (AS_BEFORE.replace("rules:", "  - {class: health, columns: [crm.users.email]}\nrules:"), "personal"),
    ],
)
def test_a_baseline_of_milder_classes_or_severity_hides_nothing(tmp_path, rules, worse_than):
    shared = graph("lower(email)")
    file = tmp_path / "baseline.json"
    file.write_text(json.dumps(baseline_object(checked(shared, policy(AS_BEFORE)).findings)))
    (found,) = accepted(checked(shared, policy(rules)).findings, read_baseline(file))
    assert (found.accepted, found.worse_than) == (not worse_than, worse_than)


def test_all_classes_of_a_source_are_named():
    rules = AS_BEFORE.replace("rules:", "  - {class: health, columns: [crm.users.email]}\nrules:")
    (found,) = checked(graph("lower(email)"), policy(rules)).findings
    assert found.classes == ("health", "personal")


def several(*values: str):
    columns = ", ".join(f"{value} as c{number}" for number, value in enumerate(values))
    return sql(f"create table share.t as select {columns} from crm.users")


def test_with_a_base_a_waiver_accepts_what_it_accepted_there():
    rules = RULES + "waivers: [{rule: F, columns: [share.**], reason: r, approved_by: a, expires: 2027-01-01%s}]\n"
    given, stated = policy(rules % ""), policy(rules % ", at_most: whole")
    mild, worse = several(ORDER["part"]), several(ORDER["whole"])
    (found,) = checked(worse, given, base=mild).findings
    assert (found.verdict.label, found.worse_than) == ("violated", "part")
    for result in (checked(worse, given), checked(worse, stated, base=mild)):
        assert [f.verdict.label for f in result.findings] == ["waived"]
    more = checked(several(ORDER["part"], "id || email"), given, base=mild)
    assert [(f.column, f.verdict.label) for f in more.findings] == [("share.t.c1", "waived")]
    assert [r.code for r in more.remarks] == ["waiver-widened"]
