"""The environment of an application: software with its versions, the class of machine."""

from __future__ import annotations

import re

from govtool.capture.spark.eventlog.application import Application
from govtool.model.run import Software

_JAR = re.compile(r"(.+?)-(\d[\w.+-]*?)\.jar\Z")
_LONGEST_JAR = 4_000
_PACKAGE = re.compile(r"(?<![\w.-])([\w.-]++:[\w.-]++):([\w.+-]+)")
_MACHINES = {"amd64": "x86_64", "aarch64": "arm64"}


def software_of(application: Application) -> tuple[Software, ...]:
    """Spark, Scala, Java, and jars and packages that were added; sorted."""
    found = {
        Software(name, version)
        for name, version in (("spark", application.version), ("scala", application.scala), ("java", application.java))
        if version
    }
    for jar in application.added:
        named_ = _JAR.match(jar) if len(jar) <= _LONGEST_JAR else None
        if named_ is not None:
            found.add(Software(named_[1].lower(), named_[2]))
    for package in _PACKAGE.finditer(application.config.get("spark.jars.packages", "")):
        found.add(Software(package[1].lower(), package[2]))
    return tuple(sorted(found))


def host_of(application: Application) -> str:
    """The class of machine: ``Linux-x86_64``."""
    name, arch = application.system.get("os.name", ""), application.system.get("os.arch", "")
    return f"{name}-{_MACHINES.get(arch, arch)}" if name and arch else name
