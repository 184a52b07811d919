"""Names that are one dataset, as ``[aliases]`` of ``govtool.toml`` says: what is ingested of one goes to the other.

Two names are never taken for one on likeness alone: a person says so, and the graph keeps that as a fact of the
dataset.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from govtool.config import CONFIG_FILE, load_config
from govtool.linear import LinearRegex
from govtool.model import ColumnRef, Derivation, Diagnostic
from govtool.model.fact import FACTS, Fact, decode_facts, encode_facts
from govtool.model.records import RECORD_RUNS, RecordRun, decode_record_runs, encode_record_runs
from govtool.model.run import RUNS, Run, decode_runs, encode_runs
from govtool.names import current_id, relative_id
from govtool.store import Fragment

_PATHS = re.compile(",(?=file:)")
"""Between the paths that one leaf of a plan reads."""


@dataclass(slots=True)
class Aliases:
    """Renames datasets; the first pattern that matches counts. Remembers what it renamed."""

    patterns: Sequence[tuple[str, str]]
    root: Path | None = None
    """``[paths] root``: local paths below it are written relative to it."""
    renamed: dict[str, str] = field(default_factory=dict)
    _rules: list[tuple[LinearRegex, str]] = field(init=False)

    def __post_init__(self) -> None:
        self._rules = [
            (LinearRegex("(?s)" + "(.*)".join(map(re.escape, current_id(pattern).split("*")))), current_id(name))
            for pattern, name in self.patterns
        ]

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._rules) or self.root is not None

    def batch(self, batch: str) -> str:
        """The name of a batch that is read under these names: under others it is another."""
        if not self:
            return batch
        rules = repr(self.patterns) if self.root is None else f"{self.patterns!r} {self.root}"
        return f"{batch}:{hashlib.sha256(rules.encode()).hexdigest()[:16]}"

    def dataset(self, name: str) -> str:
        """The name that stands for a name."""
        known = self.renamed.get(name)
        if known is not None:
            return known
        for pattern, target in self._rules:
            found = pattern.groups(name)
            if found is not None:
                parts = iter(found)
                new = "".join(next(parts) if piece == "*" else piece for piece in re.split(r"(\*)", target))
                if new != name:
                    self.renamed[name] = new
                return new
        return name if self.root is None else relative_id(name, self.root.as_posix())

    def derivation(self, derivation_: Derivation) -> Derivation:
        """A derivation under the names that stand."""
        statement = derivation_.statement
        if self.root is not None and statement.file is not None:
            statement = statement._replace(file=relative_id(statement.file, self.root.as_posix()))
        return derivation_._replace(
            target=self.dataset(derivation_.target),
            statement=statement,
            edges=tuple(edge._replace(source=self._column(edge.source)) for edge in derivation_.edges),
            diagnostics=tuple(map(self.diagnostic, derivation_.diagnostics)),
            references=tuple(map(self._column, derivation_.references)),
        )

    def diagnostic(self, note: Diagnostic) -> Diagnostic:
        """A diagnostic under the names that stand."""
        target = note.target and self.dataset(note.target)
        return note if target == note.target else replace(note, target=target)

    def _column(self, column: ColumnRef) -> ColumnRef:
        return ColumnRef(self.dataset(column.dataset), column.path)

    def run(self, run: Run) -> Run:
        """A run under the names that stand."""
        whole = "" if self.root is None else f"file://{self.root.as_posix()}/"
        return replace(
            run,
            job=run.job.replace(whole, "file:") if whole else run.job,
            plan=run.plan.replace(whole, "file:") if whole else run.plan,
            breaks=tuple(map(self.diagnostic, run.breaks)),
            inputs=tuple(replace(one, dataset=self.dataset(one.dataset)) for one in run.inputs),
            outputs=tuple(replace(one, dataset=self.dataset(one.dataset)) for one in run.outputs),
        )

    def record_run(self, run: RecordRun) -> RecordRun:
        """A write's records under the names that stand."""
        inputs = tuple((leaf, ",".join(map(self.dataset, _PATHS.split(name)))) for leaf, name in run.inputs)
        return replace(run, output=self.dataset(run.output), inputs=inputs)

    def fragment(self, fragment: Fragment) -> Fragment:
        """Derivations, runs or records under the names that stand."""
        from govtool.model.columnar import DERIVATIONS, decode, encode

        if fragment.table == RUNS:
            return fragment._replace(data=encode_runs(self.run(run) for run in decode_runs(fragment.data)))
        if fragment.table == RECORD_RUNS:
            records = map(self.record_run, decode_record_runs(fragment.data))
            return fragment._replace(data=encode_record_runs(records))
        if fragment.table == DERIVATIONS:
            return fragment._replace(data=encode(self.derivation(item) for item in decode(fragment.data)))
        return fragment

    def fragments(self, source: str, fragments: Iterable[Fragment]) -> list[Fragment]:
        """Facts and runs under the names that stand, with a fact for each name that was replaced."""
        found: list[Fragment] = []
        facts: list[Fact] = []
        for fragment in fragments:
            if fragment.table == FACTS:
                facts += [fact._replace(dataset=self.dataset(fact.dataset)) for fact in decode_facts(fragment.data)]
            else:
                found.append(self.fragment(fragment))
        return [*found, *self.facts(source, facts)]

    def facts(self, source: str, more: Iterable[Fact] = ()) -> list[Fragment]:
        """A fact for each name that was replaced so far, and others, as a fragment."""
        facts = list(more)
        facts += [Fact(new, None, "alias", old, "declared", CONFIG_FILE, source) for old, new in self.renamed.items()]
        return [Fragment(source, FACTS, encode_facts(facts), len(set(facts)))] if facts else []


def configured() -> Aliases:
    """The aliases of the project.

    Raises:
        UsageError: ``govtool.toml`` is not valid.
    """
    config = load_config(Path.cwd())
    return Aliases(config.aliases, config.paths_root)
