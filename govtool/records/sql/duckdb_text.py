"""Functions on texts in DuckDB's SQL, by name, where they give what Spark gives."""

from __future__ import annotations

from govtool.records.plan import types as t
from govtool.records.plan.expressions import Call, Expression
from govtool.records.sql.dialect import Dialect, NotExact, quoted
from govtool.records.sql.duckdb_calls import WriteFunction, number_of, text_of, typed
from govtool.records.sql.duckdb_casts import GUARD
from govtool.records.sql.duckdb_decimals import require_short

_MEANS_MORE = frozenset("\\.[]{}()*+?^$|")
"""Characters that mean more than themselves in a regular expression of Java."""
_THREE = (t.STRING, t.STRING, t.STRING)


def _concat_ws(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    if len(kinds) == 2 and isinstance(kinds[1], t.Array):
        return f"coalesce({_joined(call, parts[1], kinds[1], call.arguments[0])}, '')"
    if any(each != t.STRING for each in kinds) or len(kinds) < 2:
        raise NotExact("concat_ws of what is no text")
    return f"concat_ws({', '.join(parts)})"


def _array_join(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    if len(parts) != 2:
        raise NotExact("array_join with a text for NULL")
    joined = _joined(call, parts[0], kinds[0], call.arguments[1])
    require_short(parts)
    return f"(CASE WHEN {parts[0]} IS NOT NULL THEN coalesce({joined}, '') END)"


def _joined(call: Call, items: str, kind: t.Type, separator: Expression) -> str:
    """The texts of a list with a separator between them, without NULLs; NULL where there are none."""
    between = text_of(separator)
    if not isinstance(kind, t.Array) or kind.element != t.STRING or between is None:
        raise NotExact(f"{call.name} of what is no list of texts, or with a computed separator")
    return f"array_to_string({items}, {quoted(between)})"


def _split(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    """By a text, or by white space: other regular expressions of Java and DuckDB differ."""
    pattern, limit = text_of(call.arguments[1]), number_of(call.arguments[2])
    if kinds[0] != t.STRING or not pattern or limit is None or limit > 0:
        raise NotExact("split by what is no constant, or with a limit")
    if pattern in ("\\s", "\\s+"):
        require_short(parts)
        odd = f"contains({parts[0]}, chr(11))"  # white space in Java alone
        return f"(CASE WHEN {odd} THEN error('{GUARD}: split') ELSE string_split_regex({parts[0]}, '{pattern}') END)"
    return f"string_split({parts[0]}, {quoted(_plain(pattern))})"


def _plain(pattern: str) -> str:
    """The only text that a pattern matches."""
    if len(pattern) == 2 and pattern[0] == "\\" and pattern[1] in _MEANS_MORE:
        return pattern[1]
    if len(pattern) == 3 and pattern[0] + pattern[2] == "[]" and pattern[1] not in "\\^[]&":
        return pattern[1]
    if _MEANS_MORE & set(pattern):
        raise NotExact("split by a regular expression")
    return pattern


def _padded(function: str) -> WriteFunction:
    def write(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
        size, pad = number_of(call.arguments[1]), text_of(call.arguments[2])
        if kinds[0] != t.STRING or size is None or size < 0 or not pad:
            raise NotExact(f"{call.name} to a computed length, or with a computed text")
        return f"{function}({', '.join(parts)})"

    return write


def _locate(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    if kinds[:2] != [t.STRING, t.STRING] or number_of(call.arguments[2]) != 1:
        raise NotExact("locate from a place")
    return f"CAST(instr({parts[1]}, {parts[0]}) AS INTEGER)"


def _substring_index(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    """Of one character: longer ones may overlap."""
    delimiter, count = text_of(call.arguments[1]), number_of(call.arguments[2])
    if kinds[0] != t.STRING or delimiter is None or len(delimiter) != 1 or not count:
        raise NotExact("substring_index by what is no single character")
    pieces = f"string_split({parts[0]}, {quoted(delimiter)})"
    kept = f"{pieces}[1:{count}]" if count > 0 else f"{pieces}[{count}:]"
    return f"array_to_string({kept}, {quoted(delimiter)})"


def _split_part(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    if kinds[:2] != [t.STRING, t.STRING] or not text_of(call.arguments[1]) or not number_of(call.arguments[2]):
        raise NotExact("split_part by what is no constant")
    return f"split_part({', '.join(parts)})"


def _digest(function: str) -> WriteFunction:
    def write(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
        if kinds[0] != t.BINARY or (len(kinds) > 1 and number_of(call.arguments[1]) not in (0, 256)):
            raise NotExact(f"{call.name} of these bits")
        return f"{function}({parts[0]})"

    return write


TEXT_CALLS: dict[str, WriteFunction] = {
    "concat_ws": _concat_ws, "array_join": _array_join, "split": _split, "split_part": _split_part,
    "lpad": _padded("lpad"), "rpad": _padded("rpad"), "locate": _locate, "substring_index": _substring_index,
    "replace": typed("replace({0}, {1}, {2})", _THREE),
    "translate": typed("translate({0}, {1}, {2})", _THREE),
    "instr": typed("CAST(instr({0}, {1}) AS INTEGER)", (t.STRING, t.STRING)),
    "md5": _digest("md5"), "sha1": _digest("sha1"), "sha2": _digest("sha256"),
}  # fmt: skip
"""Writers of a call, given its arguments as text and their types; they raise ``NotExact``."""
