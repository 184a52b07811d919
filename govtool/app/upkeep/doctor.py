"""Diagnosis of an installation and a store: what is missing, what is wrong, and what a person should decide."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.build_form import COMPILED, form
from govtool.errors import GovtoolError
from govtool.release import __version__

if TYPE_CHECKING:
    from govtool.query.likeness import Proposal

OK, NOTE, WRONG = "ok", "note", "wrong"
_CONTRIBUTORS = frozenset({"docs", "quick", "test"})
"""Extras that bring what works on govtool itself needs."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One thing that was looked at."""

    what: str
    state: str
    """``ok``, ``note`` (works, and could be better) or ``wrong``."""
    detail: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The findings of a diagnosis."""

    checks: tuple[Checked, ...]
    aliases: tuple[Proposal, ...] = ()
    """Names that may be one dataset: for a person to decide."""

    @property
    def healthy(self) -> bool:
        """True if nothing is wrong."""
        return all(check.state != WRONG for check in self.checks)


def diagnose(store: str | None, at: str | None = None, branch: str | None = None) -> Diagnosis:
    """Check the installation, the settings, the cache, the store and the names in the graph, and report problems."""
    settings = _settings()
    checks = [*_installation(), settings, _cache()]
    if settings.state == WRONG:
        return Diagnosis((*checks, Checked("store", NOTE, "not looked at: the settings say where it is")))
    graph, aliases = _graph(store, at, branch)
    return Diagnosis((*checks, *graph), aliases)


def _installation() -> Iterator[Checked]:
    yield Checked("govtool", OK, f"{__version__}, Python {platform.python_version()}")
    found = importlib.util.find_spec("sqlglot.parser")
    compiled = found is not None and not str(found.origin).endswith(".py")
    yield Checked(
        "SQL parser",
        OK if compiled else NOTE,
        f"sqlglot {version('sqlglot')}, {'compiled' if compiled else 'not compiled: parsing takes 2.5 times as long'}",
        "" if compiled else "pip install sqlglotc",
    )
    extractor = form()
    yield Checked(
        "SQL extractor",
        OK,
        extractor if extractor == COMPILED else f"{extractor}; compiled, it is about twice as fast",
        "" if extractor == COMPILED else "GOVTOOL_COMPILE=1 pip install FOLDER, in a clone",
    )
    yield from _libraries()
    yield from _spark()


def _libraries() -> Iterator[Checked]:
    """The libraries whose version is not one that govtool asks for; of an extra, those that are installed."""
    from packaging.requirements import Requirement

    extras = ["", *(set(metadata("govtool").get_all("Provides-Extra") or ()) - _CONTRIBUTORS)]
    ranges = {
        (wanted.name, wanted.specifier)  # several extras may bring the same
        for wanted in map(Requirement, requires("govtool") or ())
        if wanted.marker is None or any(wanted.marker.evaluate({"extra": extra}) for extra in extras)
    }
    for name, specifier in sorted(ranges, key=str):
        try:
            found = version(name)
        except PackageNotFoundError:
            continue
        if not specifier.contains(found, prereleases=True):
            text = f"{name} {found}, and govtool is tested with {specifier}"
            yield Checked("library", WRONG, text, f"pip install '{name}{specifier}'")


def _spark() -> Iterator[Checked]:
    try:
        spark = version("pyspark")
    except PackageNotFoundError:
        yield Checked("Spark", NOTE, "not installed; needed for --engine spark, govtool run and govtool.spark",
                      "pip install 'govtool[spark]'")  # fmt: skip
        return
    java = shutil.which("java") if not os.environ.get("JAVA_HOME") else f"{os.environ['JAVA_HOME']}/bin/java"
    try:
        output = subprocess.run([java or "java", "-version"], capture_output=True, text=True, timeout=20, check=True)
        first = output.stderr.partition("\n")[0]
        yield Checked("Spark", OK, f"PySpark {spark}, {first}")
    except (OSError, subprocess.SubprocessError):
        yield Checked("Spark", WRONG, f"PySpark {spark} without Java", "install Java 17, or set JAVA_HOME")


def _settings() -> Checked:
    from govtool.config import load_config

    try:
        config = load_config(Path.cwd())
    except GovtoolError as error:
        near = f"; did you mean {error.nearest[0]}?" if error.nearest else ""
        return Checked(
            "settings", WRONG, f"{error}{near}", f"edit {error.location}" if error.location else error.hint or ""
        )
    return Checked("settings", OK, str(config.file) if config.file else "built-in defaults; no govtool.toml")


def _cache() -> Checked:
    from govtool.store.cache import cache_root, size_limit, tree_size

    root = cache_root()
    try:
        bound = size_limit()
    except GovtoolError as error:
        return Checked("cache", WRONG, str(error), error.hint or "")
    place = next(folder for folder in (root, *root.parents) if folder.exists())
    if not os.access(place, os.W_OK):
        return Checked("cache", WRONG, f"{root} cannot be written", "set GOVTOOL_CACHE to a folder that can")
    return Checked("cache", OK, f"{root}: {tree_size(root) / 1e6:,.0f} MB of at most {bound / 1e6:,.0f} MB")


def _graph(store: str | None, at: str | None, branch: str | None) -> tuple[list[Checked], tuple[Proposal, ...]]:
    from govtool.app.coverage.total import total_coverage
    from govtool.app.project.project import commit_at, read_store
    from govtool.app.versions.index import open_index
    from govtool.query.likeness import propose

    try:
        opened = read_store(store)
        commit = commit_at(opened, at, branch)
        coverage = total_coverage(opened, commit)
        index = open_index(opened, commit)
    except GovtoolError as error:
        state = NOTE if error.code in ("store.missing", "usage.empty-store") else WRONG
        return [Checked("store", state, str(error), error.hint or "")], ()
    checks = [Checked("store", OK, f"{opened.uri}: commit {commit.seq} ({commit.short}), {index.edge_count:,} edges")]
    understood = coverage.understood, coverage.statements
    if understood[0] < understood[1]:
        sentence = f"{understood[0]:,} of {understood[1]:,} statements fully understood"
        checks.append(Checked("coverage", NOTE, sentence, "govtool coverage --details"))
    proposals = propose(index)
    if proposals:
        number = sum(len(p.datasets) for p in proposals)
        sentence = f"{number:,} pair{'s' if number > 1 else ''} of names may be one dataset each; see below"
        checks.append(Checked("names", NOTE, sentence, "[aliases] in govtool.toml, where you know that it is so"))
    return checks, proposals
