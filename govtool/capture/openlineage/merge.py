"""Merged events: the result does not depend on their order and repetition.

A state is a map of registers, each with the time of the event that set it. Of two values the later stands, at equal
times the greater text, so that merging is commutative, associative and idempotent. Within one run, what tells lineage,
aliases and tags adds up instead: a later event of a run may say less than an earlier one and take nothing back.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from govtool.capture.openlineage.events import JOB, REJECT, RUN, EntityPart, Event, Key
from govtool.errors import IntegrityError
from govtool.model import Diagnostic

TABLE = "openlineage"
"""The store table that holds a source's merged events."""

_INLINE = 120
"""Characters of a value that is kept in its register; longer ones are kept once, however many runs say the same."""
_CUMULATIVE = frozenset({"columnLineage", "lineage", "symlinks", "tags"})


class RegisterValue(NamedTuple):
    """The value of a register: when it was set, and its JSON text."""

    time: str
    text: str

    def load(self) -> Any:
        """The JSON value."""
        return json.loads(self.text)


class StateRow(NamedTuple):
    """A state as it is stored: ``entity`` rows, and ``value`` rows for long values by their digest."""

    kind: str
    key: str
    doc: str


Registers = dict[tuple[EntityPart, str], RegisterValue]


class MergedEvents:
    """Merged events; ``entities[key][part, facet]`` is a value."""

    def __init__(self) -> None:
        self.entities: dict[Key, Registers] = {}

    def add(self, event: Event) -> None:
        """Merge an event."""
        known = self.entities.setdefault(event.key, {})
        for register, text in event.registers.items():
            # Runs repeat themselves: one copy of what they say will do.
            _set(event.key, known, register, RegisterValue(event.time, sys.intern(text)))

    def reject(self, note: Diagnostic) -> None:
        """Remember a piece of input that is no event, so that coverage counts it."""
        key = Key(REJECT, note.file or "", f"{note.line or 0}:{note.code}")
        doc = json.dumps([note.severity, note.message])
        self.entities.setdefault(key, {})[EntityPart("self"), "_"] = RegisterValue("", doc)

    def update(self, other: MergedEvents) -> None:
        """Merge another state."""
        for key, registers in other.entities.items():
            known = self.entities.setdefault(key, {})
            for register, value in registers.items():
                _set(key, known, register, value)

    def rejects(self) -> list[Diagnostic]:
        """Return the rejected input, in order of place."""
        found = []
        for key in [k for k in self.entities if k.kind == REJECT]:
            severity, message = self.entities[key][EntityPart("self"), "_"].load()
            line, _, code = key.name.partition(":")
            found.append(Diagnostic(code, severity, message, key.namespace, int(line)))
        return sorted(found, key=Diagnostic.sort_key)

    def digest(self) -> str:
        """A name for exactly this state."""
        digest = hashlib.sha256()
        for key in sorted(self.entities):
            digest.update(repr((key, sorted(self.entities[key].items()))).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    # Storage.

    def rows(self) -> dict[str, list[StateRow]]:
        """The state as rows, by job or dataset: what belongs together and repeats itself."""
        found: dict[str, dict[StateRow, None]] = {}
        for key in sorted(self.entities):
            rows = found.setdefault(f"{key.namespace}\x1f{key.name if key.kind != REJECT else ''}", {})
            doc: list[Any] = []
            for (part, facet), value in sorted(self.entities[key].items()):
                stored: Any = value.text
                if len(value.text) > _INLINE:
                    stored = {"sha256": hashlib.sha256(value.text.encode("utf-8", "surrogatepass")).hexdigest()}
                    rows[StateRow("value", stored["sha256"], value.text)] = None
                doc.append([*part, facet, value.time, stored])
            rows[StateRow("entity", json.dumps(key), json.dumps(doc, ensure_ascii=False, separators=(",", ":")))] = None
        return {owner: sorted(rows) for owner, rows in found.items()}

    @classmethod
    def of_rows(cls, rows: Iterable[StateRow]) -> MergedEvents:
        """The inverse of ``rows``.

        Raises:
            IntegrityError: they are not the rows of a state.
        """
        state = cls()
        values: dict[str, str] = {}
        entities: list[StateRow] = []
        for row in rows:
            if row.kind == "value":
                values[row.key] = row.doc
            else:
                entities.append(row)
        try:
            for row in entities:
                registers: Registers = {}
                for role, namespace, name, facet, time, stored in json.loads(row.doc):
                    text = values[stored["sha256"]] if isinstance(stored, dict) else stored
                    registers[EntityPart(role, namespace, name), facet] = RegisterValue(time, text)
                state.entities[Key(*json.loads(row.key))] = registers
        except (ValueError, TypeError, KeyError) as error:
            raise IntegrityError("A fragment holds no OpenLineage events", code="store.corrupt-fragment") from error
        return state


def parts(registers: Registers, role: str) -> dict[EntityPart, dict[str, RegisterValue]]:
    """The parts of an entity in one role, sorted, with their facets; those that were deleted are left out."""
    found: dict[EntityPart, dict[str, RegisterValue]] = {}
    for (part, facet), value in sorted(registers.items()):
        if part.role == role:
            facets = found.setdefault(part, {})
            if '"_deleted":true' not in value.text:
                facets[facet] = value
    return found


def _set(key: Key, known: Registers, register: tuple[EntityPart, str], value: RegisterValue) -> None:
    before = known.get(register)
    if before is None or before == value:
        known[register] = value
    elif key.kind == RUN and register[1] in _CUMULATIVE and register[0].role != "job":
        known[register] = RegisterValue(max(before.time, value.time), _union(before.text, value.text))
    elif key.kind in (RUN, JOB) and register[0].role == "event" and register[1] == "START":
        known[register] = min(before, value)
    else:
        known[register] = max(before, value)


def _union(one: str, other: str) -> str:
    if one == other:
        return one
    both = _joined(json.loads(one), json.loads(other))
    return json.dumps(both, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _joined(one: Any, other: Any) -> Any:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        shared = one.keys() & other.keys()
        return {**one, **other, **{key: _joined(one[key], other[key]) for key in shared}}
    if isinstance(one, list) and isinstance(other, list):
        items = {json.dumps(item, sort_keys=True): item for item in (*one, *other)}
        return [items[text] for text in sorted(items)]
    return max(one, other, key=lambda item: json.dumps(item, sort_keys=True))


def jobs_of(state: MergedEvents) -> Iterator[tuple[tuple[str, str], list[tuple[Key, Registers]]]]:
    """Jobs, sorted, each with its declaration and its runs in order of time."""
    found: dict[tuple[str, str], list[tuple[Key, Registers]]] = {}
    for key, registers in state.entities.items():
        if key.kind in (RUN, JOB):
            found.setdefault((key.namespace, key.name), []).append((key, registers))
    for job in sorted(found):
        yield job, sorted(found[job], key=lambda item: (span(item[1]), item[0].run))


def span(registers: Registers) -> tuple[str, str]:
    """The first and the last time of the events of a run or job; empty where no event had one."""
    times = [value.time for (part, facet), value in registers.items() if part.role == "event" and facet != "producer"]
    return min(times, default=""), max(times, default="")


def run_state(registers: Registers) -> str:
    """Return how a run ended: ``COMPLETE``, ``FAIL``, ``ABORT``; ``START``, ``RUNNING`` or ``OTHER`` if it has not."""
    facets = {facet for part, facet in registers if part.role == "event"}
    return next((s for s in ("COMPLETE", "FAIL", "ABORT", "RUNNING", "START", "OTHER") if s in facets), "DECLARED")
