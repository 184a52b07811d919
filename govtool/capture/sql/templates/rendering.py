"""One rendering of a template: the names that it sees, resolved."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping
from typing import Any

from govtool.capture.sql.templates import dbt
from govtool.capture.sql.templates.budget import Clock
from govtool.capture.sql.templates.dbt_relation import UNSET, DbtRelation
from govtool.capture.sql.templates.macros import ROOT_PACKAGE, MacroLibrary, adapter_of, dispatched, find, prefixes
from govtool.capture.sql.templates.packages.known import PACKAGES, QUERYING_MACROS
from govtool.capture.sql.templates.properties import SourceTable
from govtool.capture.sql.templates.run import ColumnsOf, MacroRun
from govtool.capture.sql.templates.unknown import Limit, Unknown, plain


def objects(variables: Mapping[str, object]) -> dict[str, object]:
    """Variables by name; dotted names make objects. Copied: a template may change lists and objects."""
    found: dict[str, object] = {}
    for name, value in variables.items():
        first, *rest = name.split(".")
        if not rest:
            found[name] = copy.deepcopy(value)
            continue
        place = found.setdefault(first, {})
        for part in rest[:-1]:
            place = place.setdefault(part, {}) if isinstance(place, dict) else {}
        if isinstance(place, dict):
            place[rest[-1]] = copy.deepcopy(value)
    return found


PACKAGE_KEY = "\ue004package"
"""Holds, in what a template sees, the package that it belongs to."""


class TemplateRun(MacroRun):
    """One rendering, with the names of dbt, of packages and of macros."""

    def __init__(
        self,
        choices: Mapping[str, bool],
        variables: dict[str, object],
        macros: MacroLibrary | None,
        file: str = "",
        dialect: str = "",
        columns: ColumnsOf | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Start with everything at zero."""
        super().__init__(choices, variables, macros, file, dialect, columns, clock)
        self.compile: Callable[[str, str, dict[str, object]], Any] = lambda source, name, context: None
        self._macros: dict[tuple[str, str], Any] = {}
        self._known: dict[tuple[str, str], Any] = {}
        self._contexts: dict[str, dict[str, object]] = {}
        self._rendering: set[str] = set()

    def __enter__(self) -> TemplateRun:
        self._outer: TemplateRun | None = getattr(_state, "run", None)
        _state.run = self
        return self

    def __exit__(self, *_: object) -> None:
        _state.run = self._outer

    # -- macros -------------------------------------------------------------------------------------------------------

    def macro(self, name: str, package: str | None = None) -> Any:
        """Resolve an unqualified name in a package (default: that of the file), ready to be called; None if it is
        no macro.
        """
        found = find(self.project, name, self.package if package is None else package)
        return None if found is None else self._ready(*found)

    def _ready(self, package: str, name: str, source: str) -> Any:
        key = (package, name)
        if key not in self._macros:
            self._macros[key] = None
            self._macros[key] = self.compile(source, name, self.context(package))
        return self._macros[key]

    def dispatched(self, name: str, namespace: str, package: str) -> Any:
        """Resolve ``adapter.dispatch`` for a name, ready to be called; an unknown value if there is none."""
        found = dispatched(self.project, name, namespace, package, self.dialect)
        if found is not None:
            if found[0] == namespace and name in QUERYING_MACROS.get(namespace, ()):
                return self.known(namespace, name)
            ready = self._ready(*found)
            if ready is not None:
                return ready
        if namespace:
            return self.known(namespace, name) or self.absent(namespace, name)
        return self.known("dbt", name) or Unknown(plain(name))

    def qualified(self, package: str, name: str) -> Any:
        """Resolve ``package.name``, ready to be called; an unknown value if there is no such macro."""
        owner = self.project.package(package)
        own = owner is self.project.own
        # What the project puts in the place of a package's macro is found by dispatch, which the package's macro calls.
        if not own and name in QUERYING_MACROS.get(package, ()):
            found = dispatched(self.project, name, package, package, self.dialect)
            if found is not None and found[0] != package:
                return self._ready(*found) or self.absent(package, name)
            return self.known(package, name)
        if owner is not None and name in owner.macros:
            return self._ready(ROOT_PACKAGE if own else package, name, owner.macros[name]) or self.absent(package, name)
        if owner is None:
            found = dispatched(self.project, name, package, package, self.dialect)
            if found is not None:
                return self._ready(*found) or self.absent(package, name)
            return self.known(package, name) or self.absent(package, name)
        return self.absent(package, name)

    def known(self, package: str, name: str) -> Any:
        """A macro that is understood without its package, ready to be called; None if it is none."""
        key = (package, name)
        if key not in self._known:
            macros = PACKAGES.get(package, {})
            macro = macros.get(name)
            for prefix in prefixes(self.dialect):
                macro = macro or macros.get(name.removeprefix(f"{prefix}__"))
            self._known[key] = None if macro is None else self._called(macro, f"{package}_{name}")
        return self._known[key]

    def _called(self, macro: Callable[..., object], name: str) -> Callable[..., object]:
        def call(*args: object, **options: object) -> object:
            return macro(self, *args, **options)

        call.__name__ = name
        return call

    def absent(self, package: str, name: str) -> Unknown:
        """A macro of a package that is not known here."""
        if self.project.package(package) is not None:
            why = f"macro {package}.{name} is not known: package {package} has none of that name"
        elif package in self.project.missing:
            why = f"macro {package}.{name} is not known: package {package} is not there; `dbt deps` installs it"
        else:
            why = f"macro {package}.{name} is not known: if {package} is a package, `dbt deps` installs it"
        return self.missing(f"{package}_{name}", why, call=False)

    def attribute(self, name: str, attribute: str) -> None:
        """Note that something was wanted of what has no value: of a package perhaps."""
        self.reasons.setdefault(
            f"{name}_{plain(attribute)}",
            f"macro {name}.{attribute} is not known: if {name} is a package, `dbt deps` installs it",
        )

    def namespace(self, package: str) -> PackageMacros | None:
        """The macros of a package, if one of that name is on disk or known; else None."""
        if self.project.package(package) is None and package not in PACKAGES and package not in self.project.missing:
            return None
        return PackageMacros(self, package)

    # -- what templates see -------------------------------------------------------------------------------------------

    def resolve(self, name: str, package: str) -> Any:
        """Resolve a name before dbt's own names count: a macro, or a package; None for neither."""
        if name in self.variables:
            return None
        macro = self.macro(name, package)
        if macro is not None:
            return macro
        if name in self.context(package) and self.project.package(name) is None:
            return None
        return self.namespace(name)

    def context(self, package: str | None = None) -> dict[str, object]:
        """The names that a template of a package sees: dbt's, and over them the variables given."""
        package = self.package if package is None else package
        if package not in self._contexts:
            given = objects(self.variables)
            names = {**dbt.names(self, Unknown, package), **given, PACKAGE_KEY: package}
            target = given.get("target")
            if isinstance(target, dict):
                names["target"] = dbt.DbtTarget({"type": adapter_of(self.dialect), **target})
            self._contexts[package] = names
        return self._contexts[package]

    def variable(self, name: str, default: object = UNSET) -> object:
        """Dbt's ``var``: as given, else as the project and its packages have it, else the default, else unknown."""
        found = self.given(name, UNSET)
        if found is not UNSET:
            return found
        found = self._of_projects(name)
        if found is not UNSET:
            return self._text(found) if isinstance(found, str) else copy.deepcopy(found)
        return Unknown(name) if default is UNSET else default

    def _of_projects(self, name: str) -> object:
        own = self.project.package(self.package)
        for package in (self.project.own, *([own] if own is not None and own is not self.project.own else [])):
            for scope in (package.variables.get(own.name) if own is not None else None, package.variables):
                if isinstance(scope, Mapping) and name in scope:
                    return scope[name]
        return UNSET

    def _text(self, text: str) -> object:
        """A variable's text, which may be a template itself."""
        if ("{{" not in text and "{%" not in text) or text in self._rendering:
            return text
        self._rendering.add(text)
        try:
            macro = self.compile("{% macro value() %}" + text + "{% endmacro %}", "value", self.context())
            return Unknown("var") if macro is None else str(macro())
        finally:
            self._rendering.discard(text)

    def source_table(self, source: str, table: str) -> DbtRelation:
        """A table of a source: where the property files have it, else as it is called."""
        declared = self.project.properties.sources.get((source, table), SourceTable())
        identifier = self._rendered(declared.identifier) or table
        return DbtRelation(
            identifier, self._rendered(declared.schema) or source, self._rendered(declared.database), quote=self.quote
        )

    def _rendered(self, text: str) -> str:
        """The text of a property, which may be a template; empty where it depends on what is not known."""
        if "{" not in text:
            return text
        undecided, self.undecided = self.undecided, {}
        try:
            value = self._text(text)
            known = isinstance(value, str) and not self.undecided and not any(c in value for c in "{\ue000\ue002")
        finally:
            self.undecided = undecided
        return str(value).strip() if known else ""

    def source(self, *parts: object) -> object:
        """Return the relation of ``source``."""
        function = self.context()["source"]
        return function(*parts) if callable(function) else function


class PackageMacros:
    """A package by its name: its macros are its attributes."""

    __slots__ = ("_package", "_run")

    def __init__(self, run: TemplateRun, package: str) -> None:
        """Remember which."""
        self._run = run
        self._package = package

    def macro(self, name: str) -> Any:
        """One of them, ready to be called; unknown if there is none of that name."""
        return self._run.qualified(self._package, name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.macro(name)


_state = threading.local()


def current() -> TemplateRun:
    """The rendering that goes on in this thread; raises ``Limit`` if none does."""
    run: TemplateRun | None = getattr(_state, "run", None)
    if run is None:
        raise Limit("not rendering")
    return run
