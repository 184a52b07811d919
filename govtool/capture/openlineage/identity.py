"""Names of OpenLineage as ids of the graph, and back.

Namespace and name are the events' own. Only paths are normalised, so that one place has one name: schemes in lower
case, ``s3a`` and ``s3n`` are ``s3``, percent-decoded, without a trailing slash, cut before partition folders and globs.

    >>> normalise("s3a://lake", "/shop/orders/day=2026-11-20/").id
    's3://lake/shop/orders'
    >>> normalise("postgres://dw:5432", "shop.public.Orders").id
    'postgres://dw:5432/shop.public."Orders"'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote as percent_decode

from govtool.model import HIDDEN, ROWS
from govtool.names import (
    DEFAULT_NAMESPACE,
    OBJECT_STORES,
    ROOTED,
    current_id,
    dataset_id,
    join_name,
    place_of_id,
    quote,
    split_name,
    unquote,
)
from govtool.redaction import clean_location

FILE_SYSTEMS = OBJECT_STORES | ROOTED

JOBS = "job:"
"""The prefix of a job's id where lineage leads to or from one."""

_SAME = {"s3a": "s3", "s3n": "s3"}
_PARTITION = re.compile(r"[^/=]+=[^/]*\Z")
_GLOB = re.compile(r"[*?{\[]")
_UNSAFE = re.compile(r"[\"'\[\]\x00-\x1f]|%(?=[0-9A-Fa-f]{2})")
_ENCODED = re.compile(r"%(?:2[257]|5[BDbd]|[01][0-9A-Fa-f])")
"""What of it is encoded already: it stays as it is."""
_BARE = re.compile(r"(?:[A-Za-z0-9_$:@=+~ -]*/)+[A-Za-z0-9_$:@=+~ -]*\Z|@[a-z0-9_$-]+\Z")
_QUERY = re.compile(r"query:[0-9a-f]+\Z")
_PATH = re.compile(r"[a-z_][a-z0-9_$]*(?:\[\]|\['[^']*'\]|\.[a-z_][a-z0-9_$]*)+\Z")
_ELEMENT = "_element"
MAX_NESTING = 32
"""Levels of nested fields that are read."""


class DatasetName(NamedTuple):
    """A dataset as OpenLineage names it, normalised."""

    namespace: str
    name: str

    @property
    def id(self) -> str:
        """The graph's id."""
        return dataset_id(_text(self.namespace, self.name), self.namespace)

    @property
    def is_path(self) -> bool:
        """True if it is a place in a file system or an object store."""
        return scheme_of(self.namespace) in FILE_SYSTEMS


def scheme_of(namespace: str) -> str:
    """``postgres`` of ``postgres://host``; a namespace without one is its own scheme."""
    return namespace.partition("://")[0].lower()


@lru_cache(maxsize=65536)
def normalise(namespace: str, name: str) -> DatasetName:
    """The dataset that an event means."""
    namespace, name = _namespace(namespace), clean_location(name)
    scheme = scheme_of(namespace)
    if scheme not in FILE_SYSTEMS:
        return DatasetName(namespace, name.strip())
    head, separator, rest = namespace.partition("://")
    if separator:
        host, slash, folder = rest.partition("/")
        namespace = f"{head}://{host}" if host or head != "file" else "file"
        name = f"{folder.rstrip('/')}/{name.lstrip('/')}" if slash and folder else name
    return DatasetName(namespace, _path(name, rooted=scheme not in OBJECT_STORES))


def _namespace(namespace: str) -> str:
    namespace = clean_location(namespace.strip())
    head, separator, rest = namespace.partition("://")
    if separator:
        scheme = head.lower()
        namespace = f"{_SAME.get(scheme, scheme)}://{rest.rstrip('/')}"
    elif head.lower() in ("file:", "file"):
        namespace = "file"
    if namespace == "file://":
        namespace = "file"
    plain = _ENCODED.sub(lambda found: percent_decode(found[0]), namespace)
    return _UNSAFE.sub(_encode, plain) or DEFAULT_NAMESPACE


def _path(name: str, *, rooted: bool) -> str:
    name = name.strip()
    if name.startswith("file:"):
        name = "/" + name.removeprefix("file:").lstrip("/")
    segments: list[str] = []
    for number, segment in enumerate(percent_decode(name).split("/")):
        if not segment:
            continue
        if (number and _PARTITION.match(segment)) or _GLOB.search(segment):
            break
        segments.append(_UNSAFE.sub(_encode, segment))
    lead = "/" if rooted and name.startswith("/") else ""
    return lead + "/".join(segments)


def _encode(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


@lru_cache(maxsize=65536)
def _text(namespace: str, name: str) -> str:
    """The canonical text of a name below its namespace."""
    if scheme_of(namespace) in FILE_SYSTEMS:
        return name or "/"
    if namespace == DEFAULT_NAMESPACE and (_QUERY.match(name) or "/" in name):
        return name if "/" not in name else quote(name)
    return join_name([part if _BARE.match(part) else quote(part) for part in name.split(".")])


def parse_id(text: str, namespaces: Iterable[str]) -> DatasetName:
    """The inverse of ``DatasetName.id``, given the known namespaces; others are recognised by their form."""
    text = current_id(text)
    place = place_of_id(text)
    if place is not None:
        return DatasetName(*place)
    known = max((n for n in namespaces if n != DEFAULT_NAMESPACE and text.startswith(f"{n}/")), key=len, default=None)
    if known is None:
        match = re.match(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*(?=/)", text)
        known = match[0] if match else None
    if known is None:
        name = ".".join(unquote(part) for part in split_name(text))
        found = re.match(r"([A-Za-z0-9+]+://[^/]*)/(.*)", name, re.DOTALL)
        if found is not None and scheme_of(_namespace(found[1])) in FILE_SYSTEMS:
            return normalise(found[1], found[2])
        return DatasetName(DEFAULT_NAMESPACE, name)
    name = text[len(known) + 1 :]
    if scheme_of(known) in FILE_SYSTEMS:
        return DatasetName(known, name)
    return DatasetName(known, ".".join(unquote(part) for part in split_name(name)))


def job_id(namespace: str, name: str) -> str:
    """The id of a job as an end of lineage."""
    return f"{JOBS}{job_file(namespace, name)}"


def job_file(namespace: str, name: str) -> str:
    """Return the name of a job in the place where evidence has a file."""
    return f"{namespace}/{name}".encode("utf-8", "backslashreplace").decode()


class Fields:
    """The columns of one dataset by the names that events use for them.

    Nested fields are ``address.zip`` in events and here alike; an array's element, ``items._element.price``, is
    ``items[].price``. A field whose name has a dot wins over a field of a field.
    """

    def __init__(self, fields: object = None) -> None:
        self.columns: list[tuple[str, str | None]] = []
        """Paths with their types, in order."""
        self._by_name: dict[str, str] = {}
        self._add(fields, "", "", 0)

    def _add(self, fields: object, raw: str, path: str, depth: int) -> None:
        if not isinstance(fields, list) or depth > MAX_NESTING:
            return
        found: list[tuple[str, str, Mapping[str, Any]]] = []
        for field in fields:
            if not isinstance(field, Mapping) or not isinstance(field.get("name"), str) or not field["name"]:
                continue
            name = field["name"]
            if depth and name == _ELEMENT:
                inner, kind = f"{path}[]", field.get("type")
            else:
                inner = (f"{path}." if path else "") + quote(name)
                kind = field.get("type")
            whole = f"{raw}.{name}" if raw else name
            # A column called a.b goes before the field b of a column a.
            if not depth:
                self._by_name[whole] = inner
            else:
                self._by_name.setdefault(whole, inner)
            if all(inner != known for known, _ in self.columns):
                self.columns.append((inner, kind if isinstance(kind, str) and kind else None))
            found.append((whole, inner, field))
        for whole, inner, field in found:
            self._add(field.get("fields"), whole, inner, depth + 1)

    def path(self, name: str) -> str:
        """The path of a column that an event names."""
        known = self._by_name.get(name)
        if known is not None:
            return known
        if name in (ROWS, HIDDEN):
            return name
        if "[" in name and _PATH.match(name):
            return name
        return quote(name)


def field_name(path: str) -> str:
    """A path as events name it; the inverse of ``Fields.path`` for the fields of a schema."""
    if path in (ROWS, HIDDEN):
        return path
    parts = []
    for part in split_name(path):
        stem = part
        elements = 0
        while stem.endswith("[]"):
            stem, elements = stem[:-2], elements + 1
        parts += [unquote(stem), *[_ELEMENT] * elements]
    return ".".join(parts)
