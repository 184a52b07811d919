"""One rendering of a template: what it sees, what was decided, what was counted, what was found out."""

from __future__ import annotations

import copy
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from govtool.capture.sql.templates import dbt
from govtool.capture.sql.templates.unknown import Limit, Unknown, bounded_text, plain

MAX_ITERATIONS = 20_000
MAX_CALLS = 20_000
MAX_OUTPUT = 8_000_000

_BACKTICKS = frozenset(
    {"bigquery", "mysql", "hive", "spark", "spark2", "databricks", "doris", "starrocks", "singlestore", "drill"}
)


_MACRO = re.compile(r"\{%-?\s*macro\s+(?P<name>\w+)\s*\(.*?\{%-?\s*endmacro\s*-?%\}", re.DOTALL)


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


class MacroLibrary:
    """Macros of a project: ``{% macro name(…) %}`` definitions collected from its files."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        """Collect the macros of these texts; those that do not compile are left out."""
        self.sources: dict[str, str] = {}
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """Collect the macros of one file."""
        for match in _MACRO.finditer(text):
            self.sources.setdefault(match.group("name"), match.group())

    def __contains__(self, name: object) -> bool:
        return name in self.sources

    def __len__(self) -> int:
        return len(self.sources)


class Run:
    """One rendering: the choices made for undecided tests, what was counted, what was found out."""

    def __init__(
        self,
        choices: Mapping[str, bool],
        variables: dict[str, object],
        macros: MacroLibrary | None,
        file: str = "",
        dialect: str = "",
    ) -> None:
        """Start with everything at zero."""
        self.quote = "`" if dialect in _BACKTICKS else '"'
        self.dialect = dialect
        self.file = file
        self.compile: Callable[[str, str, dict[str, object]], Any] = lambda source, name, context: None
        self.choices = choices
        self.variables = variables
        self.macros = macros
        self.undecided: dict[str, bool] = {}
        """The tests that nothing decides, in order, and how they were taken."""
        self.relations: set[str] = set()
        self.config: dict[str, object] = {}
        self.configured = False
        self.iterations = 0
        self.calls = 0
        self.output = 0
        self.templates: dict[str, Any] = {}
        self._context: dict[str, object] | None = None

    def __enter__(self) -> Run:
        self._outer: Run | None = getattr(_state, "run", None)
        _state.run = self
        return self

    def __exit__(self, *_: object) -> None:
        _state.run = self._outer

    def macro(self, name: str) -> Any:
        """A macro of the project by its name, ready to be called; None if there is none."""
        if self.macros is None or name not in self.macros:
            return None
        if name not in self.templates:
            self.templates[name] = None
            self.templates[name] = self.compile(self.macros.sources[name], name, self.context())
        return self.templates[name]

    def context(self) -> dict[str, object]:
        """The names that a template sees: dbt's, and over them the variables given."""
        if self._context is None:
            self._context = {**dbt.names(self, Unknown), **objects(self.variables)}
        return self._context

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
        if isinstance(item, Unknown):
            return item.asked(f" in {plain(values)}", negated=negated)
        if isinstance(values, Unknown):
            return values.asked(f" has {plain(item)}", negated=negated)
        try:
            if isinstance(values, (list, tuple)) and any(isinstance(v, Unknown) for v in values):
                return Unknown("member")
            found = item in values
        except TypeError:
            return Unknown("member")
        return found != negated

    def join(self, *values: object) -> str:
        """``~``."""
        text = "".join("" if value is None else str(value) for value in values)
        return bounded_text(text)

    def finalize(self, value: object) -> object:
        """The value of an output tag."""
        if value is None:
            return ""
        text = value if isinstance(value, str) else str(value)
        self.output += len(text)
        if self.output > MAX_OUTPUT:
            raise Limit(f"more than {MAX_OUTPUT} characters of output")
        return text

    def count_call(self) -> None:
        """Count a call."""
        self.calls += 1
        if self.calls > MAX_CALLS:
            raise Limit(f"more than {MAX_CALLS} calls")


_state = threading.local()


def current() -> Run:
    """The rendering that goes on in this thread; raises ``Limit`` if none does."""
    run: Run | None = getattr(_state, "run", None)
    if run is None:
        raise Limit("not rendering")
    return run
