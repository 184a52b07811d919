"""fivetran_utils (its README on hub.getdbt.com): macros that Fivetran's packages make their staging models with."""

from __future__ import annotations

from collections.abc import Mapping

from govtool.capture.sql.templates.packages import crossdb
from govtool.capture.sql.templates.packages.crossdb import Macro, texts, type_name
from govtool.capture.sql.templates.run import MacroRun
from govtool.capture.sql.templates.unknown import Unknown


def fill_staging_columns(run: MacroRun, source_columns: object = (), staging_columns: object = ()) -> object:
    """The columns that a staging model wants of its source: null where the source lacks one."""
    wanted = list(staging_columns) if isinstance(staging_columns, (list, tuple)) else None
    if wanted is None or not all(isinstance(c, Mapping) and "name" in c for c in wanted):
        return run.missing(
            "fivetran_utils_fill_staging_columns", "fivetran_utils.fill_staging_columns: its columns are not known"
        )
    known: set[str] | None = None
    if isinstance(source_columns, (list, tuple)):
        known = {str(column.name).lower() for column in source_columns}
    items = []
    for column in wanted:
        name = str(column["name"])
        alias = str(column.get("alias") or name)
        if known is not None and name.strip('"`').lower() not in known:
            items.append(f"cast(null as {column.get('datatype', 'varchar')}) as {alias}")
        else:
            items.append(name if alias == name else f"{name} as {alias}")
    text = ",\n".join(items)
    if known is None:
        text += run.note(
            "fivetran_utils.fill_staging_columns: which of these columns the source has is not known; "
            "one that it lacks is null there"
        )
    return text


def passed(run: MacroRun, variable: object) -> list[tuple[str, str, str]] | None:
    """The columns that a variable lets pass: name, alias and SQL of each; None if that is not known."""
    value = run.variable(str(variable)) if isinstance(variable, str) else variable
    if isinstance(value, Unknown):
        return None
    found = []
    for item in value if isinstance(value, (list, tuple)) else ():
        if isinstance(item, Mapping):
            name = str(item.get("name") or "")
            alias = str(item.get("alias") or name)
            found.append((name, alias, str(item.get("transform_sql") or "")))
        elif isinstance(item, Unknown):
            return None
        else:
            found.append((str(item), str(item), ""))
    return found


def fill_pass_through_columns(run: MacroRun, pass_through_variable: object = "") -> object:
    """The columns that a variable lets pass, behind others."""
    columns = passed(run, pass_through_variable)
    if columns is None:
        return run.note(f"fivetran_utils: the columns that {pass_through_variable} adds are not known")
    return "".join(f", {sql or alias} as {alias}" if sql else f", {alias}" for _, alias, sql in columns)


def add_pass_through_columns(run: MacroRun, base_columns: object = None, pass_through_var: object = ()) -> object:
    """Adds the columns that a variable lets pass to a list."""
    columns = passed(run, pass_through_var)
    if columns is None:
        return run.note("fivetran_utils: the columns that a variable adds are not known")
    if isinstance(base_columns, list):
        base_columns += [
            {"name": name, "alias": alias, "datatype": type_name(run, "string")} for name, alias, _ in columns
        ]
    return ""


def _unions(run: MacroRun, package_name: object, *variables: str) -> bool:
    """Return whether several connections are united, by a variable."""
    return any(
        value and not isinstance(value, Unknown) and len(list(value) if isinstance(value, (list, dict)) else "x") > 0
        for value in (run.variable(name, ()) for name in variables)
    )


def _united(run: MacroRun, package_name: object) -> bool:
    prefix = f"{package_name}_" if package_name else ""
    return _unions(run, package_name, f"{prefix}sources", f"{prefix}union_schemas", f"{prefix}union_databases")


def apply_source_relation(run: MacroRun, package_name: object = "", **_: object) -> str:
    """A column behind others with the connection that a row is from."""
    string = type_name(run, "string")
    if _united(run, package_name):
        return ", _dbt_source_relation as source_relation"
    return f", cast('' as {string}) as source_relation"


def partition_by_source_relation(
    run: MacroRun, package_name: object = "", has_other_partitions: object = "yes", alias: object = None, **_: object
) -> str:
    """The column of the connection in a PARTITION BY, if several are united."""
    if not _united(run, package_name):
        return ""
    column = f"{alias}.source_relation" if alias else "source_relation"
    return f", {column}" if has_other_partitions == "yes" else f"partition by {column}"


def union_connections(
    run: MacroRun,
    connection_dictionary: object = "",
    single_source_name: object = "",
    single_table_name: object = "",
    *_: object,
    **__: object,
) -> object:
    """The rows of a table in every connection that a variable names, or in the one that there is."""
    if _unions(run, "", str(connection_dictionary)):
        return run.missing(
            "fivetran_utils_union_connections",
            f"fivetran_utils.union_connections: the tables of {connection_dictionary} are not known",
        )
    return f"select * from {run.source(single_source_name, single_table_name)}"


def json_extract(run: MacroRun, string: object = "", string_path: object = "") -> str:
    """A field of a JSON text."""
    path = str(string_path).replace("'", "''")
    if run.dialect == "snowflake":
        return f"json_extract_path_text(try_parse_json({string}), '{path}')"
    if run.dialect in crossdb.POSTGRES:
        return f"({string}::json->>'{path}')"
    if run.dialect == "redshift":
        return f"json_extract_path_text({string}, '{path}')"
    return (
        f"json_extract_scalar({string}, '$.{path}')"
        if run.dialect == "bigquery"
        else f"get_json_object({string}, '$.{path}')"
    )


def json_parse(run: MacroRun, string: object = "", string_path: object = ()) -> str:
    """A nested field of a JSON text."""
    return json_extract(run, string, ".".join(texts(string_path)))


def string_agg(run: MacroRun, field_to_agg: object = "", delimiter: object = ",") -> str:
    """The texts of a group."""
    return crossdb.listagg(run, field_to_agg, "'" + str(delimiter).replace("'", "''") + "'")


def max_bool(run: MacroRun, boolean_field: object = "") -> str:
    """Return whether an expression holds anywhere in a group."""
    return crossdb.bool_or(run, boolean_field) if run.dialect in crossdb.POSTGRES else f"max({boolean_field})"


MACROS: dict[str, Macro] = {
    "fill_staging_columns": fill_staging_columns,
    "fill_pass_through_columns": fill_pass_through_columns,
    "add_pass_through_columns": add_pass_through_columns,
    "apply_source_relation": apply_source_relation,
    "partition_by_source_relation": partition_by_source_relation,
    "union_connections": union_connections,
    "json_extract": json_extract,
    "json_parse": json_parse,
    "string_agg": string_agg,
    "max_bool": max_bool,
    "timestamp_add": lambda run, datepart="day", interval=1, from_timestamp="": crossdb.dateadd(
        run, datepart, interval, from_timestamp
    ),
    "empty_variable_warning": crossdb.nothing,
}
"""By name."""

QUERYING_MACROS = frozenset({"fill_staging_columns"})
"""Those that ask the warehouse: what is here goes before the package on disk."""
