"""Functions by their names: as users write them, as parsers of SQL call them, with and without a schema.

The graph has the name that sqlglot gives a function, whatever the dialect (``substr`` is ``substring``, PostgreSQL's
``date_trunc`` is ``timestamp_trunc``), without the schema where the dialect's grammar takes it for a table's; Spark's
plans have Spark's own names. A policy has the name that its author knows.
"""

from __future__ import annotations

from collections.abc import Iterator

_WRITTEN = """
approx_distinct: approx_count_distinct uniq
approx_quantile: approx_percentile
approx_top_k: approx_top_count
any_value: any arbitrary
arg_max: max_by
arg_min: min_by
array: array_construct list_value
array_agg: collect_list list
array_concat: array_cat list_concat
array_intersect: array_intersection
array_size: array_length cardinality size
array_to_string: array_join
array_unique_agg: collect_set set_agg
bitwise_and_agg: bit_and bit_and_agg bitand_agg
bitwise_or_agg: bit_or bit_or_agg bitor_agg
bitwise_xor_agg: bit_xor bit_xor_agg bitxor_agg
byte_length: octet_length
ceil: ceiling
chr: char
coalesce: ifnull isnull nvl
convert: try_convert
count: count_big
count_if: countif
date_add: dateadd
date_diff: datediff
date_from_parts: make_date
date_trunc: trunc
day_of_year: doy
dayofweek_iso: day_of_week dow isodow
decode: from_utf8
decrypt: try_decrypt
encode: to_utf8
explode: unnest flatten
extract: date_part datepart
farm_fingerprint: farmfingerprint64
format: format_string
from_base64: unbase64
generate_series: generate_array sequence range
group_concat: string_agg listagg
hex: to_hex hex_encode
if: iff
json_extract: json_query jsonextractraw json_extract_path
json_extract_scalar: json_value json_extract_path_text jsonextractstring
json_format: to_json to_json_string
length: len char_length character_length textlen
levenshtein: edit_distance editdistance levenshtein_distance
ln: log
log: log2 log10
logical_and: bool_and booland_agg
logical_or: bool_or boolor_agg
lower: lcase
lower_hex: to_hex hex
md5: md5_hex md5_digest
md5_binary: md5_digest
number_to_str: format
pad: lpad rpad leftpad rightpad
parse_json: json_parse try_parse_json
percentile_cont: quantile_cont
percentile_disc: quantile_disc
rand: random
regexp_count: countmatches
regexp_extract: regexp_substr
regexp_extract_all: regexp_substr_all
regexp_split: str_split_regex string_split_regex split
repeat: replicate
safe_add: try_add
safe_divide: try_divide
safe_multiply: try_multiply
safe_subtract: try_subtract
sha1: sha sha1_hex
sha1_binary: sha1_digest
sha2: sha2_hex sha224 sha256 sha384 sha512
sha256: sha2
sha2_binary: sha2_digest
sha512: sha2
sign: signum
skewness: skew
split: str_split string_split
stddev: stdev stddev_samp std
stddev_pop: std stddev
str_position: position charindex instr locate strpos
str_to_date: to_date parse_date
str_to_time: to_timestamp parse_timestamp strptime date_parse
str_to_unix: unix_timestamp to_unix_timestamp
string_to_array: split_to_array
struct: row object_construct struct_pack
substring: substr mid
time_to_str: to_char date_format format_date format_datetime format_time format_timestamp strftime
time_to_unix: to_unixtime
timestamp_trunc: date_trunc datetrunc datetime_trunc
to_base64: base64
to_char: to_varchar
to_number: to_decimal to_numeric try_to_number try_to_decimal
trim: btrim ltrim rtrim
trunc: truncate
try_cast: safe_cast
ts_or_ds_add: date_add dateadd date_sub add_months
ts_or_ds_diff: date_diff datediff
ts_or_ds_to_date: to_date
unhex: from_hex
unix_to_str: from_unixtime
unix_to_time: to_timestamp from_unixtime timestamp_seconds timestamp_millis timestamp_micros
upper: ucase
uuid: gen_random_uuid newid uuid_string
variance: var_samp variance_samp
variance_pop: var_pop
week_of_year: week weekofyear
"""
"""The parser's name, and what users write; a name may be several of the parser's, in different dialects."""


def squashed(name: str) -> str:
    """A name without its underscores: parsers of SQL split the same function's name in different places."""
    return name.lower().replace("_", "")


def _aliases() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in _WRITTEN.strip().splitlines():
        name, _, written = line.partition(": ")
        for one in written.split():
            found.setdefault(squashed(one), set()).add(squashed(name))
    return {name: frozenset(parsed) for name, parsed in found.items()}


ALIASES = _aliases()
"""What parsers call a function, by what users write; both without underscores."""


def spellings(function: str) -> frozenset[str]:
    """The names by which a function may be meant: its own, that of its last part, what parsers call it.

    >>> sorted(spellings("dbo.mask_email")), sorted(spellings("substr"))
    (['dbo.maskemail', 'maskemail'], ['substr', 'substring'])
    """
    own = squashed(function)
    last = own.rpartition(".")[2]
    return frozenset((own, last)) | (ALIASES.get(own, frozenset()) if own == last else frozenset())


def is_same(one: str, other: str) -> bool:
    """Whether two names may be of the same function; of two with schemas, neither may be of another schema.

    >>> is_same("substr", "substring"), is_same("ltrim", "rtrim"), is_same("ltrim", "trim")
    (True, False, True)
    >>> is_same("dbo.mask", "mask"), is_same("dbo.mask", "db.dbo.mask"), is_same("dbo.mask", "etl.mask")
    (True, True, False)
    """
    a, b = squashed(one), squashed(other)
    if "." in a or "." in b:
        return f".{a}".endswith(f".{b}") or f".{b}".endswith(f".{a}")
    return a == b or a in ALIASES.get(b, ()) or b in ALIASES.get(a, ())


def known_names() -> Iterator[str]:
    """Functions that databases have, by the names above and those of sqlglot's dialects."""
    from sqlglot.dialects.dialect import Dialect

    for line in _WRITTEN.strip().splitlines():
        name, _, written = line.partition(": ")
        yield name
        yield from written.split()
    for dialect in ("", *Dialect.classes):
        if dialect != "dialect":
            parser = Dialect.get_or_raise(dialect).parser_class
            yield from (name.lower() for name in (*parser.FUNCTIONS, *parser.FUNCTION_PARSERS))
