"""Listings: the files of a dataset as a file system or a plan's own index listed them, without their content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from govtool.model.version import ContentIdentity


class ListedFile(NamedTuple):
    """One file. Its ordinal is its position in the listing."""

    uri: str
    size: int
    """Bytes."""
    modified: int
    """Milliseconds since 1970, UTC."""


@dataclass(frozen=True, slots=True)
class FileListing:
    """Files by URI, size and modification time, in order of their URIs."""

    files: int
    size: int
    """Bytes of all files."""
    modified: int
    """The latest modification time, in milliseconds since 1970."""
    digest: str
    """sha256 over URI, size and modification time of all files."""
    shape: str
    """sha256 over URI and size of all files: equal for files that were only touched."""
    listed: tuple[ListedFile, ...] = ()
    """The files themselves; empty where there are too many to keep."""

    @property
    def identity(self) -> ContentIdentity:
        """The listing as an identity of content: of kind ``files``, as nothing of the content was read."""
        return ContentIdentity("files", None, self.digest, self.files, self.size)


def listing_from(value: Mapping[str, Any]) -> FileListing:
    """Return a listing from its JSON value.

    Raises:
        KeyError, TypeError, ValueError: It is none.
    """
    listed = tuple(ListedFile(str(uri), int(size), int(modified)) for uri, size, modified in value.get("listed") or ())
    return FileListing(
        int(value["files"]),
        int(value["size"]),
        int(value["modified"]),
        str(value["digest"]),
        str(value["shape"]),
        listed,
    )


def listing_value(listing: FileListing) -> dict[str, Any]:
    """The JSON value of a listing."""
    return {
        "files": listing.files,
        "size": listing.size,
        "modified": listing.modified,
        "digest": listing.digest,
        "shape": listing.shape,
        "listed": [list(file) for file in listing.listed],
    }
