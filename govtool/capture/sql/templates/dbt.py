"""The names that dbt gives to templates, without dbt: relations render to their names, the cross-database macros to
SQL.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from govtool.capture.sql.templates.rendering import Run

_TYPES = {
    "string": "varchar",
    "timestamp": "timestamp",
    "float": "float",
    "numeric": "numeric",
    "bigint": "bigint",
    "int": "int",
    "boolean": "boolean",
}


_PLAIN = re.compile(r"[A-Za-z_][\w$]*\Z")


class Return(Exception):
    """dbt's ``return(value)``: ends a macro, which then is the value."""

    def __init__(self, value: object) -> None:
        """Keep the value."""
        super().__init__("return outside of a macro")
        self.value = value


class Relation:
    """A relation; renders to its dotted name."""

    __slots__ = ("_quote", "database", "identifier", "schema")

    def __init__(self, identifier: str, schema: str = "", database: str = "", quote: str = '"') -> None:
        """Keep the parts, and how the dialect quotes names that are not plain."""
        self._quote = quote
        self.identifier = identifier
        self.schema = schema
        self.database = database

    @property
    def name(self) -> str:
        """The last part."""
        return self.identifier

    table = alias = name

    def __str__(self) -> str:
        return ".".join(self._quoted(part) for part in (self.database, self.schema, self.identifier) if part)

    def _quoted(self, part: str) -> str:
        if _PLAIN.match(part) or "." in part or "\ue002" in part or self._quote in part:
            return part
        return f"{self._quote}{part}{self._quote}"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def include(self, **_: object) -> Relation:
        """The relation: which parts are shown does not matter here."""
        return self

    quote = without_identifier = include

    def render(self) -> str:
        """The name."""
        return str(self)


def _tojson(value: object, *_: object, **__: object) -> str:
    return json.dumps(value, default=str)


FILTERS: dict[str, Callable[..., Any]] = {
    "as_bool": lambda v: v,
    "as_native": lambda v: v,
    "as_number": lambda v: v,
    "as_text": str,
    "tojson": _tojson,
    "sqlsafe": lambda v: v,
    "bind": lambda v, *_: f"'{v}'",
    "inclause": lambda v: "(" + ", ".join(f"'{x}'" for x in v) + ")",
    "ds": str,
    "ds_nodash": str,
    "ts": str,
}
"""Filters of dbt, Airflow and JinjaSQL."""


_ADAPTERS = {"tsql": "sqlserver"}
"""Adapters of dbt that are not called as the dialect is."""


def names(run: Run, unknown: Callable[..., Any]) -> dict[str, object]:
    """The names a template sees.

    Args:
        run: The rendering: what is found out is written there.
        unknown: Makes an unknown value from its name.
    """
    variables = run.variables

    def ref(*parts: object, **_: object) -> Relation:
        relation = Relation(str(parts[-1]) if parts else "ref", quote=run.quote)
        run.relations.add(str(relation))
        return relation

    def source(*parts: object, **_: object) -> Relation:
        texts = [str(p) for p in parts]
        relation = Relation(texts[-1] if texts else "source", texts[0] if len(texts) > 1 else "", quote=run.quote)
        run.relations.add(str(relation))
        return relation

    def var(name: object = "var", default: object = None) -> object:
        given = variables.get("vars")
        key = str(name)
        if key in variables:
            return variables[key]
        if isinstance(given, Mapping) and key in given:
            return given[key]
        return unknown(key) if default is None else default

    def config(*_: object, **options: object) -> str:
        run.configured = True
        run.config.update(
            {k: v for k, v in options.items() if isinstance(v, (str, int, float, bool, list, dict, type(None)))}
        )
        return ""

    def give_back(value: object = None) -> object:
        raise Return(value)

    def is_incremental() -> object:
        materialized = run.config.get("materialized", "incremental")
        # Only incremental models are ever run on top of what is there.
        return (
            unknown("is_incremental") if materialized == "incremental" or not isinstance(materialized, str) else False
        )

    def nothing(*_: object, **__: object) -> str:
        return ""

    this = str(variables.get("this") or PurePosixPath(run.file or "this").name.partition(".")[0])
    return {
        "ref": ref,
        "source": source,
        "var": var,
        "env_var": var,
        "config": _Config(config, unknown),
        "this": Relation(this, quote=run.quote),
        "is_incremental": is_incremental,
        "should_full_refresh": lambda: unknown("should_full_refresh"),
        "execute": True,
        "return": give_back,
        "adapter": _Adapter(run, unknown),
        "log": nothing,
        "print": nothing,
        "set": lambda value=(), *_: list(dict.fromkeys(_listed(value))),
        "set_strict": lambda value=(), *_: list(dict.fromkeys(_listed(value))),
        "zip": lambda *lists: [list(row) for row in zip(*map(_listed, lists), strict=False)],
        "tojson": _tojson,
        "fromjson": lambda text, default=None: _fromjson(text, default),
        "metrics": unknown("metrics"),
        "flags": unknown("flags"),
        "exceptions": _Quiet(),
        "run_started_at": _FIXED,
        "modules": {"datetime": _DATETIME},
        "dbt": _Macros("dbt", unknown),
        "dbt_utils": _Macros("dbt_utils", unknown),
    }


def _listed(values: object) -> list[Any]:
    return list(values)[:10_000] if isinstance(values, Iterable) else [values]


def _fromjson(text: object, default: object) -> object:
    try:
        return json.loads(str(text))
    except ValueError:
        return default


class _Quiet:
    """``exceptions``: whatever is called does nothing."""

    def __getattr__(self, name: str) -> Callable[..., str]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: ""


class _Config:
    """``config``: called to configure, or asked for a setting."""

    def __init__(self, call: Callable[..., str], unknown: Callable[..., Any]) -> None:
        self._call = call
        self._unknown = unknown

    def __call__(self, *args: object, **options: object) -> str:
        return self._call(*args, **options)

    def get(self, name: object = "", default: object = None, **_: object) -> object:
        """A setting: its default, or unknown."""
        return self._unknown(str(name)) if default is None else default

    def require(self, name: object = "", **_: object) -> object:
        """A setting that must be there: unknown."""
        return self._unknown(str(name))

    def set(self, *_: object, **__: object) -> str:
        """Does nothing."""
        return ""


class _Adapter:
    """``adapter``: it dispatches to the macros of the project; anything else it would ask the warehouse."""

    def __init__(self, run: Run, unknown: Callable[..., Any]) -> None:
        self._run = run
        self._unknown = unknown

    def dispatch(self, name: object = "", *_: object, **__: object) -> Any:
        """The macro ``<adapter>__name`` of the project, else ``default__name``, else an unknown one."""
        plain = str(name).rpartition(".")[2]
        kind = _ADAPTERS.get(self._run.dialect, self._run.dialect)
        for prefix in dict.fromkeys((kind, "default")):
            found = self._run.macro(f"{prefix}__{plain}") if prefix else None
            if found is not None:
                return found
        return cross_database(plain) or self._unknown(plain)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._unknown(f"adapter_{name}")


class _Macros:
    """``dbt.*`` and ``dbt_utils.*``: the SQL that they make, in a form that all dialects parse."""

    def __init__(self, package: str, unknown: Callable[..., Any]) -> None:
        self._package = package
        self._unknown = unknown

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return cross_database(name) or self._unknown(f"{self._package}_{name}")


def cross_database(name: str) -> Callable[..., Any] | None:
    """One of dbt's cross-database macros by its name, which projects may also call without ``dbt.``; None if there is
    none.
    """
    if name.startswith("type_"):
        return lambda *_, **__: _TYPES.get(name[5:], "varchar")
    return _SQL.get(name)


class _Date(datetime.date):
    """A calendar that stands still: what is rendered must not depend on the day."""

    @classmethod
    def today(cls) -> _Date:
        """The first of January 2000."""
        return cls(2000, 1, 1)


class _Datetime(datetime.datetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> _Datetime:
        """Midnight of the first of January 2000."""
        return cls(2000, 1, 1, tzinfo=tz)

    @classmethod
    def utcnow(cls) -> _Datetime:
        """Midnight of the first of January 2000."""
        return cls(2000, 1, 1)

    today = utcnow


_FIXED = _Datetime(2000, 1, 1)
_DATETIME = SimpleNamespace(
    date=_Date, datetime=_Datetime, timedelta=datetime.timedelta, time=datetime.time, timezone=datetime.timezone
)


def _function(name: str) -> Callable[..., str]:
    def call(*args: object, **kwargs: object) -> str:
        return f"{name}({', '.join(str(a) for a in (*args, *kwargs.values()) if a is not None)})"

    return call


def _star(relation: object = None, relation_alias: object = None, *_: object, **kwargs: Any) -> str:
    alias = relation_alias or kwargs.get("relation_alias")
    return f"{alias}.*" if alias else "*"


def _surrogate(*fields: Any, **kwargs: Any) -> str:
    values = fields or tuple(kwargs.values())
    parts = [str(f) for value in values for f in (value if isinstance(value, (list, tuple)) else [value])]
    return f"md5(concat({', '.join(parts)}))"


def _group_by(n: Any = 1, **_: object) -> str:
    count = n if isinstance(n, int) and 0 < n < 500 else 1
    return "group by " + ", ".join(str(i) for i in range(1, count + 1))


def _union(relations: Any = (), *_: object, **__: object) -> str:
    arms = [f"select * from {r}" for r in _listed(relations)]
    return "(" + " union all ".join(arms or ["select null"]) + ")"


def _split_part(text: object = "", delimiter: object = "", part: object = 1, **_: object) -> str:
    return f"split_part({text}, {delimiter}, {part})"


_SQL: dict[str, Callable[..., Any]] = {
    **{
        name: _function(name)
        for name in (
            "length",
            "hash",
            "replace",
            "right",
            "any_value",
            "bool_or",
            "position",
            "last_day",
            "array_append",
            "array_concat",
        )
    },
    "star": _star,
    "generate_surrogate_key": _surrogate,
    "surrogate_key": _surrogate,
    "group_by": _group_by,
    "union_relations": _union,
    "split_part": _split_part,
    "concat": lambda fields=(), *rest: f"concat({', '.join(str(f) for f in (*_listed(fields), *rest))})",
    "safe_cast": lambda field="", type="varchar": f"cast({field} as {type})",
    "cast": lambda field="", type="varchar": f"cast({field} as {type})",
    "cast_bool_to_text": lambda field="": f"cast({field} as varchar)",
    "current_timestamp": lambda *_: "current_timestamp",
    "current_timestamp_backcompat": lambda *_: "current_timestamp",
    "current_timestamp_in_utc": lambda *_: "current_timestamp",
    "date_trunc": lambda datepart="day", date="": f"date_trunc('{datepart}', {date})",
    "datediff": lambda first_date="", second_date="", datepart="day": (
        f"datediff({datepart}, {first_date}, {second_date})"
    ),
    "dateadd": lambda datepart="day", interval=1, from_date_or_timestamp="": (
        f"dateadd({datepart}, {interval}, {from_date_or_timestamp})"
    ),
    "listagg": lambda measure="", *_, **__: f"listagg({measure})",
    "string_literal": lambda value="": f"'{value}'",
    "escape_single_quotes": lambda value="": str(value).replace("'", "''"),
    "except": lambda: "except",
    "intersect": lambda: "intersect",
    "safe_add": lambda *fields: " + ".join(f"coalesce({f}, 0)" for value in fields for f in _listed_text(value)),
    "safe_subtract": lambda *fields: " - ".join(f"coalesce({f}, 0)" for value in fields for f in _listed_text(value)),
    "safe_divide": lambda numerator="", denominator="": f"({numerator} / nullif({denominator}, 0))",
    "array_construct": lambda inputs=(), *_: f"array[{', '.join(str(i) for i in _listed(inputs))}]",
    "width_bucket": _function("width_bucket"),
    "slugify": lambda text="": str(text).lower().replace(" ", "_"),
    "pretty_time": lambda *_, **__: "",
    "pretty_log_format": lambda *_, **__: "",
    "log_info": lambda *_, **__: "",
}


def _listed_text(value: object) -> list[str]:
    return [str(v) for v in value] if isinstance(value, (list, tuple)) else [str(value)]
