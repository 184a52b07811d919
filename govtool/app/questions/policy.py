"""Policies at work: where they are, checking a version of a store, their tests, what lint says of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from govtool.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from govtool.graph.index import Index
    from govtool.policy.classes.dataset_facts import ToolFact
    from govtool.policy.files.model import PolicyTest
    from govtool.policy.files.policy_set import PlacedPart, PolicySet
    from govtool.policy.rules.finding import PolicyRemark
    from govtool.store import Commit, Reader

FOLDER = "policies"
"""The folder of policies below the working directory."""
PACK = "pack:"


def pack_folder() -> Path:
    """The folder of the packs: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).parents[2]
    shipped = package / "_policies"
    return shipped if shipped.is_dir() else package.parent / FOLDER


def pack_names() -> list[str]:
    """The names of the packs, sorted."""
    return sorted(path.stem for path in pack_folder().glob("*.yml"))


def policy_files(wanted: Sequence[str] | None) -> list[tuple[Path, str]]:
    """The policy files that are asked for, each with the name that messages use.

    Args:
        wanted: Files, folders and ``pack:NAME``; without any, ``policies/**/*.yml``.

    Raises:
        UsageError: There are none (``policy.none``).
        UnknownNameError: There is no such pack (``policy.unknown-pack``).
    """
    from govtool.policy.files.load import files_below

    found: dict[Path, str] = {}
    for item in wanted or [FOLDER]:
        if item.startswith(PACK):
            name = item.removeprefix(PACK)
            if name not in pack_names():
                raise UnknownNameError(
                    f"no pack {name}",
                    code="policy.unknown-pack",
                    nearest=tuple(difflib.get_close_matches(name, pack_names())),
                    hint=f"one of {', '.join(pack_names())}",
                )
            found[(pack_folder() / f"{name}.yml").resolve()] = item
            continue
        path = Path(item)
        if item and _exists(path):  # an empty text is a variable without a value, and not the working directory
            for file in files_below(path):
                found.setdefault(file.resolve(), file.as_posix())
        elif wanted:
            hint = f"--policy {PACK}{item}" if item in pack_names() else None
            raise UsageError("no such file or folder", code="policy.unreadable", location=item, hint=hint)
    if not found:
        raise UsageError(
            f"there are no policies in {', '.join(wanted or [FOLDER])}",
            code="policy.none",
            hint="--policy FILE, --policy pack:starter, or write policies/privacy.yml",
        )
    return list(found.items())


def _exists(path: Path) -> bool:
    """Return whether there is something; not where the name is none that the file system can have."""
    try:
        return path.exists()
    except OSError:
        return False


def load_policies(wanted: Sequence[str] | None) -> PolicySet:
    """Load the policies that are asked for; see ``policy_files`` and ``govtool.policy.files.load.load``."""
    from govtool.policy.files.load import load

    return load(policy_files(wanted))


def stated_facts(store: Reader, commit: Commit) -> list[ToolFact]:
    """Return the facts that dbt and other tools state of the datasets of a commit, in the words of policies."""
    from govtool.app.questions.facts import read_facts
    from govtool.policy.classes.dataset_facts import ToolFact

    return [ToolFact(f.dataset, f.column, f.name, f.value, f.file) for f in read_facts(store, commit)]


class Outcome(NamedTuple):
    """The result of a policy's test."""

    name: str
    place: str
    missing: tuple[str, ...]
    """Expected and not found: ``PII001 mart.audience.email violated``."""
    surplus: tuple[str, ...]
    """Errors that were not expected."""
    problem: str | None = None
    """The reason why it could not be run."""

    @property
    def passed(self) -> bool:
        """True if all that was expected was found, and no other error."""
        return not self.missing and not self.surplus and self.problem is None


def run_tests(policies: PolicySet, today: date, pattern: str | None = None) -> list[Outcome]:
    """Run the tests of policies; each judges the rules of its own file.

    Args:
        policies: The policies.
        today: For waivers, where a test does not give its own day.
        pattern: Only tests whose name contains this.
    """
    return [_run_test(policies, test, today) for test in policies.tests if not pattern or pattern in test.value.name]


def nearest_tests(policies: PolicySet, text: str) -> tuple[str, ...]:
    """The names of tests that are most like a text."""
    return tuple(difflib.get_close_matches(text, [test.value.name for test in policies.tests], cutoff=0.4))


def _run_test(policies: PolicySet, test: PlacedPart[PolicyTest], today: date) -> Outcome:
    from govtool.errors import GovtoolError
    from govtool.policy.classes.governed import govern
    from govtool.policy.rules.check import check

    value, place = test.value, test.place
    day = value.today or today
    try:
        index, tool_facts, problem = graph_of(value.given.sql, value)
        base = None
        if value.given.base is not None:
            before, facts_before, worse = graph_of(value.given.base, value)
            problem = problem or worse
            base = govern(before, policies, day, metadata=value.given.metadata, tool_facts=facts_before)
        if problem:
            return Outcome(value.name, place, (), (), problem)
        result = check(govern(index, policies, day, metadata=value.given.metadata, tool_facts=tool_facts), day, base)
    except GovtoolError as error:
        return Outcome(value.name, place, (), (), error.message)
    own = {r.value.id for r in policies.rules if r.file == test.file}
    found = {(f.rule, f.column, f.verdict.label): f for f in result.findings if f.rule in own}
    wanted = {(e.rule, e.column, e.verdict) for e in value.expect}
    errors = {key for key, f in found.items() if f.severity == "error" and key[2] == "violated"}
    return Outcome(
        value.name,
        place,
        tuple(sorted(" ".join(key) for key in wanted - found.keys())),
        tuple(sorted(" ".join(key) for key in errors - wanted)),
    )


def graph_of(sql: str, test: PolicyTest) -> tuple[Index, list[ToolFact], str | None]:
    """The graph of a test's SQL, with its comments and tags, and the reason if it cannot be trusted."""
    from govtool.app.ingest.sql_options import check_dialect, facts_in
    from govtool.app.versions.index import index_of
    from govtool.capture.sql.extract import Options, extract
    from govtool.capture.sql.files import Script
    from govtool.capture.sql.schemas.supplied import schema_from_mapping
    from govtool.model import Derivation, OutputColumn, Statement
    from govtool.policy.classes.dataset_facts import ToolFact

    dialect = check_dialect(test.given.dialect)
    schema = schema_from_mapping(test.given.schema_, dialect)
    scripts, settings = [Script("test.sql", sql)], Options(dialect=dialect, schema=schema)
    extraction = extract(scripts, settings)
    wrong = next((d for d in extraction.diagnostics if d.severity == "error"), None)
    # The tables of the schema are there whether or not the SQL reads them.
    declared = [
        Derivation(
            name,
            "table",
            "declare",
            Statement("given", "create_table", dialect, "given"),
            tuple(OutputColumn(path, kind) for path, kind in columns.items()),
        )
        for name, columns in schema.tables.items()
    ]
    problem = None if wrong is None else f"the SQL was not understood: {wrong.message}"
    derivations = [*declared, *extraction.derivations]
    tool_facts = [
        ToolFact(f.dataset, f.column, f.name, f.value, f.file) for f in facts_in(scripts, settings, derivations)
    ]
    return index_of(derivations), tool_facts, problem


def lint(
    policies: PolicySet, index: Index | None, today: date, tool_facts: Iterable[ToolFact] = ()
) -> list[PolicyRemark]:
    """List suspicious parts of policies; with a graph, also selectors that match nothing in it."""
    from govtool.policy.rules.lint import in_graph, in_itself

    remarks = list(in_itself(policies, today))
    if index is not None:
        remarks += in_graph(policies, index, today, tool_facts)
    return sorted(remarks, key=lambda r: (r.place.rpartition(":")[0], _number(r.place), r.code))


def _number(place: str) -> int:
    line = place.rpartition(":")[2]
    return int(line) if line.isdigit() else 0
