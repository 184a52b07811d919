"""Laws of findings on random graphs: ways are ways, cutting one ends it, a waiver hides what it names and nothing else."""

from __future__ import annotations

from depth import examples
from hypothesis import given, settings
from policy_samples import MASKS, checked, policy, random_graph, reported

from govtool.app.versions.index import index_of
from govtool.policy.rules.finding import RuleVerdict

RULES = """
classify:
  - {class: p.contact, columns: ["a.x", "b.x"]}
  - {class: h, columns: ["a.y"]}
rules:
  - {id: F, title: t, deny: {flow: {class: [p.contact, h], to: {datasets: [c, d]}, via: %s}}, unless: [{declassified: [keyed]}]}
  - {id: O, title: t, deny: {opaque: {class: p, to: {datasets: [c, d]}}}}
"""
ANY = policy(MASKS + RULES % "any")
DIRECT = policy(MASKS + RULES % "direct")
relaxed = settings(deadline=None, max_examples=examples(100))


@relaxed
@given(random_graph())
def test_a_way_leads_from_its_source_to_its_sink(derivations):
    for finding in checked(index_of(derivations), ANY).findings:
        if finding.steps:
            assert finding.steps[-1].target == finding.column
            assert finding.path[0] == finding.source
        else:
            assert finding.source == finding.column


@relaxed
@given(random_graph())
def test_what_a_rule_finds_directly_it_finds_by_any_way(derivations):
    index = index_of(derivations)
    direct = {(f.rule, f.column) for f in checked(index, DIRECT).findings if f.verdict is RuleVerdict.VIOLATED}
    assert direct <= {(f.rule, f.column) for f in checked(index, ANY).findings if f.verdict is RuleVerdict.VIOLATED}


@relaxed
@given(random_graph())
def test_without_the_edges_of_its_way_a_finding_is_gone(derivations):
    findings = [f for f in checked(index_of(derivations), DIRECT).findings if len(f.steps) == 1 and f.rule == "F"]
    for finding in findings[:2]:
        step = finding.steps[0]
        cut = [
            d._replace(edges=tuple(e for e in d.edges if d.target != step.target.partition(".")[0]))
            for d in derivations
        ]
        after = checked(index_of(cut), DIRECT).findings
        assert not [f for f in after if f.column == finding.column and f.source != f.column]


@relaxed
@given(random_graph())
def test_a_waiver_never_hides_another_finding(derivations):
    index = index_of(derivations)
    before = checked(index, ANY)
    for finding in before.findings[:3]:
        waiver = f"\nwaivers: [{{rule: {finding.rule}, columns: ['{finding.column}'], reason: r, approved_by: a, expires: 2027-01-01}}]"
        after = checked(index, policy(MASKS + RULES % "any" + waiver))
        # A pattern that ends in a star names columns too: what it covers is what it says.
        covered = [f for f in before.findings if f.rule == finding.rule and _covers(finding.column, f.column)]
        left = [t for t in reported(after) if t[2] != "waived"]
        assert sorted(left) == sorted(
            t for t in reported(before) if (t[0], t[1]) not in {(f.rule, f.column) for f in covered}
        )


def _covers(pattern: str, column: str) -> bool:
    if pattern.endswith(".*"):
        return column.startswith(pattern[:-1]) and "." not in column[len(pattern) - 1 :]
    return pattern == column
