"""From a store's address to its objects: the one place that knows the URI schemes of stores."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from govtool.errors import StoreError, UsageError
from govtool.redaction import clean_location
from govtool.store.backends.failures import translate
from govtool.store.backends.objects import Objects, ObstoreObjects
from govtool.store.backends.retry import ONCE, RetryPolicy

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+)://")
_S3 = ("s3", "s3a")
REMOTE = (*_S3, "gs", "az", "abfs", "abfss")
"""The schemes of object stores."""
SCHEMES = ("file", "memory", *REMOTE)
"""The schemes of a store's address; an address without one is a path."""

_memory: dict[str, Any] = {}


def local_path(uri: str) -> Path | None:
    """The folder that ``uri`` names, or ``None`` if it is not on the local file system."""
    found = _SCHEME.match(uri)
    if not found:
        return Path(uri).expanduser()
    if found[1].lower() != "file":
        return None
    parts = urlsplit(uri)
    if parts.netloc not in ("", "localhost"):
        raise UsageError(
            f"{clean_location(uri)} names a file of another machine",
            code="usage.store",
            hint="use file:///path or a path",
        )
    if why := _not_read(uri):
        raise _no_address(clean_location(uri), why)
    return Path(unquote(parts.path))


def normalise(uri: str) -> str:
    """The address as it is shown: an absolute path for local stores, without credentials for others.

    Raises:
        UsageError: ``usage.store`` for an empty address, an unknown scheme, or a ``%`` that is not one of a URL.
    """
    if not uri or "\0" in uri:
        raise UsageError("the store's address is empty or not printable", code="usage.store", hint="use --store PATH")
    path = local_path(uri)
    if path is not None:
        return str(path.absolute())
    scheme = uri.split("://", 1)[0].lower()
    if scheme not in SCHEMES:
        raise UsageError(
            f"unknown kind of store: {scheme}://",
            code="usage.store",
            nearest=SCHEMES,
            hint="use a path or s3://bucket/prefix",
        )
    shown = clean_location(re.sub(r"//[^/@]*@", "//", uri)).rstrip("/")
    if why := _no_prefix(uri):
        raise _no_address(shown, why)
    return shown


def _no_address(shown: str, why: tuple[str, str]) -> UsageError:
    return UsageError(f"{shown} is not the address of a store: {why[0]}", code="usage.store", hint=why[1])


def _not_read(uri: str) -> tuple[str, str] | None:
    """Why a part of a URL would be left out, and what to do: a query, a fragment."""
    for mark, escaped in (("?", "%3F"), ("#", "%23")):
        if mark in uri:
            return f"what follows a {mark} would not be read", f"write {escaped} for a {mark} of a name"
    return None


def _no_prefix(uri: str) -> tuple[str, str] | None:
    """Why the prefix of a remote address is none, and what to do: libraries would refuse it, or read another one."""
    parts = urlsplit(uri)
    try:
        folders = unquote(parts.path, errors="strict").rstrip("/").split("/")[1:]
    except ValueError:
        return "after a % come two digits of a byte of UTF-8", "write %25 for a % of the prefix"
    if "" in folders or not parts.path.rstrip("/").isprintable():
        return "a part of its prefix is empty or not printable", "use s3://bucket/prefix"
    return _not_read(uri)


def open_object_store(uri: str, *, create: bool = False) -> Any:
    """The obstore store for an address.

    Args:
        uri: A path, ``file://``, ``memory://`` (a new store), ``memory://name`` (shared within the process), ``s3://``,
            ``gs://`` or ``az://`` with a bucket and a prefix; configured by the usual environment of each.
        create: Make the folder of a local store.

    Raises:
        UsageError: for an address that makes no sense.
        StoreError: if the place cannot be reached.
    """
    from obstore.store import LocalStore, MemoryStore, from_url

    shown = normalise(uri)
    path = local_path(uri)
    try:
        if path is not None:
            return LocalStore(path.absolute(), mkdir=create)
        scheme, rest = uri.split("://", 1)
        if scheme.lower() == "memory":
            return _memory.setdefault(rest, MemoryStore()) if rest else MemoryStore()
        return from_url(uri, **_options(scheme.lower()))
    except (StoreError, UsageError):
        raise
    except Exception as error:
        raise translate(error, "open the store", shown) from error


def _options(scheme: str) -> dict[str, Any]:
    """The settings of the usual environment that obstore does not read itself. Retries are in ``retry``."""
    from govtool.store.backends import aws

    found = aws.s3_options() if scheme in _S3 else {}
    return {**found, "retry_config": {"max_retries": 0}}


def open_objects(uri: str, *, create: bool = False) -> Objects:
    """The objects at an address; see `open_object_store` for arguments and errors."""
    path = local_path(uri)
    shown = normalise(uri)
    store = open_object_store(uri, create=create)
    if path is None:
        from govtool.store.backends import aws

        scheme = uri.split("://", 1)[0].lower()
        retries = ONCE if scheme == "memory" else aws.retry_policy() if scheme in _S3 else RetryPolicy()
        return ObstoreObjects(shown, store, retries)
    from govtool.store.backends.local import LocalObjects

    return LocalObjects(shown, store, path.absolute())
