"""The state of one rendering: what was decided, counted and found out, and what macros may do with it.

``MacroRun`` is what dbt's names and the macros of packages are given; how names are resolved is in ``rendering``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from govtool.capture.sql.templates.budget import Budget, Clock
from govtool.capture.sql.templates.columns import TemplateColumn, warehouse_name
from govtool.capture.sql.templates.dbt_relation import UNSET, DbtRelation
from govtool.capture.sql.templates.macros import MacroLibrary
from govtool.capture.sql.templates.unknown import Limit, Unknown, bounded_text, plain, plain_text

MAX_ITERATIONS = 20_000
MAX_CALLS = 20_000
MAX_OUTPUT = 8_000_000

_OF_COLLECTIONS = ("_append", "_extend", "_insert", "_update", "_pop", "_remove", "_clear", "_sort", "_setdefault")
"""Ends of the names of what stands for methods of lists and dictionaries: they run no SQL."""
_READ_ONLY = ("adapter_get_columns_in_relation", "graph_nodes_", "graph_sources_")
"""Begin the names of what stands for values that dbt would read from the catalog and the project's files."""

_BACKTICKS = frozenset(
    {"bigquery", "mysql", "hive", "spark", "spark2", "databricks", "doris", "starrocks", "singlestore", "drill"}
)


ColumnsOf = Callable[[tuple[str, ...]], "Mapping[str, str | None] | None"]
"""The columns of a relation by its parts as written, canonical, in order, with types; None if not all are known."""


def _may_run_sql(value: object) -> bool:
    """Return whether a value is what a macro made that is not known; changing a list is none."""
    if not isinstance(value, Unknown) or not value.is_call:
        return False
    name = str(value).strip("\ue002\ue003")
    return not name.endswith(_OF_COLLECTIONS) and not name.startswith(_READ_ONLY)


class MacroRun(ABC):
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
        self.choices = choices
        self.variables = variables
        self.project = (macros or MacroLibrary()).project_of(file)
        self.package = self.project.package_of(file)
        self.undecided: dict[str, bool] = {}
        """The tests that nothing decides, in order, and how they were taken."""
        self.relations: set[str] = set()
        self.wanted: set[str] = set()
        """Relations whose columns were requested."""
        self.unnamed: set[str] = set()
        """Names that mean nothing here, as they are rendered."""
        self.reasons: dict[str, str] = {}
        """Of macros that are not known, by the name that stands for them: what is missing, and why."""
        self.beside: set[str] = set()
        """Notes of SQL that is run beside the statements of the template, and is not there."""
        self.warned: set[str] = set()
        """Warnings of macros."""
        self.set_values: set[str] = set()
        """Values of macros that are not known, as they are rendered, that ``{% set … %}`` has kept."""
        self.config: dict[str, object] = {}
        self.configured = False
        self.iterations = 0
        self.calls = 0
        self.output = 0
        self._columns = columns

    # -- what macros ask for ------------------------------------------------------------------------------------------

    @abstractmethod
    def dispatched(self, name: str, namespace: str, package: str) -> Any:
        """Resolve ``adapter.dispatch`` for a name, ready to be called; an unknown value if there is none."""

    @abstractmethod
    def variable(self, name: str, default: object = UNSET) -> object:
        """Dbt's ``var``: as given, else as the project and its packages have it, else the default, else unknown."""

    @abstractmethod
    def source_table(self, source: str, table: str) -> DbtRelation:
        """A table of a source: where the property files have it, else as it is called."""

    @abstractmethod
    def source(self, *parts: object) -> object:
        """Return the relation of ``source``."""

    def given(self, name: str, default: object) -> object:
        """A variable as it was given to the ingest, else the default."""
        given = self.variables.get("vars")
        if name in self.variables:
            return self.variables[name]
        return given[name] if isinstance(given, Mapping) and name in given else default

    def columns(self, relation: object) -> list[TemplateColumn] | None:
        """The columns of a relation in their order; None if not all of them are known."""
        if not isinstance(relation, DbtRelation):
            return None
        self.wanted.add(str(relation))
        found = None if self._columns is None else self._columns(relation.parts)
        if not found:
            return None
        return [TemplateColumn(warehouse_name(name, self.dialect), type_ or "") for name, type_ in found.items()]

    def missing(self, name: str, why: str, *, call: bool = True) -> Unknown:
        """Return a placeholder for SQL that is missing, and record why it is."""
        self.reasons[plain(name)] = plain_text(why)
        return Unknown(plain(name), call)

    def is_unknown(self, value: object) -> bool:
        """Return whether nobody gave a value."""
        return isinstance(value, Unknown)

    def unread(self, what: str) -> None:
        """Note that SQL that is run beside the statements is not read: ``the SQL of pre_hook``."""
        self.beside.add(f"{plain_text(what)} is not read: what it does is not known")

    def warn(self, message: object) -> str:
        """Keep a warning of a macro: it may say why its SQL is not what was meant."""
        self.warned.add(f"a macro warns: {plain_text(str(message))}")
        return ""

    def done(self, value: object) -> str:
        """Take the value of ``{% do … %}``: a macro that is not known may have run any SQL."""
        if _may_run_sql(value):
            self.unread(f"the SQL of {value}")
        return ""

    def assigned(self, value: object) -> object:
        """Take the value of ``{% set … %}``, which may have run SQL as well; see ``unused``."""
        if _may_run_sql(value):
            self.set_values.add(str(value).rstrip("\ue003"))
        return value

    def unused(self, output: str) -> None:
        """Note the macros that are not known and of whose values nothing is in the output: else it has a hole there."""
        for value in sorted(self.set_values):
            if value not in output:
                self.unread(f"the SQL of {value}")

    def note(self, message: str) -> str:
        """A mark in the output: its place is not understood."""
        return f"\ue002!{plain_text(message)}\ue003"

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

    def loop(self, values: Any, targets: int) -> Iterable[object]:
        """The iterations of a ``for`` over so many targets (0: one that is no tuple), counted as they are made."""
        try:
            items = list(islice(iter(values), MAX_ITERATIONS + 1))
        except TypeError:
            return []
        self.budget.spend([None] * len(items))
        return self._counted(items, targets)

    def _counted(self, items: list[object], targets: int) -> Iterator[object]:
        for item in items:
            self.iterations += 1
            if self.iterations > MAX_ITERATIONS:
                raise Limit(f"more than {MAX_ITERATIONS} iterations")
            yield self.unpack(item, targets) if targets else item

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
