"""Attempts to carry a column past the packs: none passes in silence.

What is out of reach, docs/policies.md names.
"""

from __future__ import annotations

import pytest
from leak_samples import MORE, PLAIN, TABLES
from leak_samples_exports import EXPORTS, FURTHER
from leak_samples_later import LATER
from leak_samples_routines import ROUTINES
from policy_samples import checked

from govtool.app.questions.policy import load_policies
from govtool.app.versions.index import index_of
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script

PLACES = {
    "starter": {"src": "crm.users", "col": "email", "sink": "share.t", "tmp": "tmp"},
    "gdpr": {"src": "crm.users", "col": "email", "sink": "share.t", "tmp": "tmp"},
    "hipaa": {"src": "ehr.patients", "col": "mrn", "sink": "research.t", "tmp": "tmp"},
    "pci": {"src": "cde.cards", "col": "card_number", "sink": "mart.t", "tmp": "cde"},
}
"""Where each pack finds a sensitive column, and where it must not go."""

RULES = {
    "START001",
    "START004",
    "GDPR-ART5-SHARE",
    "GDPR-OPAQUE",
    "HIPAA-SAFE-HARBOR",
    "HIPAA-OPAQUE",
    "PCI-3-5",
    "PCI-OPAQUE",
}
"""The rules on flows to the sinks."""


def seen(pack: str, dialect: str, text: str, word: str = "") -> str:
    """``violated``, ``unknown``, ``not understood``, or ``silent``; ``word`` is in the name of a file that is written."""
    place = PLACES[pack] | {"word": word}
    found = extract([Script("a.sql", (TABLES + text).format(**place))], Options(dialect=dialect))
    findings = checked(index_of(found.derivations), load_policies([f"pack:{pack}"])).findings
    verdicts = {
        f.verdict.label
        for f in findings
        if f.rule in RULES and (word in f.column if word else f.column.lstrip('"@').startswith(place["sink"]))
    }
    for verdict in ("violated", "unknown"):
        if verdict in verdicts:
            return verdict
    return "not understood" if any(note.severity != "info" for note in found.diagnostics) else "silent"


@pytest.mark.parametrize(
    "pack", [pack if pack in ("gdpr", "pci") else pytest.param(pack, marks=pytest.mark.long) for pack in PLACES]
)
def test_no_attempt_passes_in_silence(pack):
    outcomes = {
        name: seen(pack, dialect, text) for name, (dialect, text) in (PLAIN | MORE | LATER | FURTHER | ROUTINES).items()
    }
    assert {name for name, outcome in outcomes.items() if outcome == "silent"} == set()
    assert sum(outcome == "violated" for outcome in outcomes.values()) >= 120


@pytest.mark.parametrize(
    ("pack", "word"), [("starter", "share"), ("gdpr", "share"), ("hipaa", "research"), ("pci", "mart")]
)
def test_exports_are_found_by_the_names_of_their_places(pack, word):
    outcomes = {name: seen(pack, dialect, text, word) for name, (dialect, text) in EXPORTS.items()}
    assert {name for name, outcome in outcomes.items() if outcome != "violated"} == set()


@pytest.mark.parametrize(
    ("pack", "source", "sink"),
    [
        ("starter", 'crm."Users" ("Email" text)', '"ShareEu".t'),
        ("gdpr", 'crm."Users" ("emailAddress" text)', 'prod."Export".t'),
        ("hipaa", 'ehr."Patients" ("MRN" text)', '"Research".t'),
        ("pci", '"Cde"."Cards" ("CardNumber" text)', '"Mart".t'),
    ],
)
def test_quoted_names_of_mixed_case_are_found(pack, source, sink):
    table, column = source.split(" ")[:2]
    text = f"create table {source}; create table {sink} as select {column[1:]} as w from {table};"
    found = extract([Script("a.sql", text)], Options(dialect="postgres"))
    findings = checked(index_of(found.derivations), load_policies([f"pack:{pack}"])).findings
    assert [f.verdict.label for f in findings if f.rule in RULES and f.column.endswith(".t.w")] == ["violated"]
