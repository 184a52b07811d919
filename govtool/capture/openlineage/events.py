"""One event, checked and taken apart: the entities it is about, with their facets.

What it says becomes registers, ``(part, facet) -> value``: merging events is merging registers (``merge``). The parts
of a run or a job are ``run``, ``job``, ``event``, and an ``in`` and an ``out`` part for each dataset.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from govtool.capture.logs.times import parse_time
from govtool.capture.openlineage.identity import DatasetName, normalise
from govtool.capture.openlineage.redact import clean, shortened
from govtool.model import Diagnostic
from govtool.redaction import clean_location, clean_text

STATES = ("START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER")
RUN, JOB, DATASET, REJECT = "run", "job", "dataset", "reject"

VERSION = "version"
"""The facet with a dataset's version. One that an event lists in several versions has each in a register of its own,
whose name is the facet's and the digest of the value."""
FIELDWISE = frozenset({"outputStatistics", "inputStatistics", "dataQualityMetrics"})
"""Facets of figures, each of which may come in another event: every figure is a register of its own."""

_COUNTS = frozenset({"rowCount", "size", "bytes", "fileCount"})
"""The figures among them that are numbers of things."""


class Key(NamedTuple):
    """An entity: a run of a job, a job as declared, a dataset as declared, or a piece of input that is no event."""

    kind: str
    namespace: str
    name: str
    run: str = ""


class EntityPart(NamedTuple):
    """A part of an entity: ``run``, ``job``, ``event``, ``self``, or a dataset in the role ``in`` or ``out``."""

    role: str
    namespace: str = ""
    name: str = ""

    @property
    def dataset(self) -> DatasetName:
        """The dataset of an ``in`` or ``out`` part."""
        return DatasetName(self.namespace, self.name)


@dataclass(slots=True)
class Event:
    """The content of one event. Values are JSON texts with sorted keys."""

    key: Key
    time: str
    """ISO 8601 in UTC with microseconds, or empty."""
    registers: dict[tuple[EntityPart, str], str] = field(default_factory=dict)
    sql: str | None = None
    """The text of the job's SQL, as it came: for the extractor, never for the store."""


class InvalidEventError(Exception):
    """An object that is no OpenLineage event; the message says why."""


class EventReader:
    """Reads events, and notes what is wrong with parts of them.

    Args:
        file: Where they come from, for diagnostics.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.notes: list[Diagnostic] = []

    def events(self, value: Mapping[str, Any], line: int) -> Iterator[Event]:
        """The events in a JSON object: one, or those of a list ``events`` as servers export them."""
        listed = value.get("events")
        for item in listed if isinstance(listed, list) and "job" not in value else [value]:
            try:
                if not isinstance(item, Mapping):
                    raise InvalidEventError("not an object")
                yield self.event(item, line)
            except InvalidEventError as error:
                self._note(line, f"not an OpenLineage event: {error}", code="not-openlineage", severity="error")

    def event(self, value: Mapping[str, Any], line: int = 1) -> Event:
        """One event.

        Raises:
            InvalidEventError: it has no job and no dataset, or their names are no text.
        """
        time = self._time(value.get("eventTime"), line)
        # The spec's DatasetEvent: facets of a dataset that no run wrote.
        if "dataset" in value and "job" not in value:
            named = self._dataset(value["dataset"], line)
            if named is None:
                raise InvalidEventError("dataset has no namespace or name")
            event = Event(Key(DATASET, named.namespace, named.name), time)
            self._facets(event, EntityPart("self"), value["dataset"].get("facets"), line)
            return event
        job = value.get("job")
        if not isinstance(job, Mapping):
            raise InvalidEventError("neither job nor dataset" if job is None else "job is not an object")
        namespace, name = _text(job.get("namespace")), _text(job.get("name"))
        if name is None:
            raise InvalidEventError("job has no name")
        run = value.get("run")
        if "run" in value and (not isinstance(run, Mapping) or not _text(run.get("runId"))):
            raise InvalidEventError("run has no runId")
        known = _text(run.get("runId")) if isinstance(run, Mapping) else None
        key = Key(
            RUN if known else JOB, clean_location(namespace or "default"), clean_text(clean_location(name)), known or ""
        )
        event = Event(key, time)
        if known and isinstance(run, Mapping):
            state = value.get("eventType", "OTHER")
            state = state.upper() if isinstance(state, str) else "OTHER"
            event.registers[EntityPart("event"), state if state in STATES else "OTHER"] = json.dumps(time)
            self._facets(event, EntityPart("run"), run.get("facets"), line)
        else:
            # A JobEvent has no run: it declares what a job reads and writes.
            event.registers[EntityPart("event"), "DECLARED"] = json.dumps(time)
        producer = _text(value.get("producer"))
        if producer:
            event.registers[EntityPart("event"), "producer"] = json.dumps(clean_location(producer))
        self._facets(event, EntityPart("job"), job.get("facets"), line)
        event.sql = _query(job.get("facets"))
        for role, listed in (("in", value.get("inputs")), ("out", value.get("outputs"))):
            self._datasets(event, role, listed, line)
        return event

    def _datasets(self, event: Event, role: str, listed: object, line: int) -> None:
        if listed is None:
            return
        if not isinstance(listed, list):
            self._note(line, f"{role}puts is not a list")
            return
        versions: dict[EntityPart, dict[str, None]] = {}
        for item in listed:
            named = self._dataset(item, line)
            if named is None:
                continue
            part = EntityPart(role, named.namespace, named.name)
            event.registers[part, "_"] = "true"
            self._facets(event, part, item.get("facets"), line)
            self._facets(event, part, item.get(f"{role}putFacets"), line)
            if (part, VERSION) in event.registers:
                versions.setdefault(part, {})[event.registers[part, VERSION]] = None
        for part, texts in versions.items():
            for text in texts if len(texts) > 1 else ():  # a table joined with what it was before
                name = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
                event.registers[part, f"{VERSION}/{name}"] = text

    def _dataset(self, value: object, line: int) -> DatasetName | None:
        if not isinstance(value, Mapping):
            self._note(line, f"a dataset is not an object but {type(value).__name__}")
            return None
        namespace, name = _text(value.get("namespace")), _text(value.get("name"))
        if name is None:
            self._note(line, "a dataset has no name")
            return None
        return normalise(namespace or "default", name)

    def _facets(self, event: Event, part: EntityPart, facets: object, line: int) -> None:
        if facets is None:
            return
        if not isinstance(facets, Mapping):
            self._note(line, f"the facets of a {part.role} are not an object")
            return
        for name, facet in facets.items():
            if not isinstance(facet, Mapping):
                self._note(line, f"the facet {_shown(str(name))} is not an object")
                continue
            if name == "columnLineage" and not isinstance(facet.get("fields") or {}, Mapping):
                self._note(line, "columnLineage.fields is not an object")
                continue
            value = clean(str(name), facet)
            if part.role == "job" and name == "sql":
                value = _without_query(value)
            if name in FIELDWISE and isinstance(value, dict):
                for key, figure in value.items():
                    if key in _COUNTS and not _is_integer(figure):
                        if figure is not None:
                            self._note(line, f"{name}.{key} is no integer: {_shown(str(figure))}")
                    else:
                        event.registers[part, f"{name}/{key}"] = _json(figure)
            else:
                event.registers[part, str(name)] = shortened(str(name), _json(value))

    def _time(self, value: object, line: int) -> str:
        """The time of an event; empty: it has none, which older integrations leave out.

        Raises:
            InvalidEventError: It has one that is no time: its order among others would be a guess.
        """
        try:
            moment = parse_time(value)
        except (ValueError, OverflowError, OSError):
            moment = None
        if moment is not None:
            return stamp(moment)
        if value is not None:
            raise InvalidEventError(f"eventTime is no time: {_shown(str(value))}")
        self._note(line, "the event has no eventTime", severity="info")
        return ""

    def _note(self, line: int, message: str, *, code: str = "openlineage", severity: str = "warning") -> None:
        self.notes.append(Diagnostic(code, severity, message, self.file, line))


def stamp(moment: datetime) -> str:
    """ISO 8601 in UTC with microseconds, so that texts order as times do; empty where no such time exists."""
    try:
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        return ""
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _text(value: object) -> str | None:
    """A name that can be used: text that is not empty, or a number."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    text = str(value).encode("utf-8", "replace").decode().strip()
    return text or None


def _is_integer(value: object) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())


def _query(facets: object) -> str | None:
    sql = facets.get("sql") if isinstance(facets, Mapping) else None
    query = sql.get("query") if isinstance(sql, Mapping) else None
    return query if isinstance(query, str) and query.strip() else None


def _without_query(value: Any) -> Any:
    return {key: item for key, item in value.items() if key != "query"} if isinstance(value, dict) else value


def _json(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace").decode()


def _shown(name: str) -> str:
    return "".join(ch for ch in name if unicodedata.category(ch)[0] != "C")[:60]
