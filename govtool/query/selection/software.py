"""Software as selectors name it: ``pandas``, ``pandas<2.1``, ``parser==1.4``, ``git==3f2a*``.

Versions compare as PEP 440 says; where one is no such version (a digest, a commit), only ``==`` and ``!=`` can be
answered, by glob.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from govtool.errors import UsageError
from govtool.model.run import Run, Software

if TYPE_CHECKING:
    from packaging.version import Version

_SPEC = re.compile(r"\s*(?P<name>[^\s<>=!~]+)\s*+(?:(?P<op><=|>=|==|!=|~=|<|>|=)\s*(?P<version>\S+))?\s*")


@dataclass(frozen=True, slots=True)
class SoftwareSpec:
    """A specification of software: names and versions."""

    name: str
    """A glob, in lower case, with ``-`` for ``_``."""
    operator: str = ""
    version: str = ""

    @classmethod
    def parse(cls, text: str) -> SoftwareSpec:
        """Read ``name``, or a name, an operator and a version.

        Raises:
            UsageError: ``usage.software``.
        """
        found = _SPEC.fullmatch(text)
        if found is None:
            raise UsageError(
                f"{text[:80]!r} names no software",
                code="usage.software",
                nearest=("pandas", "pandas<2.1", "parser==1.4"),
                hint="govtool runs --software 'pandas<2.1'",
            )
        operator = found["op"] or ""
        spec = cls(_plain(found["name"]), "==" if operator == "=" else operator, found["version"] or "")
        if spec.operator in ("<", "<=", ">", ">=", "~=") and _parsed(spec.version) is None:
            raise UsageError(
                f"{spec.version[:40]!r} is not a version that can be compared with {spec.operator}",
                code="usage.software",
                hint=f"software:{spec.name}==VERSION",
            )
        return spec

    def matches(self, software: Software) -> bool:
        """Return whether a piece of software is meant."""
        if not fnmatchcase(_plain(software.name), self.name):
            return False
        if not self.operator:
            return True
        if self.operator in ("==", "!=") and ("*" in self.version or _parsed(self.version) is None):
            return fnmatchcase(software.version, self.version) is (self.operator == "==")
        from packaging.specifiers import SpecifierSet

        version = _parsed(software.version)
        if version is None:  # 17-ea, a digest: only sameness can be told
            return (software.version == self.version) if self.operator == "==" else self.operator == "!="
        return SpecifierSet(f"{self.operator}{self.version}", prereleases=True).contains(version)

    def used_by(self, run: Run) -> bool:
        """Return whether a run used it."""
        return any(self.matches(item) for item in run.software)


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


def _parsed(text: str) -> Version | None:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(text)
    except InvalidVersion:
        return None
