"""The settings with which an execution began.

The recorder asks after an action has ended, and the job may have set something else by then. So the session is not
asked: Spark's store of executions has the settings of a session that differ from those of the application, as they
were when the execution began (Spark 3.3 and newer). All others have the values of the application, or the defaults.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from govtool.redaction import is_secret_name
from govtool.spark.live.job.cleaned import clean_setting
from govtool.spark.live.jvm.scala import safely

EFFECTIVE = (
    "spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.caseSensitive", "spark.sql.shuffle.partitions",
    "spark.sql.storeAssignmentPolicy", "spark.sql.legacy.timeParserPolicy", "spark.sql.mapKeyDedupPolicy",
    "spark.sql.parquet.outputTimestampType", "spark.sql.sources.partitionOverwriteMode",
    "spark.sql.parquet.compression.codec", "spark.sql.decimalOperations.allowPrecisionLoss",
    "spark.sql.files.maxPartitionBytes", "spark.sql.adaptive.enabled", "spark.sql.timestampType",
    "spark.sql.crossJoin.enabled",
)  # fmt: skip
"""Settings that count whether or not anybody set them."""

_REDACTED = "*********(redacted)"


class ApplicationSettings:
    """The settings of an application, below those of its sessions.

    Args:
        context: The ``SparkContext``.
    """

    def __init__(self, context: Any) -> None:
        self._set = {str(pair[0]): str(pair[1]) for pair in context.getConf().getAll()}
        self._fresh = context._jvm.org.apache.spark.sql.internal.SQLConf()
        """A configuration in which nothing is set: it answers with the defaults."""
        self._defaults: dict[str, str | None] = {}

    def value(self, key: str) -> str | None:
        """The value of a setting where no session sets it; None: it has none, or is not of this version."""
        if key in self._set:
            return self._set[key]
        if key not in self._defaults:
            found = safely(partial(self._fresh.getConfString, key))
            self._defaults[key] = None if found is None else str(found)
        return self._defaults[key]

    def values(self, keys: Iterable[str], modified: dict[str, str] | None = None) -> dict[str, str]:
        """The values of some settings, with those that a session modified; what has none is left out."""
        found = {key: (modified or {}).get(key, self.value(key)) for key in keys}
        return {key: value for key, value in found.items() if value is not None}

    def changed(self, modified: dict[str, str], known: dict[str, str]) -> dict[str, str]:
        """The settings of SQL that an execution had, where they differ from known ones, without logins and secrets.

        Args:
            modified: Those that the execution's session had modified when it began.
            known: Settings that are written down already, cleaned.
        """
        keys = [key for key in {**known, **modified} if key.startswith("spark.sql.") and not is_secret_name(key)]
        values = {key: clean_setting(key, value) for key, value in self.values(keys, modified).items()}
        return {key: value for key, value in values.items() if value not in (known.get(key), _REDACTED)}


def modified_settings(text: str) -> dict[str, str]:
    """Settings as a map of Scala prints them, ``key -> value``, with the character 1 between them."""
    parts = (part.partition(" -> ") for part in text.split("\x01"))
    return {key: value for key, arrow, value in parts if arrow}
