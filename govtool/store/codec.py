"""Sealed JSON: the byte form of slots, manifest nodes and the marker."""

from __future__ import annotations

import hashlib
import json
from typing import Any, TypeAlias

from govtool.errors import FormatError, IntegrityError

FORMAT = 1
"""The format of sealed objects that need no more than the first one had. See docs/store.md, "Compatibility"."""
PACKED = 2
"""The format of slots and manifest nodes that name fragments in packs, or filter the sources of nodes."""
NEWEST = PACKED
"""The newest format that this version reads."""

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
"""Anything that JSON can say."""


def canonical(value: object) -> bytes:
    """Canonical JSON: equal values give equal bytes.

    Raises:
        ValueError: for NaN and infinities, which JSON cannot say.
        TypeError: for anything else that JSON cannot say.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def digest(data: bytes) -> str:
    """sha256 in hex."""
    return hashlib.sha256(data).hexdigest()


def seal(body: dict[str, Any]) -> bytes:
    """Canonical JSON of ``body`` plus a ``digest`` of it, so that damage shows without the object's neighbours."""
    return canonical({**body, "digest": digest(canonical(body))})


def unseal(data: bytes, where: str) -> dict[str, Any]:
    """Undo `seal`.

    Args:
        data: The bytes of a slot, a manifest node or the marker.
        where: Its key, for messages.

    Raises:
        IntegrityError: ``store.corrupt`` if the bytes are not what was sealed.
        FormatError: ``store.format`` if a newer version wrote it.
    """
    try:
        body = json.loads(data)
        if not isinstance(body, dict):
            raise TypeError(type(body).__name__)
        version = body.get("format")
        if isinstance(version, int) and version > NEWEST:
            raise FormatError(
                f"{where} has format {version}; this version of govtool reads formats up to {NEWEST}",
                location=where,
                hint="upgrade govtool: pip install --upgrade govtool",
            )
        body.pop("digest", None)
        if seal(body) != data:  # a key that stands twice, or a blank, is damage that the values do not show
            raise ValueError("not the bytes that were sealed")
    except (ValueError, TypeError, RecursionError) as error:
        raise IntegrityError(
            f"{where} is damaged: its content is not what govtool wrote",
            location=where,
            hint="run govtool store fsck, and restore this object from a backup or a copy of the store",
        ) from error
    return body
