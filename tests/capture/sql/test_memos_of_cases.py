"""Memos over the cases of ``fixtures/lineage``: each statement is a script of its own, and one of them changes."""

from __future__ import annotations

import random
from collections.abc import Iterable
from zlib import crc32

import pytest
from lineage_cases import Case, load_cases

from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.capture.sql.memos.reuse import Memos, NotReusable, extract_with_memos
from govtool.capture.sql.memos.script_memos import ScriptMemo
from govtool.capture.sql.scripts.script import parse_script
from govtool.model import Derivation

CASES = load_cases()


def scripts_of(case: Case) -> list[Script]:
    """The statements of a case that stand on their own."""
    if "{{" in case.sql or "{%" in case.sql:
        return []
    statements = [s for s in parse_script(case.sql, case.dialect) if s.text and not s.routine]
    return [Script(f"{number:02}.sql", f"{statement.text};") for number, statement in enumerate(statements)]


def by_file(derivations: Iterable[Derivation]) -> dict[str, list[Derivation]]:
    found: dict[str, list[Derivation]] = {}
    for derivation in derivations:
        found.setdefault(derivation.statement.file, []).append(derivation)
    return found


@pytest.mark.parametrize("dialect", sorted({case.dialect for case in CASES}))
def test_an_extraction_with_memos_is_one_without(dialect: str) -> None:
    options = Options(dialect=dialect)
    kept = 0
    for case in CASES:
        scripts = scripts_of(case) if case.dialect == dialect else []
        if len(scripts) < 2:
            continue
        before = by_file(extract(scripts, options).derivations)
        changed = list(scripts)
        at = random.Random(crc32(case.id.encode())).randrange(len(scripts))
        changed[at] = Script(scripts[at].file, f"{scripts[at].text} -- changed")
        try:
            made = extract_with_memos(scripts, options, "").memos
            memos = Memos(made.guard, {file: ScriptMemo.of_text(memo.to_text()) for file, memo in made.scripts.items()})
            found = extract_with_memos(changed, options, "", memos)
        except NotReusable:
            continue
        whole = extract(changed, options)
        stored = [d for file in found.kept for d in before.get(file, ())]
        assert by_file([*stored, *found.extraction.derivations]) == by_file(whole.derivations), case.id
        assert sorted(map(repr, found.extraction.diagnostics)) == sorted(map(repr, whole.diagnostics)), case.id
        kept += len(found.kept)
    assert kept or dialect not in ("postgres", "bigquery", "snowflake", "tsql")
