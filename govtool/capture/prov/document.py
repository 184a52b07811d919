"""Reads a PROV document into plain frozen data; what is not well formed becomes a diagnostic.

PROV-JSON, PROV-N and PROV-JSONLD are parsed by the ``prov`` package. Bundles are read with their document: they say who
stated what, not other things. Terms and constraints: W3C PROV-DM, https://www.w3.org/TR/prov-dm/.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from govtool.model import Diagnostic
from govtool.redaction import clean_location, clean_text

if TYPE_CHECKING:
    from prov.model import ProvBundle, ProvDocument, ProvRecord

FORMATS: Mapping[str, str] = {".json": "json", ".jsonld": "jsonld", ".provn": "provn"}
"""Formats by the suffix of a file; anything else is PROV-JSON."""
MAX_BYTES = 256 * 1024 * 1024
"""Of one document: it is held in memory."""


MAX_PREFIXES = 1_000
"""Of one document, or bundle: each is compared with all others by the ``prov`` package."""
_PREFIX = re.compile(r"^[ \t]*+prefix\b", re.MULTILINE)


class Name(NamedTuple):
    """A qualified name."""

    namespace: str
    """URI."""
    local: str

    @property
    def uri(self) -> str:
        """The whole."""
        return self.namespace + self.local


@dataclass(frozen=True, slots=True)
class Element:
    """An entity, an activity or an agent."""

    name: Name
    label: str = ""
    types: tuple[str, ...] = ()
    """Local parts, sorted: ``SoftwareAgent``, ``Person``, ``Collection`` …"""
    location: str = ""
    version: str = ""
    """The value of an attribute called ``version``, of any namespace."""
    started: str | None = None
    ended: str | None = None


class ProvRelation(NamedTuple):
    """A relation of PROV-DM with its formal attributes, by their names in PROV-JSON without ``prov:``."""

    kind: str
    """``wasGeneratedBy``, ``used`` …"""
    ends: Mapping[str, Name]
    time: str | None = None
    types: tuple[str, ...] = ()


@dataclass(slots=True)
class ProvContent:
    """Everything that documents say; filled while reading."""

    entities: dict[Name, Element] = field(default_factory=dict)
    activities: dict[Name, Element] = field(default_factory=dict)
    agents: dict[Name, Element] = field(default_factory=dict)
    relations: list[ProvRelation] = field(default_factory=list)
    notes: list[Diagnostic] = field(default_factory=list)


def read_document(data: bytes, file: str, form: str, into: ProvContent) -> bool:
    """Add the statements of a text; return whether it is a PROV document."""
    from prov import Error
    from prov.model import ProvDocument

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            text = data.decode("utf-8-sig")
            if _prefixes(text, form) > MAX_PREFIXES:
                raise ValueError(f"it has more than {MAX_PREFIXES:,} prefixes")
            document = ProvDocument.deserialize(content=text, format=form)
        except (Error, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            into.notes.append(_unreadable(error, file))
            return False
    for item in dict.fromkeys(str(warning.message) for warning in caught):
        into.notes.append(Diagnostic("prov", "warning", item[:300], file))
    _add(document, into)
    return True


def _prefixes(text: str, form: str) -> int:
    """The most prefixes that a document or one of its bundles declares.

    Raises:
        ValueError: It is no JSON, where it has to be.
        RecursionError: It is nested too deeply.
    """
    if form == "provn":
        return len(_PREFIX.findall(text))
    body = json.loads(text)
    if not isinstance(body, dict):
        return 0
    parts = [body, *body["bundle"].values()] if isinstance(body.get("bundle"), dict) else [body]
    names = ("prefix", "@context")
    declared = (part.get(name) for part in parts if isinstance(part, dict) for name in names)
    return max((len(each) for each in declared if isinstance(each, (dict, list))), default=0)


def _unreadable(error: Exception, file: str) -> Diagnostic:
    if isinstance(error, json.JSONDecodeError):
        return Diagnostic("not-json", "error", f"not JSON: {error.msg}", file, error.lineno, error.colno)
    if isinstance(error, RecursionError):
        return Diagnostic("nesting", "error", "nested too deeply", file)
    return Diagnostic("not-prov", "error", f"not a PROV document: {str(error)[:300] or type(error).__name__}", file)


def _add(document: ProvDocument, into: ProvContent) -> None:
    for bundle in (document, *document.bundles):
        for record in _records(bundle):
            _record(record, into)


def _records(bundle: ProvBundle) -> Iterator[ProvRecord]:
    yield from bundle.records


def _record(record: ProvRecord, into: ProvContent) -> None:
    kind = record.get_type().localpart
    identifier = record.identifier
    if record.is_element() and identifier is not None:
        known = {"Entity": into.entities, "Activity": into.activities, "Agent": into.agents}[kind]
        element = _element(record)
        before = known.get(element.name)
        known[element.name] = element if before is None else _merged(before, element)
        return
    ends = {
        name.localpart: _name(value)
        for name, value in record.formal_attributes
        if value is not None and hasattr(value, "localpart")
    }
    times = [value for name, value in record.formal_attributes if isinstance(value, datetime)]
    into.relations.append(ProvRelation(_RELATIONS[kind], ends, _time(times[0]) if times else None, _types(record)))


_RELATIONS = {
    "Generation": "wasGeneratedBy", "Usage": "used", "Communication": "wasInformedBy", "Start": "wasStartedBy",
    "End": "wasEndedBy", "Invalidation": "wasInvalidatedBy", "Derivation": "wasDerivedFrom",
    "Attribution": "wasAttributedTo", "Association": "wasAssociatedWith", "Delegation": "actedOnBehalfOf",
    "Influence": "wasInfluencedBy", "Alternate": "alternateOf", "Specialization": "specializationOf",
    "Mention": "mentionOf", "Membership": "hadMember",
}  # fmt: skip


def _element(record: ProvRecord) -> Element:
    attributes: dict[str, str] = {}
    for name, value in sorted(record.extra_attributes, key=str):
        attributes.setdefault(name.localpart.lower(), _text(value))
    formal = {name.localpart: value for name, value in record.formal_attributes if isinstance(value, datetime)}
    return Element(
        _name(record.identifier),
        label=clean_text(clean_location(attributes.get("label", ""))),
        types=_types(record),
        location=attributes.get("location", "") or attributes.get("atlocation", ""),
        version=attributes.get("version", "") or attributes.get("softwareversion", ""),
        started=_time(formal.get("startTime")),
        ended=_time(formal.get("endTime")),
    )


def _merged(one: Element, other: Element) -> Element:
    """Two statements about one thing."""
    return Element(
        one.name,
        one.label or other.label,
        tuple(sorted({*one.types, *other.types})),
        one.location or other.location,
        one.version or other.version,
        one.started or other.started,
        one.ended or other.ended,
    )


def _types(record: ProvRecord) -> tuple[str, ...]:
    return tuple(sorted({getattr(kind, "localpart", None) or str(kind) for kind in record.get_asserted_types()}))


def _name(identifier: Any) -> Name:
    return Name(clean_location(_clean(identifier.namespace.uri)), _clean(identifier.localpart))


def _text(value: Any) -> str:
    if hasattr(value, "value") and not isinstance(value, str):  # a literal with its type or language
        value = value.value
    return _clean(str(getattr(value, "uri", value))).strip()


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _time(value: datetime | None) -> str | None:
    if value is None:
        return None
    moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
