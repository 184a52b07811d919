"""The Python functions of two runs compared: their code, and the values that they took along."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from govtool.model.reproduction import FunctionCode


class FunctionChange(NamedTuple):
    """A difference between two functions of one name."""

    name: str
    what: str
    """``function``: its code; ``captured``: a value that it took along; ``added``, ``removed``."""
    before: str | None
    after: str | None


class FunctionGap(NamedTuple):
    """A part of a function that cannot be compared."""

    name: str
    sides: tuple[bool, bool]
    """Whether it is missing in the first and in the second run."""
    why: str


def changed_functions(before: Sequence[FunctionCode], after: Sequence[FunctionCode]) -> Iterator[FunctionChange]:
    """Yield the differences in the functions of the second run; aspects that one of them lacks are left out."""
    for old, new in _pairs(before, after):
        name = f"function {(old or new or FunctionCode('')).name}"
        if old is None or new is None:
            yield FunctionChange(name, "added" if old is None else "removed", _code(old), _code(new))
            continue
        if old.code and new.code and old.code != new.code:
            yield FunctionChange(name, "function", old.code, new.code)
        values, others = dict(old.captured), dict(new.captured)
        unknown = {path for path, _ in (*old.unknown, *new.unknown)}
        for path in sorted((values.keys() | others.keys()) - unknown):
            if values.get(path) != others.get(path):
                yield FunctionChange(_value(path, name), "captured", values.get(path), others.get(path))


def function_gaps(before: Sequence[FunctionCode], after: Sequence[FunctionCode]) -> Iterator[FunctionGap]:
    """Yield the captured values, and the code, that have no digest."""
    for old, new in _pairs(before, after):
        if old is not None and new is not None:
            reasons = {**dict(new.unknown), **dict(old.unknown)}
            for path, why in sorted(reasons.items()):
                sides = path in dict(old.unknown), path in dict(new.unknown)
                name = f"function {old.name}"
                if path == "code":
                    yield FunctionGap(f"code of {name}", sides, why)
                else:
                    yield FunctionGap(_value(path, name), sides, f"a value of this kind has no digest: {why}")


def _value(path: str, name: str) -> str:
    return f"captured value {path} of {name}"


def _code(function: FunctionCode | None) -> str | None:
    return None if function is None else function.code or "?"


def _pairs(
    before: Sequence[FunctionCode], after: Sequence[FunctionCode]
) -> Iterator[tuple[FunctionCode | None, FunctionCode | None]]:
    """Functions of one name in both runs: equal ones first, then the others in their order."""
    for name in dict.fromkeys(each.name for each in (*before, *after)):
        olds, news = [each for each in before if each.name == name], [each for each in after if each.name == name]
        for equal in [each for each in olds if each in news]:
            olds.remove(equal)
            news.remove(equal)
            yield equal, equal
        yield from zip_longest(olds, news)
