"""dbt's cross-database macros (docs.getdbt.com, "About cross-database macros"): their SQL per dialect.

Where dbt's own SQL for a dialect is long, a shorter form with the same columns in the same places is made: it is read
for its lineage, and never run.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from govtool.capture.sql.templates.run import MacroRun
from govtool.capture.sql.templates.unknown import bounded_text

Macro = Callable[..., object]
"""Called with the rendering and the macro's arguments."""

POSTGRES = frozenset({"postgres", "duckdb", "materialize", "risingwave"})
SPARK = frozenset({"spark", "spark2", "databricks", "hive", "fabricspark"})
TRINO = frozenset({"trino", "presto", "athena"})
TSQL = frozenset({"tsql", "fabric"})
MYSQL = frozenset({"mysql", "doris", "starrocks", "singlestore"})
_DATEADD = frozenset({"snowflake", "redshift"}) | TSQL | (SPARK - {"hive"})
_TRY_CAST = frozenset({"snowflake", "duckdb", "databricks"}) | TRINO | TSQL

_WORD = re.compile(r"[A-Za-z_]+\Z")


def texts(value: object) -> list[str]:
    """A list of expressions, or one."""
    return [str(item) for item in value] if isinstance(value, (list, tuple)) else [str(value)]


def part_of(datepart: object) -> str:
    """A part of a date, which macros take with or without quotes."""
    text = str(datepart).strip().strip("'\"").lower()
    return text if _WORD.match(text) else "day"


def type_name(run: MacroRun, kind: str) -> str:
    """The dialect's name of one of dbt's types."""
    dialect = run.dialect
    if dialect == "bigquery":
        return {"bigint": "int64", "int": "int64", "float": "float64", "boolean": "bool"}.get(kind, kind)
    if kind == "string":
        return "string" if dialect in SPARK or dialect == "clickhouse" else "varchar"
    if kind == "float" and dialect in TRINO:
        return "double"
    if kind == "boolean" and dialect in TSQL:
        return "bit"
    if kind == "timestamp" and dialect in TSQL | {"snowflake"}:
        return "datetime2" if dialect in TSQL else "timestamp_ntz"
    return kind if kind in ("timestamp", "float", "numeric", "bigint", "int", "boolean") else "varchar"


def dateadd(run: MacroRun, datepart: object = "day", interval: object = 1, from_date_or_timestamp: object = "") -> str:
    """A date and an interval."""
    part, dialect = part_of(datepart), run.dialect
    if dialect == "bigquery":
        return f"datetime_add(cast({from_date_or_timestamp} as datetime), interval {interval} {part})"
    if dialect in _DATEADD:
        return f"dateadd({part}, {interval}, {from_date_or_timestamp})"
    if dialect in TRINO:
        return f"date_add('{part}', {interval}, {from_date_or_timestamp})"
    if dialect in MYSQL:
        return f"date_add({from_date_or_timestamp}, interval ({interval}) {part})"
    return f"({from_date_or_timestamp} + (interval '1 {part}' * ({interval})))"


def datediff(run: MacroRun, first_date: object = "", second_date: object = "", datepart: object = "day") -> str:
    """Return the number of parts between two dates."""
    part, dialect = part_of(datepart), run.dialect
    if dialect == "bigquery":
        return f"datetime_diff(cast({second_date} as datetime), cast({first_date} as datetime), {part})"
    if dialect in _DATEADD:
        return f"datediff({part}, {first_date}, {second_date})"
    if dialect in MYSQL:
        return f"timestampdiff({part}, {first_date}, {second_date})"
    if dialect in TRINO or dialect in ("duckdb", "clickhouse"):
        return f"date_diff('{part}', {first_date}, {second_date})"
    return f"extract({part} from (cast({second_date} as timestamp) - cast({first_date} as timestamp)))"


def date_trunc(run: MacroRun, datepart: object = "day", date: object = "") -> str:
    """A date cut to a part."""
    part = part_of(datepart)
    if run.dialect == "bigquery":
        return f"timestamp_trunc(cast({date} as timestamp), {part})"
    if run.dialect in TSQL:
        return f"datetrunc({part}, {date})"
    return f"date_trunc('{part}', {date})"


def last_day(run: MacroRun, date: object = "", datepart: object = "month") -> str:
    """The last day of the part that a date is in."""
    return f"cast({dateadd(run, 'day', -1, dateadd(run, datepart, 1, date_trunc(run, datepart, date)))} as date)"


def safe_cast(run: MacroRun, field: object = "", type: object = "varchar") -> str:
    """A cast that gives null where it fails."""
    if run.dialect == "bigquery":
        return f"safe_cast({field} as {type})"
    return f"{'try_cast' if run.dialect in _TRY_CAST else 'cast'}({field} as {type})"


def cast(run: MacroRun, field: object = "", type: object = "varchar") -> str:
    """A cast."""
    return f"cast({field} as {type})"


def concat(run: MacroRun, fields: object = (), *more: object) -> str:
    """Texts, one behind the other."""
    return f"concat({', '.join([*texts(fields), *map(str, more)])})"


def hash_(run: MacroRun, field: object = "") -> str:
    """The MD5 of a text, as text."""
    digest = f"md5(cast({field} as {type_name(run, 'string')}))"
    if run.dialect in TSQL:
        return f"convert(varchar(50), hashbytes('md5', cast({field} as varchar)), 2)"
    if run.dialect == "bigquery":
        return f"to_hex({digest})"
    return f"lower(to_hex(md5(to_utf8(cast({field} as varchar)))))" if run.dialect in TRINO else digest


def split_part(run: MacroRun, string_text: object = "", delimiter_text: object = "", part_number: object = 1) -> str:
    """A part of a text."""
    if run.dialect == "bigquery":
        return f"split({string_text}, {delimiter_text})[safe_offset({part_number} - 1)]"
    return f"split_part({string_text}, {delimiter_text}, {part_number})"


def listagg(
    run: MacroRun,
    measure: object = "",
    delimiter_text: object = "','",
    order_by_clause: object = None,
    limit_num: object = None,
) -> str:
    """The texts of a group."""
    order = str(order_by_clause) if order_by_clause else ""
    if run.dialect in POSTGRES or run.dialect == "bigquery":
        return f"string_agg({measure}, {delimiter_text}{' ' + order if order else ''})"
    if run.dialect in SPARK:
        return f"array_join(collect_list({measure}), {delimiter_text})"
    name = "string_agg" if run.dialect in TSQL else "listagg"
    return f"{name}({measure}, {delimiter_text})" + (f" within group ({order})" if order else "")


def array_construct(run: MacroRun, inputs: object = (), data_type: object = None) -> str:
    """An array of expressions."""
    items = ", ".join(texts(inputs)) if inputs else ""
    if run.dialect == "bigquery":
        return f"[{items}]"
    if run.dialect == "snowflake":
        return f"array_construct({items})"
    return f"array({items})" if run.dialect in SPARK | {"redshift"} else f"array[{items}]"


def array_append(run: MacroRun, array: object = "", new_element: object = "") -> str:
    """An array and one element more."""
    return f"array_append({array}, {new_element})"


def array_concat(run: MacroRun, array_1: object = "", array_2: object = "") -> str:
    """Two arrays, one behind the other."""
    return f"array_concat({array_1}, {array_2})"


def bool_or(run: MacroRun, expression: object = "") -> str:
    """Return whether an expression holds anywhere in a group."""
    name = {"snowflake": "boolor_agg", "bigquery": "logical_or"}.get(run.dialect, "bool_or")
    return f"max(cast({expression} as int))" if run.dialect in TSQL else f"{name}({expression})"


def any_value(run: MacroRun, expression: object = "") -> str:
    """Some value of a group."""
    return f"max({expression})" if run.dialect in TSQL else f"any_value({expression})"


def position(run: MacroRun, substring_text: object = "", string_text: object = "") -> str:
    """Return the position of a text in another."""
    if run.dialect == "bigquery":
        return f"strpos({string_text}, {substring_text})"
    if run.dialect in TSQL:
        return f"charindex({substring_text}, {string_text})"
    return f"position({substring_text} in {string_text})"


def right(run: MacroRun, string_text: object = "", length_expression: object = 1) -> str:
    """The end of a text."""
    return f"right({string_text}, {length_expression})"


def length(run: MacroRun, expression: object = "") -> str:
    """The length of a text."""
    return f"{'len' if run.dialect in TSQL else 'length'}({expression})"


def replace(run: MacroRun, field: object = "", old_chars: object = "", new_chars: object = "") -> str:
    """A text with one text in it replaced."""
    return f"replace({field}, {old_chars}, {new_chars})"


def current_timestamp(run: MacroRun, *_: object) -> str:
    """The time of the run."""
    return "current_timestamp()" if run.dialect in SPARK | {"bigquery"} else "current_timestamp"


def date(run: MacroRun, year: object = 2000, month: object = 1, day: object = 1) -> str:
    """A date of three numbers."""
    return f"cast('{year}-{month}-{day}' as date)"


def string_literal(run: MacroRun, value: object = "") -> str:
    """A text in quotes."""
    return f"'{value}'"


def escape_single_quotes(run: MacroRun, expression: object = "") -> str:
    """A text as it is written between quotes."""
    mark = "\\'" if run.dialect in SPARK | {"bigquery"} else "''"
    return bounded_text(str(expression).replace("'", mark))


def cast_bool_to_text(run: MacroRun, field: object = "") -> str:
    """A truth value as a text."""
    return f"cast({field} as {type_name(run, 'string')})"


def cast_array_to_string(run: MacroRun, array: object = "") -> str:
    """An array as a text."""
    return f"cast({array} as {type_name(run, 'string')})"


def except_(run: MacroRun) -> str:
    """The set operation."""
    return "except distinct" if run.dialect == "bigquery" else "except"


def intersect(run: MacroRun) -> str:
    """The set operation."""
    return "intersect distinct" if run.dialect == "bigquery" else "intersect"


def equals(run: MacroRun, expr1: object = "", expr2: object = "") -> str:
    """Return whether two expressions are equal, or both null."""
    return f"({expr1} is not distinct from {expr2})"


def generate_series(run: MacroRun, upper_bound: object = 1) -> str:
    """A query of one column, ``generated_number``, from 1 to a bound."""
    return f"select row_number() over (order by 1) as generated_number from (select 1 as one limit {upper_bound}) as n"


def date_spine(run: MacroRun, datepart: object = "day", start_date: object = "", end_date: object = "") -> str:
    """A query of one column, ``date_<part>``: the dates from a start to before an end, which are expressions."""
    part = part_of(datepart)
    return (
        f"select date_{part} from (select {dateadd(run, part, 'n', f'({start_date})')} as date_{part} "
        f"from (select row_number() over (order by 1) - 1 as n) as numbers) as dates where date_{part} <= {end_date}"
    )


def nothing(run: MacroRun, *_: object, **__: object) -> str:
    """Logging."""
    return ""


MACROS: dict[str, Macro] = {
    "dateadd": dateadd,
    "datediff": datediff,
    "date_trunc": date_trunc,
    "last_day": last_day,
    "safe_cast": safe_cast,
    "cast": cast,
    "concat": concat,
    "hash": hash_,
    "split_part": split_part,
    "listagg": listagg,
    "array_construct": array_construct,
    "array_append": array_append,
    "array_concat": array_concat,
    "bool_or": bool_or,
    "any_value": any_value,
    "position": position,
    "right": right,
    "length": length,
    "replace": replace,
    "current_timestamp": current_timestamp,
    "current_timestamp_backcompat": current_timestamp,
    "current_timestamp_in_utc": current_timestamp,
    "current_timestamp_in_utc_backcompat": current_timestamp,
    "snapshot_get_time": current_timestamp,
    "date": date,
    "string_literal": string_literal,
    "escape_single_quotes": escape_single_quotes,
    "cast_bool_to_text": cast_bool_to_text,
    "cast_array_to_string": cast_array_to_string,
    "except": except_,
    "intersect": intersect,
    "equals": equals,
    "generate_series": generate_series,
    "date_spine": date_spine,
    **{
        f"type_{kind}": (lambda run, *_, _kind=kind, **__: type_name(run, _kind))
        for kind in ("string", "timestamp", "float", "numeric", "bigint", "int", "boolean")
    },
}
"""By name."""
