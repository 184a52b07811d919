"""Selectors with everything that they can name: classes, tags, zones, owners, changes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING

from govtool.errors import UnknownNameError, UsageError
from govtool.graph.index import Index
from govtool.query.selection.selectors import (
    Method,
    Selection,
    jobs,
    select_many,
    unknown,
    written_in,
)

if TYPE_CHECKING:
    from govtool.app.questions.governance import Governance
    from govtool.model.run import Run
    from govtool.policy.classes.governed import Governed
    from govtool.query.runs.history import History
    from govtool.query.selection.software import SoftwareSpec
    from govtool.store import Commit, Reader


class Selector:
    """Selects from one version of a store; policies are read only when a selector needs them.

    Args:
        index: The graph.
        reader: Where it is from.
        commit: Which version it is.
        policies: Policies as on the command line; without any, those of the working directory.
        today: For what expires.
        governance: What is known of this version, to be shared with others.
    """

    def __init__(
        self,
        index: Index,
        reader: Reader,
        commit: Commit,
        policies: Sequence[str] | None,
        today: date,
        governance: Governance,
    ) -> None:
        self.index, self._reader, self._commit = index, reader, commit
        self._wanted, self._today, self._governance = policies, today, governance

    @cached_property
    def governed(self) -> Governed:
        """The graph as the policies see it.

        Raises:
            UsageError: There are no policies, or they are mistaken.
        """
        return self._governance.governed(self._wanted, self._today)

    @cached_property
    def known(self) -> Governed:
        """The facts of datasets, with policies or without."""
        return self._governance.known(self._wanted, self._today)

    def select(self, texts: Sequence[str], exclude: Sequence[str] = ()) -> Selection:
        """See ``govtool.query.selection.selectors.select_many``.

        Raises:
            UsageError: A selector is empty: a variable of a script that was never set.
        """
        for text in (*texts, *exclude):
            if not text.strip():
                raise UsageError("a selector is empty", code="usage.selector", hint="govtool ls --help")
        return select_many(self.index, texts, exclude=exclude, methods=self._methods())

    def columns(self, texts: Iterable[str], option: str) -> tuple[int, ...]:
        """The columns that selectors select, each at least one and no whole dataset.

        Args:
            texts: Selectors.
            option: What they were given to, such as ``--key``.

        Raises:
            UnknownNameError: A selector selects nothing (``usage.unknown-name``).
            UsageError: It selects datasets as a whole (``usage.selector``), or is mistaken.
        """
        found: set[int] = set()
        for text in texts:
            chosen = self.select([text])
            if chosen.datasets:
                name = self.index.dataset_name(chosen.datasets[0])
                raise UsageError(
                    f"{option} {text!r} selects {name} as a whole; it takes columns",
                    code="usage.selector",
                    hint=f"govtool ls --columns {name}",
                )
            if not chosen.columns:
                literal = re.split(r"[*?:]", text)[-1 if ":" in text else 0].strip("./")
                names = [self.index.dataset_name(d) for d in self.index.name_pool(1000, [literal])]
                raise UnknownNameError(
                    f"{option} {text!r} selects no column",
                    nearest=tuple(difflib.get_close_matches(literal, names, cutoff=0.5)) if literal else (),
                    hint="govtool ls shows what a selector selects",
                )
            found.update(chosen.columns)
        return tuple(sorted(found))

    def _methods(self) -> Mapping[str, Method]:
        methods = self._named()
        return {name: _needing(name, method) for name, method in methods.items()}

    def _named(self) -> dict[str, Method]:
        return {
            "class": self._class,
            "tag": self._tag,
            "zone": self._zone,
            "owner": self._owner,
            "changed": self._changed,
            "job": self._job,
            "run": self._run,
            "software": self._software,
            "resource_type": self._resource_type,
        }

    def _class(self, value: str) -> Iterable[int]:
        """Columns with data of a class, of those below it, or by a glob."""
        from govtool.policy.classes.taints import Mode

        spread = self.governed.spread
        name = value.removesuffix(".*") if value.endswith(".*") else value
        if name not in spread.lattice.names and not any(fnmatchcase(c, value) for c in spread.lattice.names):
            raise unknown("class", name, spread.lattice.names)
        wanted = {c for c in spread.lattice.names if fnmatchcase(c, value)} | {name}
        taints = [
            t for t in spread.taints if t.group == 0 and any(spread.lattice.is_a(c, wanted) for c in spread.lowered(t))
        ]
        return [int(node) for node in spread.having(Mode.VALUE, taints)]

    def _tag(self, value: str) -> Iterable[int]:
        places = self.known.places
        tags = {t for own in places.column_tags.values() for t in own} | {
            t for about in places.known.values() for t in about.tags
        }
        if not any(fnmatchcase(t, value) for t in tags):
            named = {t for item in self.known.policies.classify for t in item.value.tags}
            if not any(fnmatchcase(t, value) for t in named):
                raise unknown("tag", value, tags | named)
        whole = {d for d, about in places.known.items() if any(fnmatchcase(t, value) for t in about.tags)}
        return {*places.tagged(t for t in tags if fnmatchcase(t, value)), *(self.index.rows(d) for d in whole)}

    def _zone(self, value: str) -> Iterable[int]:
        places = self.governed.places
        if not any(fnmatchcase(zone, value) for zone in places.zones):
            raise unknown("zone", value, places.zones)
        return [self.index.rows(d) for d, a in places.known.items() if any(fnmatchcase(z, value) for z in a.zones)]

    def _owner(self, value: str) -> Iterable[int]:
        """The datasets, and the columns by themselves, that anybody of a name owns, be it as one of several."""
        owned = self.known.places.owned()
        found = [nodes for owner, nodes in owned.items() if fnmatchcase(owner, value)]
        if not found:
            raise unknown("owner", value, owned)
        return set().union(*found)

    def _resource_type(self, value: str) -> Iterable[int]:
        """Datasets that dbt calls so: ``model``, ``seed``, ``snapshot``, ``source`` or ``exposure``."""
        from govtool.app.questions.facts import read_facts

        facts = [fact for fact in read_facts(self._reader, self._commit) if fact.name == "dbt.id"]
        types = {fact.value.partition(".")[0] for fact in facts}
        if not any(fnmatchcase(kind, value) for kind in types):
            raise unknown("resource_type", value, types)
        names = {fact.dataset for fact in facts if fnmatchcase(fact.value.partition(".")[0], value)}
        found = (self.index.find_dataset(name) for name in names)
        return [self.index.rows(dataset) for dataset in found if dataset is not None]

    @cached_property
    def _history(self) -> History:
        from govtool.app.runs.lookup import read_history

        return read_history(self._reader, self._commit)

    def _job(self, value: str) -> Iterable[int]:
        """Select what statements of a file write, or the existing outputs of runs of a job (by glob)."""
        runs = [run for run in self._history.runs if any(fnmatchcase(job, value) for job in run.jobs)]
        found = {*written_in(self.index, value), *self._made_by(runs)}
        if not found and not runs:
            known = jobs(self.index)
            if not any(fnmatchcase(name, value) for name in known):
                raise unknown("job", value, known | {job for run in self._history.runs for job in run.jobs})
        return found

    def _run(self, value: str) -> Iterable[int]:
        """Select outputs of runs (by id, its beginning or end, or by glob) that exist, or did when they were read."""
        from govtool.app.runs.lookup import find_run, matching_runs, runs_named

        return self._made_by(
            runs_named(self._history, [value])
            or matching_runs(self._history, value)
            or [find_run(self._history, value)]
        )

    def _software(self, value: str) -> Iterable[int]:
        """Select outputs of runs with a piece of software that exist, or did when they were read.

        The flawed software of Muniswamy-Reddy, Macko and Seltzer, "Making a Cloud Provenance-Aware" (TaPP 2009).
        """
        from govtool.query.selection.software import SoftwareSpec

        spec = SoftwareSpec.parse(value)
        used = [run for run in self._history.runs if spec.used_by(run)]
        if not used:
            self._no_software(value, spec)
        return self._made_by(used)

    def _no_software(self, value: str, spec: SoftwareSpec) -> None:
        """A version that no run used selects nothing; software that no run used is a mistake."""
        known = sorted({item.name for run in self._history.runs for item in run.software})
        if not any(fnmatchcase(name.lower().replace("_", "-"), spec.name) for name in known):
            raise UnknownNameError(
                f"no run is known to have used {value!r}",
                code="usage.unknown-software",
                nearest=tuple(difflib.get_close_matches(spec.name, known)),
                hint="govtool runs; what ran comes from govtool ingest spark|openlineage|prov",
            )

    def _made_by(self, runs: Iterable[Run]) -> list[int]:
        found = (self.index.find_dataset(name) for name in self._history.tainted(runs))
        return [self.index.rows(dataset) for dataset in found if dataset is not None]

    def _changed(self, value: str) -> Iterable[int]:
        """Columns of this version that are new or made otherwise: ``changed:main..HEAD``, ``changed:HEAD~1``."""
        from govtool.app.versions.index import open_index
        from govtool.query.versions.columns import column_changes

        start, _, end = value.partition("..")
        if not start:
            raise UsageError("changed: needs a version", code="usage.selector", hint="changed:HEAD~1..HEAD")
        branch = self._commit.branch
        old = open_index(self._reader, self._reader.resolve(start, branch))
        new = open_index(self._reader, self._reader.resolve(end, branch)) if end else self.index
        changed = (
            (new if kind == "add" else old).ref(n) for kind, _, n, _ in column_changes(old, new) if kind != "drop"
        )
        here = (self.index.find(ref) for ref in changed)
        return {node for node in here if node is not None}


def _needing(name: str, method: Method) -> Method:
    """A method that says so where it is given nothing, instead of selecting nothing."""

    def selecting(value: str) -> Iterable[int]:
        if not value.strip():
            raise UsageError(f"{name}: needs a value", code="usage.selector", hint="govtool ls --help")
        return method(value)

    return selecting
