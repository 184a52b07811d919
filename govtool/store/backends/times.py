"""The time by another clock than this machine's: that of the server, or of the file system, that holds a store."""

from __future__ import annotations

import contextlib
import uuid
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from govtool import clock
from govtool.errors import StoreError
from govtool.store.backends.files import LocalFiles

if TYPE_CHECKING:
    from govtool.store.backends.objects import ObjectInfo, Objects

SKEW = timedelta(minutes=5)
"""The tolerated difference between two clocks."""
LEAP = timedelta(hours=1)
"""A commit that is so much later than the one before it has its time compared: three requests, off the beaten track."""

AHEAD = timedelta(days=1)
"""How far the newest commit may be in the future for others to commit on top of it, at its time.

Only writers less than `LEAP` after the commit before them are not compared, so that one wrong clock gives an hour.
"""


def check_clock(objects: Objects, now: datetime) -> None:
    """Compare this machine's clock with that of the store.

    Raises:
        StoreError: ``store.clock``: they differ by more than `SKEW`.
    """
    other = store_time(objects)
    if other is not None and abs(now - other) > SKEW:
        raise StoreError(
            f"the clock says {clock.iso(now)}, but that of the store says {clock.iso(other)}",
            code="store.clock",
            location=objects.uri,
            hint="set this machine's clock and run the command again; nothing was committed",
        )


def store_time(objects: Objects) -> datetime | None:
    """The time by the clock of a store: that of an object that was just made; None if it cannot be known.

    On a local disk it is the system's, which is that of the server where the folder is on one.
    """
    if objects.uri.startswith("memory:"):
        return None
    key = f"tmp/clock-{uuid.uuid4().hex}"
    try:
        objects.put(key, b"")
        return next((info.modified for info in _listed(objects) if info.key == key), None)
    except StoreError:
        return None  # what is wrong shows at the next request
    finally:
        with contextlib.suppress(StoreError):  # who may not delete may still commit; gc sweeps it some day
            objects.delete(key)


def _listed(objects: Objects) -> list[ObjectInfo]:
    root = getattr(objects, "root", None)  # obstore's own listing of a local folder hides staging files
    return list(objects.scan("tmp") if root is None else LocalFiles(root).scan("tmp"))
