"""The names that dbt gives to templates, without dbt: relations render to their names, the cross-database macros to
SQL.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections.abc import Callable, Iterable
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any

from jinja2 import Undefined

from govtool.capture.sql.templates import snapshots
from govtool.capture.sql.templates.columns import TemplateColumn
from govtool.capture.sql.templates.configured import ConfigCall, Model
from govtool.capture.sql.templates.dbt_relation import UNSET, DbtRelation, Return
from govtool.capture.sql.templates.macros import adapter_of
from govtool.capture.sql.templates.project_graph import ProjectGraph
from govtool.capture.sql.templates.run import MacroRun
from govtool.capture.sql.templates.unknown import Unknown, plain


def _tojson(value: object, *_: object, **__: object) -> str:
    return json.dumps(value, default=str)


_HOOKS = ("pre_hook", "post_hook", "pre-hook", "post-hook")
_MARKS = "(?:\\s|\ue000\\d+\ue001)*"
_HARMLESS_HOOK = re.compile(
    rf"{_MARKS}(?:\Z|(?:(?:begin|commit)(?:\s+(?:transaction|work))?{_MARKS}\Z)"
    r"|(?:grant|revoke|analyze|vacuum|optimize|comment|set|use|reset|create\s+index)\b)",
    re.IGNORECASE,
)
"""Statements of hooks that hand on no data; ``BEGIN`` may open a block."""
_QUERY = re.compile(
    rf"{_MARKS}(?:\Z|(?:select\b|with\b)(?!.*\b(?:insert|update|delete|merge|into)\b))", re.IGNORECASE | re.DOTALL
)


def _are_all(kind: re.Pattern[str], text: object) -> bool:
    """Return whether all statements of a text are of a kind; where a literal has a semicolon, it may seem not so."""
    return all(kind.match(part) for part in str(text).split(";"))


def _hooks(value: object) -> Iterable[object]:
    """The hooks of a setting: one, or a list; a dictionary has its text under ``sql``."""
    values = value if isinstance(value, (list, tuple)) else [] if value is None else [value]
    return [one.get("sql", "") if isinstance(one, dict) else one for one in values]


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


def names(run: MacroRun, unknown: Callable[..., Any], package: str = "") -> dict[str, object]:
    """The names a template sees.

    Args:
        run: The rendering: what is found out is written there.
        unknown: Makes an unknown value from its name.
        package: The package that the template belongs to.
    """
    variables = run.variables

    def ref(*parts: object, **options: object) -> DbtRelation:
        name = str(parts[-1]) if parts else "ref"
        version = options.get("v", options.get("version"))
        files = run.project.properties.versions
        file = files.get((name, "" if version is None else str(version)), files.get((name, ""), name))
        relation = DbtRelation(file, quote=run.quote)
        run.relations.add(str(relation))
        return relation

    def source(*parts: object, **_: object) -> DbtRelation:
        texts = [str(p) for p in parts]
        relation = run.source_table(texts[0] if len(texts) > 1 else "", texts[-1] if texts else "source")
        run.relations.add(str(relation))
        return relation

    def var(name: object = "var", default: object = UNSET) -> object:
        return run.variable(str(name), default)

    def env_var(name: object = "env_var", default: object = None) -> object:
        return run.given(str(name), unknown(str(name)) if default is None else default)

    def config(*given: object, **options: object) -> str:
        run.configured = True
        if len(given) == 1 and isinstance(given[0], dict) and not options:  # as dbt has it
            options = given[0]
        for name in _HOOKS:
            for hook in _hooks(options.get(name)):
                if not _are_all(_HARMLESS_HOOK, hook):
                    run.unread(f"the SQL of {name}")
        run.config.update(
            {k: v for k, v in options.items() if isinstance(v, (str, int, float, bool, list, dict, type(None)))}
        )
        return ""

    def snapshot_tail() -> str:
        configured, run.config = run.config, {}  # what follows in the file is configured by itself
        return snapshots.tail(configured)

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

    this_name = PurePosixPath(run.file or "this").name.partition(".")[0]
    this = str(variables.get("this") or this_name)
    builtins = {"ref": ref, "source": source, "config": ConfigCall(run, config)}
    return {
        **builtins,
        "builtins": builtins,
        snapshots.TAIL: snapshot_tail,
        "target": DbtTarget({"type": adapter_of(run.dialect)}),
        "api": {"Relation": _RelationFactory(run), "Column": _ColumnFactory()},
        "project_name": run.project.own.name or unknown("project_name"),
        "model": Model(this_name, run),
        "statement": CallStatement(run),
        "local_md5": lambda text="": hashlib.md5(str(text).encode(), usedforsecurity=False).hexdigest(),
        "var": var,
        "env_var": env_var,
        "this": DbtRelation(this, quote=run.quote),
        "is_incremental": is_incremental,
        "should_full_refresh": lambda: unknown("should_full_refresh"),
        "execute": True,
        "null": Undefined(name="null"),  # a name without a value to Jinja, so that `default` fills it in
        "return": give_back,
        "adapter": _Adapter(run, unknown, package),
        "log": nothing,
        "print": nothing,
        "set": lambda value=(), *_: list(dict.fromkeys(_listed(value))),
        "set_strict": lambda value=(), *_: list(dict.fromkeys(_listed(value))),
        "zip": lambda *lists: [list(row) for row in zip(*map(_listed, lists), strict=False)],
        "tojson": _tojson,
        "fromjson": lambda text, default=None: _fromjson(text, default),
        "metrics": unknown("metrics"),
        "flags": unknown("flags"),
        "exceptions": _Exceptions(run.warn),
        "run_started_at": _FIXED,
        "modules": {"datetime": _DATETIME, "pytz": _ZONES},
        "graph": ProjectGraph(run),
    }


_ZONES = SimpleNamespace(timezone=lambda name="UTC", *_: datetime.UTC, utc=datetime.UTC)
"""``modules.pytz``: all zones are UTC, as the clock stands still."""


def _listed(values: object) -> list[Any]:
    return list(values)[:10_000] if isinstance(values, Iterable) else [values]


def _fromjson(text: object, default: object) -> object:
    try:
        return json.loads(str(text))
    except ValueError:
        return default


class _Exceptions:
    """``exceptions``: warnings are kept; whatever else is called does nothing."""

    def __init__(self, warn: Callable[[object], str]) -> None:
        self.warn = lambda message="", *_, **__: warn(message)

    def __getattr__(self, name: str) -> Callable[..., str]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: ""


class _Adapter:
    """``adapter``: it dispatches to macros and tells the columns of relations; anything else it would ask the
    warehouse.
    """

    def __init__(self, run: MacroRun, unknown: Callable[..., Any], package: str) -> None:
        self._run = run
        self._unknown = unknown
        self._package = package

    def dispatch(
        self, macro_name: object = "", macro_namespace: object = None, packages: object = (), **more: object
    ) -> Any:
        """The macro for the dialect, by the search order of the namespace; an unknown one if there is none."""
        head, _, name = str(macro_name).rpartition(".")
        if isinstance(macro_namespace, (list, tuple)):  # before dbt 1.0: the packages
            packages, macro_namespace = macro_namespace, None
        namespace = str(macro_namespace) if macro_namespace else head
        if not namespace and isinstance(packages, (list, tuple)) and packages:
            namespace = str(packages[-1])
        return self._run.dispatched(name, namespace, self._package)

    def get_columns_in_relation(self, relation: object = None, *_: object) -> Any:
        """The columns that are known of a relation; an unknown value if not all are."""
        columns = self._run.columns(relation)
        if columns is None:
            name = "adapter_get_columns_in_relation"
            return self._run.missing(
                name, f"adapter.get_columns_in_relation: the columns of {relation} are not all known"
            )
        return columns

    def get_relation(self, database: object = None, schema: object = None, identifier: object = None) -> Any:
        """A relation that may be there, or not."""
        return DbtRelation(str(identifier), _known(schema), _known(database), quote=self._run.quote)

    def check_schema_exists(self, *_: object) -> bool:
        """Taken to be there."""
        return True

    def quote(self, name: object = "") -> str:
        """A name in quotes."""
        return str(name) if self._run.is_unknown(name) else self._run.quoted(str(name))

    def type(self) -> str:
        """The adapter's name."""
        return adapter_of(self._run.dialect)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._run.missing(
            f"adapter_{name}", f"adapter.{name}: what the warehouse would answer is not known", call=False
        )


def _known(part: object) -> str:
    """A part of a name; empty where nobody gave it."""
    return part if isinstance(part, str) else ""


class DbtTarget(dict[str, object]):
    """``target``: of a connection nothing is known but the kind of warehouse."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __missing__(self, name: str) -> Any:
        return Unknown(f"target_{plain(name)}")


class CallStatement:
    """``statement`` of ``{% call statement(…) %}``: what is run beside a model."""

    def __init__(self, run: MacroRun) -> None:
        self._run = run

    def __call__(self, *_: object, caller: Callable[[], object] | None = None, **__: object) -> str:
        """Nothing: it is no part of the model. What does more than to query is noted."""
        if caller is not None and not _are_all(_QUERY, caller()):
            self._run.unread("the SQL of a statement block")
        return ""


class _RelationFactory:
    """``api.DbtRelation``: makes relations of names."""

    def __init__(self, run: MacroRun) -> None:
        self._run = run

    def create(self, database: object = None, schema: object = None, identifier: object = None, **_: object) -> object:
        """A relation; an unknown one if its name is."""
        if not isinstance(identifier, str):
            return self._run.missing("api_Relation_create", "api.Relation.create: which relation it makes is not known")
        return DbtRelation(identifier, _known(schema), _known(database), quote=self._run.quote)


class _ColumnFactory:
    """``api.Column``: types of columns."""

    def translate_type(self, dtype: object = "varchar") -> str:
        """A type, as it is written."""
        return str(dtype)

    def string_type(self, size: object = 256) -> str:
        """A text type."""
        return f"varchar({size})"

    def numeric_type(self, dtype: object = "numeric", precision: object = None, scale: object = None) -> str:
        """A numeric type."""
        return f"{dtype}({precision}, {scale})" if precision is not None else str(dtype)

    def create(self, name: object = "", label_or_dtype: object = "", dtype: object = None) -> TemplateColumn:
        """A column."""
        return TemplateColumn(str(name), str(dtype or label_or_dtype))


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


_FIXED = _Datetime(2000, 1, 1, tzinfo=datetime.UTC)
_DATETIME = SimpleNamespace(
    date=_Date, datetime=_Datetime, timedelta=datetime.timedelta, time=datetime.time, timezone=datetime.timezone
)
