"""Arguments of the Python interface, checked and converted by their annotations before they are used.

The command line refuses a limit of -1 or a date that is none before a command runs. Here a caller may pass anything; a
wrong value must raise an error that names the argument, and never reach a slice or a comparison far below.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, ForwardRef, ParamSpec, SupportsFloat, SupportsIndex, TypeVar, cast

from govtool.errors import UsageError

if TYPE_CHECKING:
    from govtool.app.project.requests import PathArgument

    Paths = PathArgument | Iterable[PathArgument]
    """One path where a command takes one, several where it may be repeated."""

Texts = str | Iterable[str]
"""One text where a command takes one option, several where it may be repeated."""
Day = date | str
"""A day, or its text in ISO 8601."""
Seconds = float
"""A time to wait, more than nothing."""
Share = float
"""A part of a value, from 0 to 1."""
Ref = str | int | date
"""A version: a commit's number or id, ``HEAD~1``, a tag, a branch, or a date (as text or not)."""

NodeId = str | int
"""A node of a provenance graph: the text of a command, or the number that answers have as ``id``."""
NodeIds = str | int | Iterable[NodeId]
"""One node or several."""

_FORMER = {"keys": "key"}
"""Names that keywords had before they were those of the command's options; they still work."""
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_Converter = Callable[[str, object], object]


def checked(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Let a function check its arguments by its annotations, which are those of ``CONVERTERS``.

    Raises:
        UsageError: An argument is not what its annotation says (``usage.arguments``).
    """
    declared = _with_options(function, signature(function))
    converters = {name: one for name, one in _converters(declared.parameters) if one is not None}

    @wraps(function)
    def call(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        try:
            bound = declared.bind(*args, **_renamed(kwargs, declared.parameters))
        except TypeError as error:  # a missing or unknown argument
            raise TypeError(f"{function.__name__}() {error}") from None
        for name, value in bound.arguments.items():
            if name in converters:
                bound.arguments[name] = converters[name](name, value)
        return cast("Callable[..., _Result]", function)(*bound.args, **bound.kwargs)

    call.__signature__ = declared  # type: ignore[attr-defined]
    return call


def _renamed(keywords: Mapping[str, object], parameters: Mapping[str, Parameter]) -> dict[str, object]:
    """Keywords by their names of today."""
    former = {old: new for old, new in _FORMER.items() if old not in parameters and new in parameters}
    return {former.get(name, name): value for name, value in keywords.items()}


def _with_options(function: Callable[..., object], declared: Signature) -> Signature:
    """The signature with each keyword of ``**options: Unpack[SomeOptions]`` in the place of all of them."""
    parameters = list(declared.parameters.values())
    last = parameters[-1] if parameters else None
    if last is None or last.kind is not Parameter.VAR_KEYWORD or not str(last.annotation).startswith("Unpack["):
        return declared
    options = function.__globals__[str(last.annotation)[len("Unpack[") : -1]]
    return declared.replace(
        parameters=[*parameters[:-1], *(_keyword(*each) for each in options.__annotations__.items())]
    )


def _keyword(name: str, kind: ForwardRef) -> Parameter:
    annotation = kind.__forward_arg__
    default = False if annotation == "bool" else None
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def texts(value: Texts | None) -> list[str]:
    """Return a single text or several texts as a list; None is an empty list.

    >>> texts("crm.users"), texts(("a", "b")), texts(None)
    (['crm.users'], ['a', 'b'], [])
    """
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


def node_texts(value: NodeIds) -> list[str]:
    """Return nodes as commands name them."""
    return [str(each) for each in ([value] if isinstance(value, (str, int)) else value)]


def paths(value: Paths | None) -> list[str]:
    """Return a single path or several paths as a list of texts; None is an empty list."""
    if value is None:
        return []
    return [os.fspath(one) for one in ([value] if isinstance(value, (str, os.PathLike)) else value)]


def _converters(parameters: Mapping[str, Parameter]) -> Iterable[tuple[str, _Converter | None]]:
    for name, parameter in parameters.items():
        one = CONVERTERS.get(str(parameter.annotation))
        several = one is not None and parameter.kind is Parameter.VAR_POSITIONAL
        yield name, _each(one) if several and one is not None else one


def _each(one: _Converter) -> _Converter:
    return lambda name, value: tuple(one(name, item) for item in cast("tuple[object, ...]", value))


def _or_none(one: _Converter) -> _Converter:
    return lambda name, value: None if value is None else one(name, value)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise _wrong(name, type(value), "a text")
    return str(value)  # of an enumeration or numpy: as a text and nothing else


def _texts(name: str, value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, (bytes, bytearray)) or not isinstance(value, Iterable):
        raise _wrong(name, type(value), "a text or several")
    return [_text(name, one) for one in value]


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):  # "no" and "false" are true
        raise _wrong(name, value, "True or False")
    return value


def _count(name: str, value: object) -> int:
    """A whole number that is not negative, also of numpy."""
    try:
        number = -1 if isinstance(value, bool) else operator.index(cast("SupportsIndex", value))
    except TypeError:
        number = -1
    if number < 0:
        raise _wrong(name, value, "a whole number, 0 or more")
    return number


def _percent(name: str, value: object) -> float:
    """Return a share from 0 to 100, which may be a number of numpy, but not NaN."""
    try:
        number = math.nan if isinstance(value, bool) else float(cast("SupportsFloat", value))
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, str) or not 0 <= number <= 100:
        raise _wrong(name, value, "a percentage from 0 to 100")
    return number


def _fraction(name: str, value: object) -> float:
    """A share from 0 to 1, also of numpy."""
    try:
        number = math.nan if isinstance(value, (bool, str)) else float(cast("SupportsFloat", value))
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number <= 1:
        raise _wrong(name, value, "a number from 0 to 1")
    return number


def _duration(name: str, value: object) -> float:
    """Seconds, more than none and at most a day; also of numpy."""
    try:
        seconds = math.nan if isinstance(value, (bool, str)) else float(cast("SupportsFloat", value))
    except (TypeError, ValueError):
        seconds = math.nan
    if not 0 < seconds <= 86_400:
        raise _wrong(name, value, "a number of seconds, at most a day")
    return seconds


def _path(name: str, value: object) -> str:
    if not isinstance(value, (str, os.PathLike)) or not isinstance(os.fspath(value), str):
        raise _wrong(name, value, "a path")
    path = str(os.fspath(value))
    try:  # an empty text is a variable without a value, and not the working directory; open() says so of a store
        unusable = not (path or name == "store") or b"\0" in os.fsencode(path)
    except UnicodeEncodeError:
        unusable = True
    if unusable:
        raise _wrong(name, value, "a path")
    return path


def _paths(name: str, value: object) -> list[str]:
    if isinstance(value, (str, os.PathLike)):
        return [_path(name, value)]
    if isinstance(value, (bytes, bytearray)) or not isinstance(value, Iterable):
        raise _wrong(name, value, "a path or several")
    return [_path(name, one) for one in value]


def _tables(name: str, value: object) -> object:
    return value if isinstance(value, Mapping) else _paths(name, value)


def _pairs(name: str, value: object) -> object:
    return value if isinstance(value, Mapping) else _texts(name, value)


def _numbers(name: str, value: object) -> object:
    """Objects of numbers by text."""
    parts = value.values() if isinstance(value, Mapping) else [None]
    if not all(isinstance(part, Mapping) for part in parts):
        raise _wrong(name, type(value), "numbers by name, by kind")
    for part in parts:
        for number in cast("Mapping[str, object]", part).values():
            if isinstance(number, bool) or not isinstance(number, (int, float)) or number != number:
                raise _wrong(name, type(number), "numbers by name, by kind")
    return value


def _day(name: str, value: object) -> date | str:
    """A day; of a moment, its day in UTC, where no zone is given that of the moment as it is."""
    if isinstance(value, datetime):
        return (value if value.tzinfo is None else value.astimezone(UTC)).date()
    if isinstance(value, (date, str)):
        return value
    raise _wrong(name, value, "a date")


def _ref(name: str, value: object) -> str:
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    if isinstance(value, str):
        return value
    try:
        return str(_count(name, value))
    except UsageError:
        raise _wrong(name, value, "a version: a number, an id, a tag, a branch, or a date") from None


def _node(name: str, value: object) -> str:
    try:
        return _text(name, value) if isinstance(value, str) else str(_count(name, value))
    except UsageError:
        raise _wrong(name, type(value), "the id of a node, or a text") from None


def _nodes(name: str, value: object) -> list[str]:
    several = isinstance(value, Iterable) and not isinstance(value, (str, bytes, bytearray))
    return [_node(name, one) for one in cast("Iterable[object]", value)] if several else [_node(name, value)]


def _workflow(name: str, value: object) -> object:
    from govtool.workflow.modules.workflow import Workflow

    return value if isinstance(value, Workflow) else _path(name, value)


def _workflow_or_file(name: str, value: object) -> object:
    return _text(name, value) if isinstance(value, str) else _workflow(name, value)


def _lists(name: str, value: object) -> list[list[str]]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise _wrong(name, type(value), "a list of lists of texts")
    return [_texts(name, each) for each in value]


def _wrong(name: str, value: object, wanted: str) -> UsageError:
    """The error. Of texts only the type is shown: they may hold what identifies a person."""
    shown = value.__name__ if isinstance(value, type) else f"{value!a:.60}"
    return UsageError(f"{name} is not {wanted}: {shown}", code="usage.arguments", location=name)


CONVERTERS: Mapping[str, _Converter] = {
    "str": _text,
    "str | None": _or_none(_text),
    "NodeId": _node,
    "NodeIds": _nodes,
    "Texts": _texts,
    "Texts | None": _or_none(_texts),
    "bool": _flag,
    "bool | None": _or_none(_flag),
    "int | None": _or_none(_count),
    "float": _fraction,
    "float | None": _or_none(_percent),
    "PathArgument": _path,
    "PathArgument | None": _or_none(_path),
    "Paths": _paths,
    "Paths | None": _or_none(_paths),
    "SchemaArgument | None": _or_none(_tables),
    "Mapping[str, object] | Iterable[str] | None": _or_none(_pairs),
    "Mapping[str, str] | Iterable[str] | None": _or_none(_pairs),
    "Mapping[str, Mapping[str, float]] | None": _or_none(_numbers),
    "Day | None": _or_none(_day),
    "Workflow | PathArgument": _workflow,
    "Workflow | str | None": _or_none(_workflow_or_file),
    "Iterable[Texts]": _lists,
    "Seconds": _duration,
    "Share | None": _or_none(_fraction),
    "Ref": _ref,
    "Ref | None": _or_none(_ref),
}
"""Converters of arguments, by the annotation of the parameter."""
