"""Governance of one version of the graph: its classes, zones and owners, from policies and from recorded facts.

Everything is computed on first use and kept, for several questions may need it: propagating classes visits the whole
graph. Policies are read again for each question, as their files may have changed; equal texts give the same result.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from govtool.answers.labels import Labels, Owners
from govtool.errors import UsageError
from govtool.given_files import read_given

if TYPE_CHECKING:
    from govtool.graph.index import Index
    from govtool.policy.classes.dataset_facts import ToolFact
    from govtool.policy.classes.governed import Governed
    from govtool.policy.classes.measured import GroupMeter
    from govtool.policy.files.policy_set import PolicySet
    from govtool.store import Commit, Reader

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

_KEPT = 4
"""Sets of policies whose classes are kept at a time."""


def day_of(today: date | str | None) -> date:
    """The day on which expiry dates are judged: the given one, or today (UTC).

    Raises:
        UsageError: The text is no date (``usage.date``).
    """
    from govtool import clock

    if today is None:
        return clock.now().date()
    if isinstance(today, date):
        return today
    try:
        return date.fromisoformat(today)
    except ValueError as error:
        raise UsageError(f"{today[:40]!r} is not a date", code="usage.date", hint="--today 2026-11-21") from error


class Governance:
    """Policies and facts applied to one version of the graph; safe to share between threads.

    Args:
        index: The graph.
        store: Where it is from.
        commit: Which version it is.
    """

    def __init__(self, index: Index, store: Reader, commit: Commit) -> None:
        self._index, self._store, self._commit = index, store, commit
        self._lock = threading.RLock()
        self._facts: list[ToolFact] | None = None
        self._policies: dict[str, PolicySet] = {}
        self._governed: dict[tuple[str, date], Governed] = {}

    def facts(self) -> list[ToolFact]:
        """The facts that dbt and other tools recorded about datasets and columns.

        Raises:
            StoreError: A fragment cannot be read.
        """
        from govtool.app.questions.policy import stated_facts

        with self._lock:
            if self._facts is None:
                self._facts = stated_facts(self._store, self._commit)
            return self._facts

    def policies(self, wanted: Sequence[str] | None) -> PolicySet:
        """The policies that ``--policy`` names, or those in the folder ``policies``.

        Raises:
            UsageError: There are none (``policy.none``), or they are mistaken.
        """
        return self._loaded(wanted)[1]

    def policies_if_any(self, wanted: Sequence[str] | None) -> PolicySet | None:
        """The same; None where no ``--policy`` is given and the folder ``policies`` has none.

        Raises:
            UsageError: They are mistaken, or a given one cannot be read.
        """
        found = self._loaded_if_any(wanted)
        return found and found[1]

    def governed(self, wanted: Sequence[str] | None, day: date, *, measure: bool = False) -> Governed:
        """The graph with the classes that policies give its columns.

        Args:
            wanted: As ``--policy`` names them.
            day: For what expires.
            measure: Measure the groups of recorded outputs, for declassifiers with such evidence.

        Raises:
            UsageError: There are no policies (``policy.none``), or they are mistaken.
        """
        return self._govern(*self._loaded(wanted), day, measure=measure)

    def known(self, wanted: Sequence[str] | None, day: date) -> Governed:
        """The same, also without policies: then only facts are known.

        Raises:
            UsageError: The policies are mistaken.
        """
        from govtool.policy.files.policy_set import PolicySet

        return self._govern(*(self._loaded_if_any(wanted) or ("", PolicySet(()))), day)

    def labels(self, wanted: Sequence[str] | None, day: date) -> Labels:
        """Classes and owners for an answer. Without policies only owners are known, and nothing is propagated.

        Raises:
            UsageError: The policies are mistaken, or a given one cannot be read.
        """
        from govtool.app.questions.facts import dataset_owners

        found = self._loaded_if_any(wanted)
        if found is None:
            return Owners(dataset_owners(self._store, self._commit))
        from govtool.policy.classes.governed import GovernedLabels

        return GovernedLabels(self._govern(*found, day))

    def _loaded_if_any(self, wanted: Sequence[str] | None) -> tuple[str, PolicySet] | None:
        from govtool.app.questions.policy import FOLDER

        if not wanted and not Path(FOLDER).exists():
            return None  # without importing what reads policies, which costs more than a small question
        try:
            return self._loaded(wanted)
        except UsageError as error:
            if error.code != "policy.none" or wanted:
                raise
        return None

    def _loaded(self, wanted: Sequence[str] | None) -> tuple[str, PolicySet]:
        """The digest of the policies' texts, and the policies."""
        from govtool.app.questions.policy import policy_files
        from govtool.policy.files.load import load

        files = policy_files(wanted)
        digest = _digest(files)
        with self._lock:
            known = self._policies.get(digest)
            if known is None:
                known = load(files)
                _keep(self._policies, digest, known)
            return digest, known

    def _govern(self, digest: str, policies: PolicySet, day: date, *, measure: bool = False) -> Governed:
        from govtool.policy.classes.governed import govern

        if measure:  # anew each time: what the files hold may have changed
            return govern(self._index, policies, day, tool_facts=self.facts(), meter=self._meter())
        with self._lock:
            known = self._governed.get((digest, day))
            if known is None:
                known = govern(self._index, policies, day, tool_facts=self.facts())
                _keep(self._governed, (digest, day), known)
            return known

    def _meter(self) -> GroupMeter:
        from govtool.app.trace.measured_groups import RecordedGroups

        return RecordedGroups(self._store, self._commit)


def _keep(kept: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    """Keep a value, and only the newest few."""
    kept[key] = value
    while len(kept) > _KEPT:
        del kept[next(iter(kept))]


def _digest(files: Sequence[tuple[Path, str]]) -> str:
    """A digest of names and texts; files that cannot be read are reported by the code that loads them."""
    digest = hashlib.sha256()
    for path, name in files:
        try:
            text = read_given(path)
        except OSError:
            text = b""
        digest.update(b"%d %d " % (len(name.encode()), len(text)) + name.encode() + text)
    return digest.hexdigest()
