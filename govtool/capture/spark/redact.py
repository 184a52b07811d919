"""Redaction of Spark applications: settings that may change results are kept, secrets never.

Spark redacts what matches ``spark.redaction.regex`` in its own logs, by default
``(?i)secret|password|token|access[.]?key``
(older ones without ``access.key``); what it missed, or was told to let through, is masked here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from govtool.redaction import SECRET, clean_failure, clean_text, is_secret_name
from govtool.spark.live.job.cleaned import clean_url

_REDACTED = re.compile(r"\*{4,}\(redacted\)|\*{5,}")
_OF_ONE_RUN = re.compile(
    r"spark\.(?:app\.(?:id|startTime|submitTime|attempt\.id|initial\.\S*)|driver\.(?:host|port|bindAddress)|ui\.\S*"
    r"|eventLog\.\S*|history\.\S*|yarn\.app\.\S*|blockManager\.port|port\.maxRetries|repl\.\S*|executor\.id"
    r"|sql\.execution\.(?:id|root\.id)|rdd\.scope\S*|jobGroup\.id|job\.\S*|rootExecution\.id|org\.apache\.\S*"
    r"|redaction\.\S*|govtool\.\S*|extraListeners|sql\.queryExecutionListeners|kubernetes\.driver\.pod\.name"
    r"|sql\.warehouse\.dir|local\.dir|sql\.artifact\.\S*|connect\.\S*session\S*|databricks\.(?:job|task)\S*\.runId)\Z",
    re.IGNORECASE,
)
"""Settings that differ from run to run and change no result."""
_MODULE_OPTIONS = re.compile(
    r"-Djava\.net\.preferIPv6Addresses=(?:false|true)|-XX:\+IgnoreUnrecognizedVMOptions"
    r"|--add-modules=jdk\.incubator\.vector|--add-opens=(?:java|jdk)\.[\w.]+/[\w.]+=ALL-UNNAMED"
    r"|-Djdk\.reflect\.useDirectMethodHandle=false|-Dio\.netty\.(?:\w+=(?:true|false)|allocator\.type=pooled"
    r"|handler\.ssl\.defaultEndpointVerificationAlgorithm=NONE)"
    r"|--enable-native-access=ALL-UNNAMED|--sun-misc-unsafe-memory-access=allow"
)
"""An option of a JVM that Spark adds to every driver and executor (``JavaModuleOptions``): nobody chose it."""
_JAVA_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
MAX_VALUE = 4000
"""Characters of one setting that are kept."""


@lru_cache(maxsize=512)
def clean_value(key: str, value: str) -> str:
    """The value of a setting, without what must not be kept: of a secret all, of options and URLs the passwords."""
    if is_secret_name(key) or _REDACTED.fullmatch(value.strip()):
        return SECRET
    value = clean_url(value) if value.startswith("jdbc:") else value
    return clean_text(_REDACTED.sub(SECRET, value))[:MAX_VALUE]


def clean_config(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of an application or execution that may change its results, redacted and sorted by key.

    Left out is what is another in every run: ports, ids, start times, the places of logs; and the options of JVMs that
    Spark itself adds.
    """
    chosen = {key: _chosen(key, str(value)) for key, value in sorted(settings.items())}
    return {
        key: clean_value(key, value)
        for key, value in chosen.items()
        if value is not None and key.startswith("spark.") and not _OF_ONE_RUN.match(key)
    }


def _chosen(key: str, value: str) -> str | None:
    """The value of a setting as somebody chose it; None if all of it is Spark's own."""
    if key not in _JAVA_OPTIONS or not value:
        return value
    own = [option for option in value.split() if not _MODULE_OPTIONS.fullmatch(option)]
    if len(own) == len(value.split()):
        return value
    return " ".join(own) or None


def first_line(message: str) -> str:
    """An error as one line: its first line with text, at most 500 characters, without secrets and values of rows."""
    return clean_failure(message)[:500]
