"""Trees as bytes: for statements that are parsed long before they are walked.

A tree takes about fifty times the memory of its text, most of it in the dictionaries of its nodes; packed it takes as
much as the text. To pack and unpack one costs about half of what it costs to parse it. The bytes are read by the
process that made them alone: classes are numbered as they come.
"""

from __future__ import annotations

import marshal
import zlib
from typing import Any, Final, cast

from sqlglot import exp

from govtool.capture.sql.syntax import nodes

_VERSION: Final = 2
"""Of marshal's format: the one that does not look for objects that are referred to twice, which takes longer."""
_SPEED: Final = 1
"""Of zlib: the fastest, which makes a sixth of it."""
_PLAIN: Final[frozenset[type]] = frozenset({str, bool, int, type(None)})
"""Types of arguments that are the same packed."""
_TYPES: Final = tuple(exp.DType)
_TYPE_NUMBERS: Final = {kind: number for number, kind in enumerate(_TYPES)}
_numbers: Final[dict[type, int]] = {}
"""The numbers of the classes that were packed so far."""
_classes: Final[list[type[exp.Expr]]] = []
"""These classes, by number."""


class _NotPacked(Exception):
    """A tree holds what is not foreseen."""


def packed(tree: exp.Expr) -> bytes | None:
    """Return a tree as bytes; None where it is nested too deeply, or holds what bytes cannot stand for."""
    try:
        return zlib.compress(marshal.dumps(_plain(tree), _VERSION), _SPEED)
    except (_NotPacked, RecursionError, ValueError):  # marshal has a bound of its own on the depth
        return None


def unpacked(data: bytes) -> exp.Expr:
    """Return the tree, made anew: its places, comments and types included."""
    return _node(marshal.loads(zlib.decompress(data)))  # noqa: S302 (of this process)


def _plain(node: exp.Expr) -> tuple[Any, ...]:
    """A node as its class, arguments, and, as far as it has them, what it knows of its place, comments and type."""
    number = _numbers.get(type(node))
    if number is None:
        number = _numbers[type(node)] = len(_classes)
        _classes.append(type(node))
    args: dict[str, Any] = node.args
    for value in args.values():
        if type(value) not in _PLAIN:
            args = {key: each if type(each) in _PLAIN else _argument(each) for key, each in args.items()}
            break
    if node._type is not None:
        return number, args, node._meta, node.comments, _plain(node._type)
    if node.comments is not None:
        return number, args, node._meta, node.comments
    return (number, args) if node._meta is None else (number, args, node._meta)


def _argument(value: Any) -> Any:
    if isinstance(value, nodes.Expr):
        return _plain(value)
    if type(value) is list:
        return [each if type(each) in _PLAIN else _argument(each) for each in value]
    if type(value) is exp.DType:
        return (_TYPE_NUMBERS[value],)
    raise _NotPacked


def _node(form: tuple[Any, ...]) -> exp.Expr:
    args: dict[str, Any] = form[1]
    for key, value in args.items():
        if type(value) is tuple or type(value) is list:
            args[key] = _value(value)
    node: exp.Expr = _classes[form[0]](**args)
    if len(form) > 2:
        node._meta = form[2]
        if len(form) > 3:
            node.comments = form[3]
            if len(form) > 4:
                node._type = cast(exp.DataType, _node(form[4]))
    return node


def _value(value: Any) -> Any:
    if type(value) is list:
        return [_value(each) for each in value]
    if type(value) is tuple:
        return _TYPES[value[0]] if len(value) == 1 else _node(value)
    return value
