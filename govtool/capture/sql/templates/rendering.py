"""One rendering of a template: what it sees, what was decided, what was counted, what was found out."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from govtool.capture.sql.templates import dbt
from govtool.capture.sql.templates.budget import Budget, Clock
from govtool.capture.sql.templates.columns import TemplateColumn, warehouse_name
from govtool.capture.sql.templates.macros import ROOT_PACKAGE, MacroLibrary, adapter_of, dispatched, find, prefixes
from govtool.capture.sql.templates.packages.known import PACKAGES, QUERYING_MACROS
from govtool.capture.sql.templates.properties import SourceTable
from govtool.capture.sql.templates.unknown import Limit, Unknown, bounded_text, plain, plain_text

MAX_ITERATIONS = 20_000
MAX_CALLS = 20_000
MAX_OUTPUT = 8_000_000

_BACKTICKS = frozenset(
    {"bigquery", "mysql", "hive", "spark", "spark2", "databricks", "doris", "starrocks", "singlestore", "drill"}
)


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

ColumnsOf = Callable[[tuple[str, ...]], "Mapping[str, str | None] | None"]
"""The columns of a relation by its parts as written, canonical, in order, with types; None if not all are known."""


class TemplateRun:
    """One rendering: the choices made for undecided tests, what was counted, what was found out."""

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
        self.budget = Budget(clock or Clock())
        self.quote = "`" if dialect in _BACKTICKS else '"'
        self.dialect = dialect
        self.file = file
        self.compile: Callable[[str, str, dict[str, object]], Any] = lambda source, name, context: None
        self.choices = choices
        self.variables = variables
        self.project = (macros or MacroLibrary()).project_of(file)
        self.package = self.project.package_of(file)
        self.undecided: dict[str, bool] = {}
        """The tests that nothing decides, in order, and how they were taken."""
        self.relations: set[str] = set()
        self.wanted: set[str] = set()
        """Relations whose columns were asked for."""
        self.unnamed: set[str] = set()
        """Names that mean nothing here, as they are rendered."""
        self.reasons: dict[str, str] = {}
        """Of macros that are not known, by the name that stands for them: what is missing, and why."""
        self.config: dict[str, object] = {}
        self.configured = False
        self.iterations = 0
        self.calls = 0
        self.output = 0
        self._columns = columns
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

    def missing(self, name: str, why: str, *, call: bool = True) -> Unknown:
        """Return a placeholder for SQL that is missing, and record why it is."""
        self.reasons[plain(name)] = plain_text(why)
        return Unknown(plain(name), call)

    def attribute(self, name: str, attribute: str) -> None:
        """Note that something was wanted of what has no value: of a package perhaps."""
        self.reasons.setdefault(
            f"{name}_{plain(attribute)}",
            f"macro {name}.{attribute} is not known: if {name} is a package, `dbt deps` installs it",
        )

    def is_unknown(self, value: object) -> bool:
        """Return whether nobody gave a value."""
        return isinstance(value, Unknown)

    def note(self, message: str) -> str:
        """A mark in the output: what it says of its place is not understood."""
        return f"\ue002!{plain_text(message)}\ue003"

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

    def given(self, name: str, default: object) -> object:
        """A variable as it was given to the ingest, else the default."""
        given = self.variables.get("vars")
        if name in self.variables:
            return self.variables[name]
        return given[name] if isinstance(given, Mapping) and name in given else default

    def variable(self, name: str, default: object = dbt.UNSET) -> object:
        """Dbt's ``var``: as given, else as the project and its packages say, else the default, else unknown."""
        found = self.given(name, dbt.UNSET)
        if found is not dbt.UNSET:
            return found
        found = self._of_projects(name)
        if found is not dbt.UNSET:
            return self._text(found) if isinstance(found, str) else copy.deepcopy(found)
        return Unknown(name) if default is dbt.UNSET else default

    def _of_projects(self, name: str) -> object:
        own = self.project.package(self.package)
        for package in (self.project.own, *([own] if own is not None and own is not self.project.own else [])):
            for scope in (package.variables.get(own.name) if own is not None else None, package.variables):
                if isinstance(scope, Mapping) and name in scope:
                    return scope[name]
        return dbt.UNSET

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

    def source_table(self, source: str, table: str) -> dbt.DbtRelation:
        """A table of a source: where the property files have it, else as it is called."""
        declared = self.project.properties.sources.get((source, table), SourceTable())
        identifier = self._rendered(declared.identifier) or table
        return dbt.DbtRelation(
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

    def columns(self, relation: object) -> list[TemplateColumn] | None:
        """The columns of a relation in their order; None if not all of them are known."""
        if not isinstance(relation, dbt.DbtRelation):
            return None
        self.wanted.add(str(relation))
        found = None if self._columns is None else self._columns(relation.parts)
        if not found:
            return None
        return [TemplateColumn(warehouse_name(name, self.dialect), type_ or "") for name, type_ in found.items()]

    def identifier(self, column: TemplateColumn, prefix: object = "", suffix: object = "") -> str:
        """A column as it is written in SQL, always in quotes."""
        return self.quoted(f"{prefix}{column.name}{suffix}")

    def quoted(self, name: str) -> str:
        """A name in quotes."""
        return f"{self.quote}{name.replace(self.quote, self.quote * 2)}{self.quote}"

    # -- called from the changed tree ---------------------------------------------------------------------------------

    def test(self, value: object) -> bool:
        """Decide an ``if``."""
        if not isinstance(value, Unknown):
            return bool(value)
        test = value._test
        decision = self.undecided.get(test)
        if decision is None:
            decision = self.choices.get(test)
            if decision is None:
                # A value equals one constant at most: ``target.name == 'dev'`` fails where ``== 'prod'`` holds.
                decision = not (value._equal and self._other_holds(test))
            self.undecided[test] = decision
        return decision != value._negated

    def _other_holds(self, test: str) -> bool:
        subject = test.partition("=")[0] + "="
        return any(
            held and other.startswith(subject) for other, held in (*self.undecided.items(), *self.choices.items())
        )

    def loop(self, values: Any, targets: int) -> list[object]:
        """The iterations of a ``for`` over so many targets (0: one that is no tuple), counted."""
        try:
            items = list(islice(iter(values), MAX_ITERATIONS + 1))
        except TypeError:
            return []
        self.iterations += len(items)
        self.budget.spend([None] * len(items))
        if self.iterations > MAX_ITERATIONS:
            raise Limit(f"more than {MAX_ITERATIONS} iterations")
        return [self.unpack(item, targets) for item in items] if targets else items

    def unpack(self, value: object, targets: int) -> object:
        """A value that is assigned to so many targets: an unknown one is that many unknown ones."""
        if isinstance(value, Unknown):
            return [value[index + 1] for index in range(targets)]
        return value

    def negate(self, value: object) -> object:
        """``not``."""
        return value.opposite() if isinstance(value, Unknown) else not value

    def member(self, item: object, values: Any, negated: bool) -> object:
        """``in`` and ``not in``."""
        self.budget.spend(item, values)
        if isinstance(item, Unknown):
            return item.condition(f" in {plain(values)}", negated=negated)
        if isinstance(values, Unknown):
            return values.condition(f" has {plain(item)}", negated=negated)
        try:
            if isinstance(values, (list, tuple)) and any(isinstance(v, Unknown) for v in values):
                return Unknown("member")
            found = item in values
        except TypeError:
            return Unknown("member")
        return found != negated

    def join(self, *values: object) -> str:
        """``~``."""
        self.budget.spend(values)
        text = "".join("" if value is None else str(value) for value in values)
        return bounded_text(text)

    def finalize(self, value: object) -> object:
        """The value of an output tag."""
        self.budget.spend(value)
        if value is None:
            return ""
        text = value if isinstance(value, str) else str(value)
        self.output += len(text)
        if self.output > MAX_OUTPUT:
            raise Limit(f"more than {MAX_OUTPUT} characters of output")
        return text

    def weighed(self, value: object) -> object:
        """An operand of a comparison or a key, counted."""
        self.budget.spend(value)
        return value

    def count_call(self, *values: object) -> None:
        """Count a call and what it is given."""
        self.budget.spend(*values)
        self.calls += 1
        if self.calls > MAX_CALLS:
            raise Limit(f"more than {MAX_CALLS} calls")


class PackageMacros:
    """A package by its name: its macros are its attributes."""

    __slots__ = ("_package", "_run")

    def __init__(self, run: TemplateRun, package: str) -> None:
        """Remember which."""
        self._run = run
        self._package = package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._run.qualified(self._package, name)


_state = threading.local()


def current() -> TemplateRun:
    """The rendering that goes on in this thread; raises ``Limit`` if none does."""
    run: TemplateRun | None = getattr(_state, "run", None)
    if run is None:
        raise Limit("not rendering")
    return run
