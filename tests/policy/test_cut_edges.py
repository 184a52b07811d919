"""Findings over real SQL hang on their way alone: without any one edge of it they are gone, whatever the sink is called.

The warehouse is ``fixtures/shop``, with sinks in the zones of every pack whose names no pattern of a pack matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from policy_samples import checked

from govtool.app.questions.policy import load_policies, pack_names
from govtool.app.versions.index import index_of
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.model import Derivation, Edge, EdgeKind
from govtool.policy.rules.finding import Finding, RuleVerdict
from govtool.query.evidence import WayStep

SHOP = Path(__file__).parents[2] / "fixtures" / "shop" / "postgres"
SINKS = """
create table cde.cards (id int, user_id bigint, card_number text, card_expiry text, cvv text);
create table clinic.visits (user_id bigint, diagnosis text, icd_10_code text);
create view stg.reach as select id as k, lower(email) as a1, coalesce(phone, '') as a2 from stg.users;
create view stg.seen as select user_id as k, diagnosis as b1, upper(icd_10_code) as b2 from clinic.visits;
create view stg.means as select user_id as k, replace(card_number, '-', '') as c1 from cde.cards;
create table share.t1 as select a1 as f1, case when length(a2) > 3 then a2 else '-' end as f2 from stg.reach;
create table mart_marketing.t2 as with r as (select k, a1 as z from stg.reach) select z as f3 from r;
create table research.t3 as select substr(a1, 1, 3) as f4 from stg.reach;
create table analytics.t4 as select k as f5, b1 as f6 from stg.seen;
create table share.t5 as select k as f7 from stg.seen where b2 = 'E11';
create table share.t6 as select b1 as f8 from stg.seen;
create table reporting.t7 as select right(c1, 4) as f9 from stg.means;
create table report.t8 as select id as f10 from cde.cards where cvv is not null;
"""
SINK_TABLES = ("share.t", "mart_marketing.t2", "research.t", "analytics.t", "reporting.t", "report.t")
EXPECTED = {
    "starter": {"share.t1.f1", "share.t1.f2", "mart_marketing.t2.f3"},
    "gdpr": {"share.t1.f1", "share.t1.f2", "analytics.t4.f6"},
    "hipaa": {"research.t3.f4", "share.t5.*", "share.t6.f8"},
    "pci": {"reporting.t7.f9", "report.t8.*"},
}
"""Sinks that at least are found."""


@cache
def shop() -> tuple[Derivation, ...]:
    """What the shop's SQL and the sinks say."""
    files = sorted(SHOP.rglob("*.sql"))
    scripts = [Script(file.relative_to(SHOP).as_posix(), file.read_text()) for file in files]
    return tuple(extract([*scripts, Script("sinks.sql", SINKS)], Options(dialect="postgres")).derivations)


def findings(pack: str, derivations: Sequence[Derivation]) -> list[Finding]:
    """Violations that have a way."""
    found = checked(index_of(list(derivations)), load_policies([f"pack:{pack}"])).findings
    return [f for f in found if f.verdict is RuleVerdict.VIOLATED and f.steps]


def without(derivations: Sequence[Derivation], step: WayStep) -> list[Derivation]:
    """The same without the edges from one end of a step to the other.

    Whatever else a statement takes from a dataset says that it reads its rows: a read ends with all of that.
    """

    def is_cut(target: str, edge: Edge) -> bool:
        if step.kind is EdgeKind.READ:
            return (f"{edge.source.dataset}.*", f"{target}.*") == (step.source, step.target)
        return (edge.source.text, f"{target}.{edge.target_path}") == (step.source, step.target)

    kept = [d._replace(edges=tuple(e for e in d.edges if not is_cut(d.target, e))) for d in derivations]
    assert sum(len(d.edges) for d in kept) < sum(len(d.edges) for d in derivations), step
    return kept


def test_there_are_sinks_for_every_pack():
    assert sorted(EXPECTED) == pack_names()


@pytest.mark.parametrize("pack", sorted(EXPECTED))
def test_without_any_edge_of_its_way_a_finding_at_a_sink_is_gone(pack):
    found = [f for f in findings(pack, shop()) if f.column.startswith(SINK_TABLES)]
    assert {f.column for f in found} >= EXPECTED[pack]
    assert any(len(f.steps) >= 3 for f in found) or pack == "pci"
    for finding in found:
        assert finding.source != finding.column  # the name of the sink says nothing
        for step in finding.steps:
            after = findings(pack, without(shop(), step))
            left = [f for f in after if (f.rule, f.source, f.column) == (finding.rule, finding.source, finding.column)]
            assert not left, (finding.rule, finding.path, step.source, step.target)


@pytest.mark.parametrize("pack", sorted(EXPECTED))
def test_what_is_found_without_an_edge_goes_another_way(pack):
    for finding in findings(pack, shop()):
        for step in finding.steps:
            for other in findings(pack, without(shop(), step)):
                assert (step.source, step.target) not in {(s.source, s.target) for s in other.steps}
