"""Facts of a job: its script, its software, its settings."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import time
from typing import Any

from govtool.redaction import is_secret_name
from govtool.spark.live.job.cleaned import clean_setting
from govtool.spark.live.spool import FORMAT

_MAX_SCRIPT = 16 << 20


def process_facts() -> dict[str, Any]:
    """The first line of a spool: the process and its script."""
    facts: dict[str, Any] = {
        "e": "process",
        "format": FORMAT,
        "pid": os.getpid(),
        "time": time.time(),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "host": f"{platform.system()}-{platform.machine()}",
        "cwd": os.getcwd(),
    }
    facts.update(script_facts())
    return facts


def script_facts() -> dict[str, Any]:
    """The main script: its path, its module with ``-m``, the digest of its text."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    path = getattr(main, "__file__", None) or (sys.argv[0] if sys.argv and sys.argv[0] not in ("", "-c", "-m") else "")
    facts: dict[str, Any] = {}
    if spec is not None and getattr(spec, "name", "") not in ("", "__main__"):
        facts["module"] = spec.name
    if path:
        facts["script"] = os.path.abspath(path)
        try:
            with open(path, "rb") as file:
                facts["digest"] = hashlib.sha256(file.read(_MAX_SCRIPT)).hexdigest()
        except OSError:
            pass
    return facts


def session_facts(session: Any) -> dict[str, Any]:
    """A session: its application, versions and settings; values of secrets are not kept."""
    conf = {}
    current = session._jsparkSession.conf().getAll()
    entries = current.iterator()
    while entries.hasNext():
        entry = entries.next()
        conf[entry._1()] = entry._2()
    found = context_facts(session.sparkContext, conf)
    return {**found, "session": session_id(session)}


def context_facts(context: Any, settings: dict[str, str] | None = None) -> dict[str, Any]:
    """An application: its versions and settings, where it has a ``SparkContext`` and maybe no session.

    Args:
        context: The ``SparkContext``.
        settings: Those of a session, above those of the context.
    """
    jvm = context._jvm
    conf = {**{pair[0]: pair[1] for pair in context.getConf().getAll()}, **(settings or {})}
    return {
        "e": "session",
        "time": time.time(),
        "application": context.applicationId,
        "name": context.appName,
        "user": context.sparkUser(),
        "spark": context.version,
        "java": jvm.java.lang.System.getProperty("java.version"),
        "scala": jvm.scala.util.Properties.versionNumberString(),
        "conf": {key: clean_setting(key, value) for key, value in sorted(conf.items())},
    }


def changed_settings(execution: Any, known: dict[str, str]) -> dict[str, Any]:
    """The settings that an execution's session has by now, where they differ from those of the first, as ``settings``.

    For an execution of which Spark does not tell the settings with which it began.
    """
    text = execution.sparkSession().sessionState().conf().getAllConfs().mkString("\x01")
    changed: dict[str, str] = {}
    for part in text.split("\x01"):
        key, _, value = part.partition(" -> ")
        if not key.startswith("spark.sql.") or known.get(key) == value or is_secret_name(key):
            continue
        cleaned = clean_setting(key, value)
        if known.get(key) != cleaned:
            changed[key] = cleaned
    return {"settings": changed} if changed else {}


def one_line(message: str) -> str:
    """The first line of an error."""
    return message.strip().split("\n", 1)[0][:500]


def session_id(session: Any) -> str:
    """Spark's id of a session; sessions of one application share everything else."""
    return str(session._jsparkSession.sessionUUID())
