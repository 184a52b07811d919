"""Jinja in a sandbox, with unknown values, undecided tests and bounds.

Jinja's own parser and compiler do the work; its syntax tree is changed in between: text gets marks of its lines, ``if``
tests and loops go through ``Run``, which decides, records and counts.
"""

from __future__ import annotations

import re
import copy
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from jinja2 import TemplateError, TemplateSyntaxError, nodes, pass_context
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context, Macro
from jinja2.sandbox import SandboxedEnvironment, SecurityError

from govtool.capture.sql import dbt

MAX_ITERATIONS = 20_000
MAX_CALLS = 20_000
MAX_OUTPUT = 8_000_000
MAX_VALUE = 1_000_000
MAX_SOURCE = 4_000_000


_BACKTICKS = frozenset({"bigquery", "mysql", "hive", "spark", "spark2", "databricks", "doris", "starrocks", "singlestore", "drill"})


class Limit(Exception):
    """A template that is not valid, or does more than is allowed."""

    def __init__(self, message: str, line: int | None = None) -> None:
        """Keep the line, 1-based, where it is known."""
        super().__init__(message)
        self.line = line


class Unknown:
    """A value that nobody gave. It renders to its name; whatever is done with it is unknown too.

    As a condition it is a *test*: the same test is decided the same way wherever it occurs in one rendering, and ``not``
    turns it around.
    """

    __slots__ = ("_call", "_equal", "_name", "_negated", "_test")

    def __init__(self, name: str, call: bool = False, test: str = "", negated: bool = False, equal: bool = False) -> None:
        """Remember how it is written, whether it is the result of a call, and what it asks as a condition."""
        self._name = name[:200]
        self._call = call
        self._test = test or self._name
        self._negated = negated
        self._equal = equal

    def __str__(self) -> str:
        return f"\ue002{self._name}\ue003" if self._call else self._name

    __repr__ = __str__

    def __html__(self) -> str:
        return str(self)

    def __getattr__(self, name: str) -> Unknown:
        if name.startswith("__"):
            raise AttributeError(name)
        return Unknown(f"{self._name}_{name}", self._call)

    def __getitem__(self, key: object) -> Unknown:
        return Unknown(f"{self._name}_{_plain(key)}", self._call)

    def __call__(self, *args: object, **kwargs: object) -> Unknown:
        return Unknown(self._name, True)

    def __iter__(self) -> Iterator[Unknown]:
        return iter([Unknown(f"{self._name}_item", self._call)])

    def __len__(self) -> int:
        return 1

    def __bool__(self) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(self._name)

    def __eq__(self, other: object) -> Any:
        return self.asked(f"={_plain(other)}", equal=True)

    def __ne__(self, other: object) -> Any:
        return self.asked(f"={_plain(other)}", equal=True, negated=True)

    def asked(self, question: str, *, negated: bool = False, equal: bool = False) -> Unknown:
        """A condition on this value."""
        return Unknown(self._name, self._call, (self._test + question)[:300], negated, equal)

    def opposite(self) -> Unknown:
        """``not`` this."""
        return Unknown(self._name, self._call, self._test, not self._negated, self._equal)

    def __contains__(self, item: object) -> bool:
        return True

    def __int__(self) -> int:
        return 1

    def __float__(self) -> float:
        return 1.0

    __index__ = __int__

    def _same(self, *_: object) -> Unknown:
        return self

    def __lt__(self, other: object) -> Any:
        return self.asked(f"<{_plain(other)}")

    def __ge__(self, other: object) -> Any:
        return self.asked(f"<{_plain(other)}", negated=True)

    def __gt__(self, other: object) -> Any:
        return self.asked(f">{_plain(other)}")

    def __le__(self, other: object) -> Any:
        return self.asked(f">{_plain(other)}", negated=True)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _same
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __pos__ = _same


def _plain(value: object) -> str:
    return re.sub(r"\W+", "_", str(value)[:60]).strip("_") or "item"


def _objects(variables: Mapping[str, object]) -> dict[str, object]:
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


_MACRO = re.compile(r"\{%-?\s*macro\s+(?P<name>\w+)\s*\(.*?\{%-?\s*endmacro\s*-?%\}", re.DOTALL)


class Run:
    """One rendering: the choices made for undecided tests, what was counted, what was found out."""

    def __init__(self, choices: Mapping[str, bool], variables: dict[str, object], macros: MacroLibrary | None, file: str = "", dialect: str = "") -> None:
        """Start with everything at zero."""
        self.quote = "`" if dialect in _BACKTICKS else '"'
        self.file = file
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

    def context(self) -> dict[str, object]:
        """The names that a template sees: dbt's, and over them the variables given."""
        if self._context is None:
            self._context = {**dbt.names(self, Unknown), **_objects(self.variables)}
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
        return any(held and other.startswith(subject) for other, held in (*self.undecided.items(), *self.choices.items()))

    def loop(self, values: Any) -> list[object]:
        """The iterations of a ``for``, counted."""
        try:
            items = list(islice(iter(values), MAX_ITERATIONS + 1))
        except TypeError:
            return []
        self.iterations += len(items)
        if self.iterations > MAX_ITERATIONS:
            raise Limit(f"more than {MAX_ITERATIONS} iterations")
        return items

    def negate(self, value: object) -> object:
        """``not``."""
        return value.opposite() if isinstance(value, Unknown) else not value

    def member(self, item: object, values: Any, negated: bool) -> object:
        """``in`` and ``not in``."""
        if isinstance(item, Unknown):
            return item.asked(f" in {_plain(values)}", negated=negated)
        if isinstance(values, Unknown):
            return values.asked(f" has {_plain(item)}", negated=negated)
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


def bounded_text(text: str) -> str:
    """The text, unless it is too long."""
    if len(text) > MAX_VALUE:
        raise Limit(f"a value of more than {MAX_VALUE} characters")
    return text


_WIDE = re.compile(r"\d{4,}")


class _Environment(SandboxedEnvironment):
    """The sandbox: no attribute that begins with an underscore, bounded operators, unknown names allowed."""

    intercepted_binops = frozenset({"*", "**", "%", "+"})
    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if isinstance(left, Unknown):
            return left
        if isinstance(right, Unknown):
            return right
        size = _size(left) + _size(right)
        if operator == "**" and (not isinstance(right, (int, float)) or abs(right) > 64 or abs(left) > 1e9):
            raise Limit("a power that is too large")
        if operator == "*":
            if isinstance(left, int) and isinstance(right, int):
                if left.bit_length() + right.bit_length() > 4096:
                    raise Limit("a number that is too large")
            elif isinstance(left, int) or isinstance(right, int):
                count = left if isinstance(left, int) else right
                if _size(left if isinstance(right, int) else right) * max(count, 0) > MAX_VALUE:
                    raise Limit("a value that is too long")
        if operator == "%" and isinstance(left, str) and _WIDE.search(left):
            raise Limit("a format that is too wide")
        if size > MAX_VALUE:
            raise Limit("a value that is too long")
        return super().call_binop(context, operator, left, right)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return isinstance(obj, Unknown) or super().is_safe_attribute(obj, attr, value)

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, Unknown):
            macro = _library_macro(attribute)
            return Unknown(f"{obj._name}_{_plain(attribute)}", obj._call) if macro is None else macro
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(obj, Unknown):
            return obj[argument]
        if isinstance(argument, Unknown):
            return argument
        return super().getitem(obj, argument)

    def unsafe_undefined(self, obj: Any, attribute: str) -> Any:
        return Unknown(_plain(attribute))

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805  Jinja's signature
        run = _current()
        run.count_call()
        caller = kwargs.get("caller")
        if isinstance(__obj, Unknown) and caller is not None:
            # ``{% call name() %}``: dbt's statement runs its body beside the model; what others make of theirs is not known.
            if __obj._name == "statement":
                return ""
            return f"{Unknown(__obj._name, True)}{caller()}"
        if isinstance(__obj, Unknown):
            return Unknown(__obj._name, True)
        owner = getattr(__obj, "__self__", None)
        name = getattr(__obj, "__name__", "")
        if isinstance(owner, str):
            _check_text_method(owner, name, args, kwargs)
        elif name == "strftime" and args and _WIDE.search(str(args[0])):
            raise Limit("a format that is too wide")
        elif isinstance(owner, (list, dict)) and _size(owner) + sum(_size(a) for a in args) > MAX_VALUE:
            raise Limit("a value that is too long")
        try:
            return super().call(__context, __obj, *args, **kwargs)
        except dbt.Return as returned:
            if isinstance(__obj, Macro):
                return returned.value
            raise
        except (SecurityError, TypeError, ValueError, KeyError, IndexError, AttributeError):
            return Unknown(_plain(name or "call"), True)


def _size(value: object) -> int:
    return len(value) if isinstance(value, (str, bytes, list, tuple, dict, set)) else 1


def _check_text_method(text: str, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    if name in ("ljust", "rjust", "center", "zfill", "expandtabs"):
        if any(isinstance(a, int) and a > 10_000 for a in (*args, *kwargs.values())):
            raise Limit("a value that is too long")
    elif name == "replace" and len(args) > 1 and isinstance(args[0], str) and isinstance(args[1], str):
        if text.count(args[0]) * len(args[1]) + len(text) > MAX_VALUE:
            raise Limit("a value that is too long")
    elif name == "join" and args:
        _check_join(text, args[0])
    elif name in ("format", "format_map"):
        if _WIDE.search(text):
            raise Limit("a format that is too wide")
        if sum(_size(a) for a in (*args, *kwargs.values())) * max(text.count("{"), 1) > MAX_VALUE:
            raise Limit("a value that is too long")
    elif name == "translate":
        raise Limit("translate is not allowed")


def _check_join(separator: str, values: Any) -> None:
    if isinstance(values, (list, tuple, dict, set)):
        total = sum(len(v) if isinstance(v, str) else 8 for v in values) + len(separator) * len(values)
        if total > MAX_VALUE:
            raise Limit("a value that is too long")


# -- filters ------------------------------------------------------------------------------------------------------------


def _guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that passes unknown values on and keeps values small."""
    pass_arg = getattr(function, "jinja_pass_arg", None)
    first = 1 if pass_arg is not None else 0

    def guarded(*args: Any, **kwargs: Any) -> Any:
        value = args[first] if len(args) > first else None
        if isinstance(value, Unknown):
            if name in ("default", "d"):
                return args[first + 1] if len(args) > first + 1 and args[first + 1] not in (None, "") else value
            if name == "length" or name == "count":
                return Unknown("length")
            return value
        if any(isinstance(a, int) and not isinstance(a, bool) and abs(a) > 10_000 for a in (*args[first + 1 :], *kwargs.values())):
            raise Limit(f"filter {name} with a number that is too large")
        if name == "replace" and len(args) > first + 2:
            _check_text_method(str(value), "replace", tuple(str(a) for a in args[first + 1 : first + 3]), {})
        elif name == "join":
            _check_join(str(args[first + 1]) if len(args) > first + 1 else "", value)
        elif name == "format":
            if _WIDE.search(str(value)):
                raise Limit("a format that is too wide")
        elif name in ("indent", "wordwrap", "center") and _size(value) > MAX_VALUE // 10:
            raise Limit("a value that is too long")
        try:
            result = function(*args, **kwargs)
        except Limit:
            raise
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, TemplateError):
            return Unknown(_plain(value))
        if isinstance(result, str):
            return bounded_text(result)
        return result

    if pass_arg is not None:
        guarded.jinja_pass_arg = pass_arg  # type: ignore[attr-defined]
    return guarded


def _tested(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A test that does not decide unknown values."""
    pass_arg = getattr(function, "jinja_pass_arg", None)
    first = 1 if pass_arg is not None else 0

    def tested(*args: Any, **kwargs: Any) -> Any:
        value = args[first] if len(args) > first else None
        if isinstance(value, Unknown):
            if name in ("undefined", "none"):
                return value.asked(" is defined", negated=True)
            return value.asked(f" is {name}" + "".join(f" {_plain(a)}" for a in args[first + 1 :]))
        try:
            return function(*args, **kwargs)
        except (TypeError, ValueError):
            return Unknown("test")

    if pass_arg is not None:
        tested.jinja_pass_arg = pass_arg  # type: ignore[attr-defined]
    return tested




# -- compiling ----------------------------------------------------------------------------------------------------------

_state = threading.local()


def _current() -> Run:
    run: Run | None = getattr(_state, "run", None)
    if run is None:
        raise Limit("not rendering")
    return run


def _undefined(name: str | None = None, obj: Any = None, **_: Any) -> Any:
    """What Jinja calls for a name that has no value."""
    if name is None:
        return Unknown("value")
    macro = _library_macro(name) or dbt.cross_database(name)
    return Unknown(_plain(name)) if macro is None else macro


def _library_macro(name: str) -> Any:
    """A macro of the project by its name; None if there is none."""
    run = _current()
    if run.macros is None or name not in run.macros:
        return None
    if name not in run.templates:
        run.templates[name] = None
        try:
            template = compile_template(run.macros.sources[name], macro=True)
            run.templates[name] = getattr(template.template.make_module(run.context()), name)
        except (Limit, TemplateError, AttributeError, RecursionError):
            run.templates[name] = None
    return run.templates[name]


class CompiledTemplate:
    """A template that is ready to be rendered any number of times."""

    def __init__(self, template: Any) -> None:
        """Wrap Jinja's template."""
        self.template = template

    def render(self, run: Run) -> str:
        """The output, with marks of lines and of unknown macros.

        Raises:
            Limit: It fails, or does too much.
        """
        outer = getattr(_state, "run", None)
        _state.run = run
        try:
            return str(self.template.render(run.context()))
        except Limit:
            raise
        except dbt.Return as returned:
            return str(returned.value)
        except RecursionError as error:
            raise Limit("it calls itself without end") from error
        except MemoryError as error:
            raise Limit("it needs too much memory") from error
        except Exception as error:
            raise Limit(f"{type(error).__name__}: {str(error)[:200]}", _line(error)) from error
        finally:
            _state.run = outer


def _line(error: BaseException) -> int | None:
    trace = error.__traceback__
    line = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


@lru_cache(maxsize=512)
def compile_template(source: str, macro: bool = False) -> CompiledTemplate:
    """Compile a template.

    Raises:
        Limit: It is not valid Jinja.
    """
    if len(source) > MAX_SOURCE:
        raise Limit(f"more than {MAX_SOURCE} characters")
    environment = _environment()
    try:
        tree = environment.parse(source)
        _Changer().change(tree, not macro)
        return CompiledTemplate(environment.from_string(tree))
    except TemplateSyntaxError as error:
        raise Limit(str(error.message or error)[:200], error.lineno) from error
    except (RecursionError, MemoryError) as error:
        raise Limit("it is nested too deeply") from error
    except Exception as error:
        raise Limit(f"{type(error).__name__}: {str(error)[:200]}", getattr(error, "lineno", None)) from error


@pass_context
def _finalize(context: Context, value: object) -> object:
    return _current().finalize(value)


@lru_cache(maxsize=1)
def _environment() -> _Environment:
    environment = _Environment(
        extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols", _Dbt], finalize=_finalize, optimized=False, keep_trailing_newline=True
    )
    environment.undefined = _undefined  # type: ignore[assignment]
    for name, function in list(environment.filters.items()):
        environment.filters[name] = _guarded(name, function)
    for name, function in list(environment.tests.items()):
        environment.tests[name] = _tested(name, function)
    for name, extra in dbt.FILTERS.items():
        environment.filters[name] = _guarded(name, extra)
    environment.filters["_test"] = lambda value: _current().test(value)
    environment.filters["_loop"] = lambda value: _current().loop(value)
    environment.filters["_not"] = lambda value: _current().negate(value)
    environment.filters["_in"] = lambda value, values, negated: _current().member(value, values, negated)
    environment.filters["_concat"] = lambda *values: _current().join(*values)
    environment.globals.pop("lipsum", None)
    return environment


class _Dbt(Extension):
    """dbt's own tags: the SQL of a snapshot is kept; tests, materializations and docs are left out."""

    tags = {"snapshot", "materialization", "test", "data_test", "docs"}  # noqa: RUF012  Jinja's declaration

    def parse(self, parser: Parser) -> Any:
        """Parse one of the tags."""
        tag = next(parser.stream)
        while parser.stream.current.type not in ("block_end", "eof"):
            next(parser.stream)
        body = parser.parse_statements((f"name:end{tag.value}",), drop_needle=True)
        return body if tag.value == "snapshot" else nodes.Scope([], lineno=tag.lineno)


class _Changer:
    """Rewrites Jinja's tree; see the module's docstring."""

    def change(self, node: nodes.Node, marked: bool) -> None:
        """Change what is below a node, in place."""
        inner = marked and not isinstance(node, (nodes.Macro, nodes.AssignBlock, nodes.CallBlock, nodes.FilterBlock))
        for field, value in node.iter_fields():
            if isinstance(value, list):
                items = []
                for item in value:
                    if isinstance(item, (nodes.Include, nodes.Extends, nodes.Import, nodes.FromImport)):
                        continue
                    items.append(self._replaced(item, inner) if isinstance(item, nodes.Node) else item)
                setattr(node, field, items)
            elif isinstance(value, nodes.Node):
                setattr(node, field, self._replaced(value, inner))
        if isinstance(node, (nodes.If, nodes.CondExpr)):
            node.test = _filter(node.test, "_test", [])
        elif isinstance(node, nodes.For):
            node.iter = _filter(node.iter, "_loop", [])

    def _replaced(self, node: nodes.Node, marked: bool) -> nodes.Node:
        self.change(node, marked)
        if isinstance(node, nodes.TemplateData):
            if marked:
                node.data = _marked(node.data, node.lineno)
            return node
        if isinstance(node, nodes.Not):
            return _filter(node.node, "_not", [])
        if isinstance(node, nodes.Concat):
            return _filter(node.nodes[0], "_concat", list(node.nodes[1:]))
        if isinstance(node, nodes.Compare) and len(node.ops) == 1 and node.ops[0].op in ("in", "notin"):
            return _filter(node.expr, "_in", [node.ops[0].expr, nodes.Const(node.ops[0].op == "notin")])
        return node


def _filter(node: nodes.Expr, name: str, args: list[nodes.Expr]) -> nodes.Filter:
    return nodes.Filter(node, name, args, [], None, None, lineno=node.lineno)


def _marked(text: str, line: int) -> str:
    """The text with a mark of its line at its head and behind every line break."""
    first, *rest = text.split("\n")
    parts = [f"\ue000{line}\ue001{first}"]
    parts.extend(f"\n\ue000{line + offset}\ue001{part}" for offset, part in enumerate(rest, 1))
    return "".join(parts)
