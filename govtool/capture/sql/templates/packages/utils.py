"""dbt_utils (its README on hub.getdbt.com): SQL generators, and what asks for the columns of a relation.

Columns are those in the graph. Where they are not all known, a ``*`` stands for them, if that means the same; else the
place is marked as not understood.
"""

from __future__ import annotations

from collections.abc import Callable

from govtool.capture.sql.templates.columns import TemplateColumn
from govtool.capture.sql.templates.packages import crossdb
from govtool.capture.sql.templates.packages.crossdb import Macro, texts, type_name
from govtool.capture.sql.templates.run import MacroRun
from govtool.capture.sql.templates.unknown import MAX_VALUE, Limit, Unknown, bounded_text

_MAX_NUMBERS = 500


def star(
    run: MacroRun,
    from_: object = None,
    relation_alias: object = None,
    except_: object = (),
    prefix: object = "",
    suffix: object = "",
    quote_identifiers: object = True,
    **options: object,
) -> object:
    """The columns of a relation but some, perhaps under other names: a ``*`` where they are not known."""
    from_ = options.get("from", from_)
    except_ = options.get("except", except_)
    alias = f"{relation_alias}." if relation_alias else ""
    columns = run.columns(from_)
    dropped = _names(except_)
    if dropped is None:
        return Unknown("dbt_utils_star", True)
    if columns is None:
        text = alias + _everything(run, dropped)
        if not prefix and not suffix:
            return text
        return text + run.note(
            f"dbt_utils.star renames the columns of {from_} by a prefix or suffix; which they are is not known"
        )
    kept = [column for column in columns if column.name.lower() not in dropped]
    if not kept:
        return "/* no columns */"
    items = [
        f"{alias}{run.identifier(c)}" + (f" as {run.identifier(c, prefix, suffix)}" if prefix or suffix else "")
        for c in kept
    ]
    return ",\n".join(items)


def _names(value: object) -> set[str] | None:
    """Names of columns in lower case; None if there is an unknown one."""
    if isinstance(value, Unknown):
        return None
    items = list(value) if isinstance(value, (list, tuple, set)) else [value] if value else []
    if any(isinstance(item, Unknown) for item in items):
        return None
    return {str(item).strip('"`').lower() for item in items}


def _everything(run: MacroRun, dropped: set[str]) -> str:
    if not dropped:
        return "*"
    word = "exclude" if run.dialect in ("snowflake", "duckdb", "redshift") else "except"
    return f"* {word} ({', '.join(run.quoted(name) for name in sorted(dropped))})"


def get_filtered_columns_in_relation(
    run: MacroRun, from_: object = None, except_: object = (), **options: object
) -> object:
    """The names of a relation's columns but some."""
    relation = options.get("from", from_)
    columns = run.columns(relation)
    dropped = _names(options.get("except", except_))
    if columns is None or dropped is None:
        return run.missing(
            "dbt_utils_get_filtered_columns_in_relation",
            f"dbt_utils.get_filtered_columns_in_relation: the columns of {relation} are not all known",
        )
    return [column.name for column in columns if column.name.lower() not in dropped]


def get_column_values(run: MacroRun, table: object = None, column: object = "", *_: object, **__: object) -> object:
    """The distinct values of a column: they are in the warehouse."""
    return run.missing(
        "dbt_utils_get_column_values", f"dbt_utils.get_column_values: the values of {table}.{column} are not known here"
    )


def union_relations(
    run: MacroRun,
    relations: object = (),
    column_override: object = None,
    include: object = (),
    exclude: object = (),
    source_column_name: object = "_dbt_source_relation",
    where: object = None,
    **_: object,
) -> object:
    """The rows of relations, columns matched by name; what one of them lacks is null there."""
    arms = list(relations) if isinstance(relations, (list, tuple)) else [relations]
    kept, dropped = _names(include), _names(exclude)
    if kept is None or dropped is None or any(isinstance(arm, Unknown) for arm in arms) or not arms:
        return run.missing(
            "dbt_utils_union_relations", "dbt_utils.union_relations: which relations it reads is not known"
        )
    known = [columns for columns in (run.columns(arm) for arm in arms) if columns is not None]
    condition = f" where {where}" if where else ""
    label = str(source_column_name) if source_column_name else ""

    def query(arm: object, items: str) -> str:
        source = f"cast('{arm}' as {type_name(run, 'string')}) as {label}, " if label else ""
        return f"(select {source}{items} from {arm}{condition})"

    # Where all columns are known, this is the package's SQL: each arm has every column, NULL where it lacks one.
    if len(known) == len(arms):
        return _union_by_name(run, arms, known, kept, dropped, column_override, query)
    if kept:
        items = ", ".join(run.quoted(name) for name in texts(include))
        return "\nunion all\n".join(query(arm, items) for arm in arms) + run.note(
            "dbt_utils.union_relations: which of its relations have the columns it includes is not known"
        )
    everything = _everything(run, dropped)
    return "\nunion all by name\n".join(query(arm, everything) for arm in arms)


def _union_by_name(
    run: MacroRun,
    arms: list[object],
    known: list[list[TemplateColumn]],
    kept: set[str],
    dropped: set[str],
    column_override: object,
    query: Callable[[object, str], str],
) -> str:
    """The union of relations whose columns are all known."""
    every = {c.name.lower(): run.identifier(c) for columns in known for c in columns}
    names = [n for n in every if n not in dropped and (not kept or n in kept)]
    if not names:
        return "select 1 as no_columns where false"
    overrides = {str(k).lower(): v for k, v in column_override.items()} if isinstance(column_override, dict) else {}
    queries = []
    for arm, columns in zip(arms, known, strict=True):
        own = {c.name.lower() for c in columns}
        values = [_united(every[name], name in own, overrides.get(name)) for name in names]
        queries.append(query(arm, ", ".join(values)))
    return bounded_text("\nunion all\n".join(queries))


def _united(written: str, exists: bool, type_: object) -> str:
    """A column of one arm, cast to a type if there is one; null where the arm lacks it."""
    value = written if exists else "null"
    if type_ is not None:
        value = f"cast({value} as {type_})"
    return value if value == written else f"{value} as {written}"


def pivot(
    run: MacroRun,
    column: object = "",
    values: object = (),
    alias: object = True,
    agg: object = "sum",
    cmp: object = "=",
    prefix: object = "",
    suffix: object = "",
    then_value: object = 1,
    else_value: object = 0,
    quote_identifiers: object = True,
    distinct: object = False,
) -> object:
    """An aggregate a value of a column, each a column of its own."""
    if isinstance(values, Unknown) or not isinstance(values, (list, tuple)):
        if isinstance(values, Unknown) and values._call:
            return run.missing("dbt_utils_pivot", "dbt_utils.pivot: the values that become columns are not known here")
        values = list(values) if isinstance(values, (set, dict)) else [values]
    if any(isinstance(value, Unknown) for value in values):
        return run.missing("dbt_utils_pivot", "dbt_utils.pivot: the values that become columns are not known here")
    items = []
    for value in values:
        literal = str(value).replace("'", "''")
        text = f"{agg}({'distinct ' if distinct is True else ''}case when {column} {cmp} '{literal}' then {then_value}"
        text += f" else {else_value} end)"
        if alias is True:
            name = f"{prefix}{value}{suffix}"
            text += f" as {run.quoted(name) if quote_identifiers else slugify(run, name)}"
        items.append(text)
    return bounded_text(",\n".join(items))


def unpivot(
    run: MacroRun,
    relation: object = None,
    cast_to: object = "varchar",
    exclude: object = (),
    remove: object = (),
    field_name: object = "field_name",
    value_name: object = "value",
    table: object = None,
    quote_identifiers: object = False,
) -> object:
    """Columns as rows: the excluded ones stay, all others are pairs of name and value, the removed ones are left."""
    relation = table if relation is None else relation
    columns = run.columns(relation)
    kept, gone = _names(exclude), _names(remove)
    if columns is None or kept is None or gone is None:
        return run.missing("dbt_utils_unpivot", f"dbt_utils.unpivot: the columns of {relation} are not all known")
    stay = [run.identifier(c) for c in columns if c.name.lower() in kept]
    turned = [c for c in columns if c.name.lower() not in kept | gone]
    queries = [
        f"select {''.join(f'{name}, ' for name in stay)}"
        f"cast('{c.name}' as {type_name(run, 'string')}) as {field_name}, "
        f"cast({run.identifier(c)} as {cast_to}) as {value_name} from {relation}"
        for c in turned
    ]
    if sum(map(len, queries)) > MAX_VALUE:
        raise Limit("a value that is too long")
    return "\nunion all\n".join(queries) if queries else f"select {', '.join(stay) or '*'} from {relation} where false"


def deduplicate(
    run: MacroRun,
    relation: object = "",
    partition_by: object = "",
    order_by: object = None,
    relation_alias: object = None,
    **options: object,
) -> str:
    """One row of each group."""
    group = options.get("group_by", partition_by)
    order = f" order by {order_by}" if order_by else ""
    condition = "where" if run.dialect in crossdb.TRINO else "qualify"  # it is read only: Trino has no QUALIFY
    return (
        f"select * from {relation} as deduplicated\n"
        f"{condition} row_number() over (partition by {group}{order or ' order by 1'}) = 1"
    )


def surrogate_key(run: MacroRun, *fields: object, **options: object) -> str:
    """The MD5 of some columns."""
    parts = [text for value in (*fields, *options.values()) for text in texts(value)]
    string = type_name(run, "string")
    items: list[str] = []
    for part in parts:
        items += [*(["'-'"] if items else []), f"coalesce(cast({part} as {string}), '_dbt_utils_surrogate_key_null_')"]
    return crossdb.hash_(run, crossdb.concat(run, items))


def group_by(run: MacroRun, n: object = 1, **_: object) -> str:
    """GROUP BY the first so many columns."""
    count = n if isinstance(n, int) and 0 < n < _MAX_NUMBERS else 1
    return "group by " + ", ".join(str(i) for i in range(1, count + 1))


def safe_add(run: MacroRun, *fields: object, **options: object) -> str:
    """A sum in which null is zero."""
    return " + ".join(f"coalesce({text}, 0)" for value in (*fields, *options.values()) for text in texts(value))


def safe_subtract(run: MacroRun, *fields: object, **options: object) -> str:
    """A difference in which null is zero."""
    return " - ".join(f"coalesce({text}, 0)" for value in (*fields, *options.values()) for text in texts(value))


def safe_divide(run: MacroRun, numerator: object = "", denominator: object = "") -> str:
    """A quotient, null where it would fail."""
    return f"( {numerator} ) / nullif( ( {denominator} ), 0)"


def slugify(run: MacroRun, string: object = "") -> str:
    """A text as a name."""
    lower = str(string).lower()
    text = "".join(c if c.isalnum() or c == "_" else "_" if c in " -" else "" for c in lower)
    return f"_{text}" if text[:1].isdigit() else text


def queries_warehouse(package: str, name: str, what: str) -> Macro:
    """A macro whose answer is in the warehouse alone."""

    def call(run: MacroRun, *_: object, **__: object) -> object:
        return run.missing(f"{package}_{name}", f"{package}.{name}: {what} not known here")

    return call


MACROS: dict[str, Macro] = {
    **crossdb.MACROS,
    "star": star,
    "get_filtered_columns_in_relation": get_filtered_columns_in_relation,
    "get_column_values": get_column_values,
    "union_relations": union_relations,
    "union_tables": union_relations,
    "pivot": pivot,
    "unpivot": unpivot,
    "deduplicate": deduplicate,
    "surrogate_key": surrogate_key,
    "generate_surrogate_key": surrogate_key,
    "group_by": group_by,
    "safe_add": safe_add,
    "safe_subtract": safe_subtract,
    "safe_divide": safe_divide,
    "slugify": slugify,
    "pretty_time": crossdb.nothing,
    "pretty_log_format": crossdb.nothing,
    "log_info": crossdb.nothing,
    "get_relations_by_pattern": queries_warehouse(
        "dbt_utils", "get_relations_by_pattern", "which relations there are is"
    ),
    "get_relations_by_prefix": queries_warehouse(
        "dbt_utils", "get_relations_by_prefix", "which relations there are is"
    ),
    "get_query_results_as_dict": queries_warehouse(
        "dbt_utils", "get_query_results_as_dict", "the result of the query is"
    ),
    "get_single_value": queries_warehouse("dbt_utils", "get_single_value", "the result of the query is"),
}
"""By name."""

QUERYING_MACROS = frozenset(
    {
        "star", "get_filtered_columns_in_relation", "get_column_values", "union_relations", "unpivot",
        "get_relations_by_pattern", "get_relations_by_prefix", "get_query_results_as_dict", "get_single_value",
        "date_spine", "generate_series",
    }
)  # fmt: skip
"""Those that ask the warehouse: what is here goes before the package on disk."""
