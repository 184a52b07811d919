"""Changes of a column's type: when a statement provably breaks, and when the type is handed on.

Only what every reading of the dialect's manual forbids counts: an assignment without any implicit cast, or SUM and AVG
over what cannot be summed. Everything else ``changes``, for review. Dialects that coerce freely are left out.
Of a type without a family nothing can be proved: ``not_compared`` says so.
"""

from __future__ import annotations

import re
from difflib import get_close_matches

from govtool.graph.codes import PARTITION
from govtool.graph.index import Index
from govtool.graph.walks.rules import STATEMENT
from govtool.model.kinds import EdgeKind
from govtool.query.changes.change import ReachState

_FAMILIES = {
    "number": "int integer tinyint smallint mediumint bigint int2 int4 int8 int64 hugeint byteint decimal numeric "
    "number bignumeric bigdecimal dec float float4 float8 float64 double real money serial bigserial long short",
    "text": "char varchar text string character nchar nvarchar bpchar varchar2 nvarchar2 clob citext",
    "boolean": "bool boolean",
    "time point": "date datetime timestamp timestamptz timestampntz timestampltz timestamp_ntz timestamp_ltz "
    "timestamp_tz",
    "nested": "array struct map row record object",
}
_FAMILY = {name: family for family, names in _FAMILIES.items() for name in names.split()}

# Types of some dialect that belong to no family: nothing is known of what they can be assigned to.
_OF_NO_FAMILY = (
    "aggregatefunction any bignum binary binary_double binary_float bit bitstring blob box byte bytea bytes "
    "character_set cidr circle cstring date32 datemultirange daterange datetime2 datetime64 datetimeoffset "
    "decfloat decimal128 decimal256 decimal32 decimal64 dynamic enum enum16 enum8 file fixed fixedstring float32 "
    "geography geographypoint geometry hierarchyid hll hllsketch hstore hyperloglog image inet int1 int128 int16 "
    "int256 int32 int4multirange int4range int8multirange int8range interval ipaddress ipprefix ipv4 ipv6 json "
    "jsonb jsonpath largeint line linestring list logical longblob longtext longvarchar lowcardinality lseg ltree "
    "macaddr macaddr8 mediumblob mediumtext multilinestring multipolygon name nested nothing ntext null nullable "
    "nummultirange numrange object_identifier oid path pg_lsn point polygon pseudo_type range raw ref regclass "
    "regcollation regconfig regdictionary regnamespace regoper regoperator regproc regprocedure regrole regtype "
    "ring rowid rowversion set signed simpleaggregatefunction smalldatetime smallmoney smallserial sql_double "
    "sql_varchar sql_variant st_geometry str super tdigest time time_ns timestamp_ms timestamp_ns timestamp_s "
    "timestamp_us timetz tinyblob tinytext tsmultirange tsquery tsrange tstzmultirange tstzrange tsvector tuple "
    "ubigint udecimal udouble uhugeint uint uint128 uint16 uint256 uint32 uint64 uint8 uinteger umediumint union "
    "uniqueidentifier unknown unsigned urowid userdefined usmallint utinyint uuid varbinary varbyte variant "
    "vector void xml xmltype year "
)
_WITHOUT_FAMILY = frozenset(_OF_NO_FAMILY.split())

# Assignment of one family to another that the dialect has no implicit cast for.
_STRICT = frozenset({"postgres", "bigquery", "trino", "presto", "athena"})
_NO_ASSIGNMENT = {
    **{(dialect, "text", to): True for dialect in _STRICT for to in ("number", "boolean", "time point")},
    **{(dialect, "number", "text"): True for dialect in _STRICT - {"postgres"}},
    **{(dialect, "time point", to): True for dialect in _STRICT for to in ("number", "boolean")},
    **{(dialect, "number", "time point"): True for dialect in _STRICT},
    **{(dialect, "nested", to): True for dialect in _STRICT for to in ("number", "boolean", "time point")},
    **{(dialect, of, "nested"): True for dialect in _STRICT for of in ("number", "boolean", "time point")},
}
_SUMS = frozenset({("sum",), ("avg",)})
_NOT_SUMMED = frozenset({"text", "boolean", "time point"})


def family(type_text: str | None) -> str | None:
    """The family of a SQL type, or ``None`` if it is not known.

    >>> family("NUMERIC(10, 2)"), family("timestamp with time zone"), family("array<int>"), family("geometry")
    ('number', 'time point', 'nested', None)
    """
    if not type_text:
        return None
    text = type_text.strip().lower()
    if text.endswith("]"):
        return "nested"
    found = re.match(r"[a-z_]+\d*", text)
    return _FAMILY.get(found[0]) if found else None


def not_compared(type_text: str | None) -> str:
    """Why no incompatibility with a new type can be proved; empty of a type that is compared with others.

    >>> not_compared("numeric(10, 2)"), not_compared("uuid")
    ('', 'uuid is not compared with other types: no incompatibility can be proved')
    >>> not_compared("interger")
    "no type is known as 'interger' (did you mean integer?): no incompatibility can be proved"
    """
    if not type_text or family(type_text) is not None:
        return ""
    found = re.match(r"[a-z_]+\d*", type_text.strip().lower())
    if found and found[0] in _WITHOUT_FAMILY:
        return f"{type_text.strip()} is not compared with other types: no incompatibility can be proved"
    near = get_close_matches(type_text.strip().lower(), sorted({*_FAMILY, *_WITHOUT_FAMILY}), 1, 0.75)
    proposal = f" (did you mean {near[0]}?)" if near else ""
    return f"no type is known as {type_text.strip()!r}{proposal}: no incompatibility can be proved"


_SYNONYMS = {
    "int4": "int", "integer": "int", "int64": "bigint", "boolean": "bool",
    "float8": "double", "double precision": "double", "numeric": "decimal", "dec": "decimal", "string": "text",
    "character varying": "varchar", "character": "char", "timestamp with time zone": "timestamptz",
    "timestamp without time zone": "timestamp",
}  # fmt: skip


def same_type(one: str | None, other: str | None) -> bool:
    """Return whether two texts name one type; types that are not known to be the same are not.

    >>> same_type("INT", "integer"), same_type("VARCHAR(20)", "varchar( 20 )"), same_type("varchar(20)", "varchar(30)")
    (True, True, False)
    """
    return bool(one and other) and _plain(one or "") == _plain(other or "")


def _plain(text: str) -> tuple[str, str]:
    """The canonical name of a type, and its arguments."""
    plain = re.sub(r"(?:(?<!\s)\s++)?([(),<>])\s*", r"\1", " ".join(text.lower().split()))
    arguments = "".join(re.findall(r"\([^()]*\)", plain))
    name = plain if "<" in plain else " ".join(re.sub(r"\([^()]*\)", " ", plain).split())
    return _SYNONYMS.get(name, name), arguments


def retype_action(index: Index, new_type: str, edge: int) -> int:
    """The action (see ``govtool.graph.walks.walk``) of an edge whose source has the new type."""
    kind, functions = index.kind(edge), index.functions(edge)
    derivation, target = index.edge_derivation[edge], index.edge_target[edge]
    new = family(new_type)
    dialect = index.field(derivation, "dialect") or ""
    if kind is EdgeKind.AGGREGATION and functions in _SUMS and dialect in _STRICT and new in _NOT_SUMMED:
        return STATEMENT | (1 + ReachState.BREAKS)
    if kind is EdgeKind.IDENTITY and not functions and not index.is_rows(target):
        if index.mode(derivation) in ("replace", "rename") and not index.is_declared(target):
            return 1 + ReachState.RETYPED
        if index.field(derivation, "kind") == PARTITION:
            return 1 + ReachState.CHANGES  # a partition is retyped with its parent
        if new and index.is_declared(target) and (dialect, new, family(index.type(target))) in _NO_ASSIGNMENT:
            return STATEMENT | (1 + ReachState.BREAKS)
    return 1 + ReachState.CHANGES
