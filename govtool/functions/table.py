"""The table of function facts: one line a function, or several functions of which the same holds.

A line is ``names: facts``. Names are separated by spaces and lower-case, as databases document them. In
``parser's name = other names: facts`` the first is the name that sqlglot's tree gives the function and the others are
what users write, in any dialect; facts hold for all of them, and may be left out. A function may stand in several
lines, its facts add up.

To add a masking function of Snowflake, add its name to the section "Masking" with its fact: ``mask_email: mask``.

Facts of values (what a policy and OpenLineage's ``masking`` go by):

* ``keyed``: the value is hidden with a key: HMAC, encryption, tokenisation. ``value=2 key=1`` are the positions of the
  two arguments, counted from 1; ``clickhouse/value=2`` is the position in one dialect. The default is
  ``value=1 key=2``. ``key=0``: the key is not an argument, or not at a place that all share.
* ``hash``: hidden without a key: anyone can hash a guess and compare.
* ``mask``: characters are blotted out or replaced.
* ``undoes=f,g``: the inverse of ``f`` and ``g``: it gives the value back.
* ``partial``: a real part of the value stays. ``keeps``: the whole value stays, in another form or place.
* ``choice``: picks among its arguments, by a condition.

Facts of rows:

* ``aggregate``: one value for a group of rows. ``member``: that value is a real value of one row or of each.
  ``collects``: an array or a string of all of them. ``ordered``: the result depends on the order of rows.
  ``approximate``: the result may differ a little from the exact one. ``number``: it says how many there are.
  ``rows``: ``f(*)`` counts rows and reads no column.
* ``window``: makes sense only under OVER. ``rank``: there its own arguments do not matter. ``row``: under OVER it hands
  on the value of one row.
* ``series``: in FROM, rows of one column, named after the function. ``table``: in FROM, rows made of the arguments.
  ``single``: how many rows there are does not depend on the arguments' values; it does for all others.

Facts of what is read besides:

* ``elsewhere``: it reads what its arguments name: the query in a text, a table by its name, a dictionary.

Facts of repetition: the same call on the same data gives another result.

* ``random``: by chance, or by how the engine spreads rows. ``clock``: by the time. ``session``: by who runs it where.
* ``generates``: the result is made of nothing but these: arguments are a seed or a format.

Sources: the function references of Spark, Databricks, Hive, Snowflake, BigQuery, PostgreSQL (with pgcrypto), MySQL,
SQL Server, Oracle (DBMS_CRYPTO), Redshift, Trino, ClickHouse and DuckDB.
"""

from __future__ import annotations

from typing import Final

TABLE: Final = """
# ---- Masking: with a key -----------------------------------------------------------------------------------------
hmac: keyed clickhouse/value=2 clickhouse/key=3
hmac_sha1 hmac_sha224 hmac_sha256 hmac_sha384 hmac_sha512 hmac_md5: keyed
encrypt: keyed clickhouse/value=2 clickhouse/key=3
encrypt_raw aes_encrypt try_aes_encrypt des_encrypt: keyed
pgp_sym_encrypt pgp_sym_encrypt_bytea pgp_pub_encrypt pgp_pub_encrypt_bytea crypt: keyed
aead.encrypt aead.deterministic_encrypt deterministic_encrypt dlp_deterministic_encrypt: keyed value=2 key=1
encryptbykey encryptbypassphrase encryptbyasymkey encryptbycert: keyed value=2 key=1
aes_encrypt_mysql: keyed value=2 key=3
dbms_crypto.encrypt dbms_crypto.mac: keyed value=1 key=3
tokenize detokenizable_hash keyed_hash fpe_encrypt fpe_tokenize: keyed key=0

# ---- Masking: the way back ---------------------------------------------------------------------------------------
decrypt = try_decrypt: undoes=encrypt clickhouse/value=2 clickhouse/key=3
decrypt_raw try_decrypt_raw: undoes=encrypt_raw
aes_decrypt try_aes_decrypt: undoes=aes_encrypt,try_aes_encrypt
des_decrypt: undoes=des_encrypt
fpe_decrypt: undoes=fpe_encrypt
fpe_detokenize: undoes=fpe_tokenize
pgp_sym_decrypt pgp_sym_decrypt_bytea: undoes=pgp_sym_encrypt,pgp_sym_encrypt_bytea
pgp_pub_decrypt pgp_pub_decrypt_bytea: undoes=pgp_pub_encrypt,pgp_pub_encrypt_bytea
aead.decrypt_string aead.decrypt_bytes: undoes=aead.encrypt value=2 key=1
deterministic_decrypt_string deterministic_decrypt_bytes: undoes=deterministic_encrypt value=2 key=1
dlp_deterministic_decrypt: undoes=dlp_deterministic_encrypt value=2 key=1
decryptbykey: undoes=encryptbykey value=1 key=0
decryptbykeyautoasymkey decryptbykeyautocert: undoes=encryptbykey value=3 key=1
decryptbypassphrase: undoes=encryptbypassphrase value=2 key=1
decryptbyasymkey: undoes=encryptbyasymkey value=2 key=1
decryptbycert: undoes=encryptbycert value=2 key=1
aes_decrypt_mysql: undoes=aes_encrypt_mysql value=2 key=3
dbms_crypto.decrypt: undoes=dbms_crypto.encrypt value=1 key=3
detokenize: undoes=tokenize,detokenizable_hash key=0

# ---- Masking: hashes without a key -------------------------------------------------------------------------------
md5 = md5_hex md5_digest: hash
md5_binary = md5_digest: hash
md5_number_lower64 md5_number_upper64: hash
sha1 = sha sha1_hex: hash
sha1_binary = sha1_digest: hash
sha2 = sha2_hex sha224 sha256 sha384 sha512: hash
sha2_binary = sha2_digest: hash
sha256 = sha2: hash
sha512 = sha2: hash
sha2_512 hash standard_hash xxhash64 murmur3 murmur_hash ora_hash fnv_hash mask_hash checksum binary_checksum: hash
farm_fingerprint = farmfingerprint farmfingerprint64: hash
hashbytes: hash value=2
digest dbms_crypto.hash: hash

# ---- Masking: characters blotted out -----------------------------------------------------------------------------
mask mask_first_n mask_last_n regexp_mask: mask

# ---- Values that stay real, in part ------------------------------------------------------------------------------
mask_show_first_n mask_show_last_n left right split_part: partial
substring = substr mid: partial
split = str_split string_split: partial table
string_to_array = split_to_array: partial
regexp_extract = regexp_substr: partial
regexp_extract_all = regexp_substr_all: partial
regexp_split = str_split_regex string_split_regex split: partial

# ---- Values that stay real, whole --------------------------------------------------------------------------------
upper = ucase: keeps
lower = lcase: keeps
trim = btrim ltrim rtrim: keeps
coalesce = ifnull isnull nvl: keeps
if = iff: keeps
case initcap reverse concat concat_ws cast nvl2: keeps
convert = try_convert: keeps
try_cast = safe_cast: keeps
to_char = to_varchar: keeps
to_json hex: keeps
time_to_str = to_char date_format format_date format_datetime format_time format_timestamp strftime
json_format = to_json to_json_string
hex = to_hex hex_encode
lower_hex = to_hex hex
unhex = from_hex: keeps
to_base64 = base64: keeps
from_base64 = unbase64: keeps
encode = to_utf8: keeps
decode = from_utf8: keeps

# ---- Choices among values ------------------------------------------------------------------------------------------
case if iff nvl2 decode nullif: choice

# ---- Aggregates that hand on real values -------------------------------------------------------------------------
min max: aggregate member
any_value = arbitrary: aggregate member ordered row
any_value = any
first last: aggregate member ordered row
first_value last_value: aggregate member ordered row
anylast: aggregate member ordered
arg_max = max_by: aggregate member ordered
arg_min = min_by: aggregate member ordered
mode: aggregate member
percentile_disc = quantile_disc: aggregate member
array_agg = collect_list list: aggregate member collects ordered
array_unique_agg = collect_set set_agg: aggregate member collects
array_concat_agg grouparray: aggregate member collects ordered
group_concat = string_agg listagg: aggregate member collects ordered
json_agg jsonb_agg json_object_agg jsonb_object_agg object_agg xmlagg: aggregate member collects ordered
approx_top_k = approx_top_count: aggregate member approximate
topk: aggregate member approximate
histogram: aggregate member

# ---- Aggregates that count or calculate --------------------------------------------------------------------------
count = count_big: aggregate number rows
count_if = countif: aggregate number
countif countstate: aggregate rows
approx_distinct = approx_count_distinct uniq: aggregate number approximate
hll: aggregate number approximate
uniqexact: aggregate
sum avg mean product sum_if sumif avgif try_sum try_avg: aggregate
median percentile percentile_cont: aggregate
percentile_cont = quantile_cont
approx_quantile = approx_percentile: aggregate approximate
percentile_approx approx_median: aggregate approximate
stddev = stdev stddev_samp std: aggregate
stddev_pop = std stddev: aggregate
variance = var_samp variance_samp: aggregate
variance_pop = var_pop: aggregate
corr covar_pop covar_samp kurtosis: aggregate
skewness = skew: aggregate
regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy: aggregate
logical_and = bool_and booland_agg: aggregate
logical_or = bool_or boolor_agg: aggregate
any every some: aggregate
bitwise_and_agg = bit_and bit_and_agg bitand_agg: aggregate
bitwise_or_agg = bit_or bit_or_agg bitor_agg: aggregate
bitwise_xor_agg = bit_xor bit_xor_agg bitxor_agg: aggregate
bitmap_union bitmap_construct_agg bitmap_or_agg checksum_agg: aggregate
hll_union_agg hll_count.init hll_sketch_agg theta_sketch_agg theta_union_agg: aggregate approximate
count_min_sketch histogram_numeric: aggregate approximate
grouping grouping_id: aggregate

# ---- Windows -----------------------------------------------------------------------------------------------------
rank dense_rank percent_rank row_number cume_dist ntile: window rank
lag lead nth_value: member ordered row window

# ---- Another result each time ------------------------------------------------------------------------------------
rand = random: random generates
randn randstr monotonically_increasing_id: random generates
uuid = gen_random_uuid newid uuid_string: random generates
generate_uuid newsequentialid uuid_generate_v4 uuidv7: random generates
uniform normal zipf: random
shuffle spark_partition_id: random
current_timestamp = now getdate sysdatetime systimestamp: clock generates
current_date = curdate: clock generates
current_time = curtime: clock generates
current_datetime current_timestamp_ltz localtime localtimestamp sysdate utc_date utc_time utc_timestamp: clock generates
clock_timestamp statement_timestamp transaction_timestamp timeofday sysutcdatetime getutcdate: clock generates
unix_timestamp: clock
input_file_name input_file_block_start input_file_block_length: session generates
current_user session_user current_role current_schema current_database current_catalog: session generates
current_warehouse current_region current_session pg_backend_pid txid_current: session generates
user system_user version connection_id: session
nextval last_insert_id lastval scope_identity: session random

# ---- Data that is named by a text --------------------------------------------------------------------------------
query_to_xml query_to_xml_and_xmlschema table_to_xml table_to_xml_and_xmlschema cursor_to_xml: elsewhere
schema_to_xml schema_to_xml_and_xmlschema database_to_xml database_to_xml_and_xmlschema: elsewhere
dictget dictgetordefault dictgetornull dictgethierarchy dictgetchildren dictgetdescendants dictgetall: elsewhere
joinget joingetornull: elsewhere

# ---- Rows in FROM ------------------------------------------------------------------------------------------------
generate_series range generate_subscripts regexp_split_to_table string_to_table json_object_keys: series
jsonb_object_keys: series
generate_series = generate_array sequence range
json_each jsonb_each json_each_text jsonb_each_text json_array_elements jsonb_array_elements: table
json_array_elements_text jsonb_array_elements_text json_to_record json_to_recordset jsonb_to_record: table
jsonb_to_recordset json_populate_record json_populate_recordset jsonb_populate_record: table
jsonb_populate_recordset jsonb_path_query json_path_query json_table json_tuple openjson: table
regexp_matches string_split split_to_table strtok_split_to_table parse_url_tuple: table
explode = unnest flatten: table
explode_outer posexplode posexplode_outer inline inline_outer stack: table
ts_stat ts_parse ts_token_type ts_debug to_tsquery plainto_tsquery phraseto_tsquery websearch_to_tsquery: table
each skeys svals openxml xmltable xmlsequence table values glob summary repeat_row exclude_columns: table
generator infer_schema sequence numbers zeros variant_explode variant_explode_outer: table
json_tuple parse_url_tuple stack json_to_record jsonb_to_record json_populate_record jsonb_populate_record: single
ts_stat to_tsquery plainto_tsquery phraseto_tsquery websearch_to_tsquery values exclude_columns summary: single
tumble hop session cumulate aclexplode txid_snapshot_xip: table
fn_my_permissions fn_dblog fn_listextendedproperty fn_trace_gettable: table

# ---- Names only --------------------------------------------------------------------------------------------------
array = array_construct list_value
array_concat = array_cat list_concat
array_intersect = array_intersection
array_size = array_length cardinality size
array_to_string = array_join
byte_length = octet_length
ceil = ceiling
chr = char
date_add = dateadd
date_diff = datediff
date_from_parts = make_date
date_trunc = trunc
day_of_year = doy
dayofweek_iso = day_of_week dow isodow
extract = date_part datepart
format = format_string
json_extract = json_query jsonextractraw json_extract_path
json_extract_scalar = json_value json_extract_path_text jsonextractstring
length = len char_length character_length textlen
levenshtein = edit_distance editdistance levenshtein_distance
ln = log
log = log2 log10
number_to_str = format
pad = lpad rpad leftpad rightpad
parse_json = json_parse try_parse_json
regexp_count = countmatches
repeat = replicate
safe_add = try_add
safe_divide = try_divide
safe_multiply = try_multiply
safe_subtract = try_subtract
sign = signum
str_position = position charindex instr locate strpos
str_to_date = to_date parse_date
str_to_time = to_timestamp parse_timestamp strptime date_parse
str_to_unix = unix_timestamp to_unix_timestamp
struct = row object_construct struct_pack
time_to_unix = to_unixtime
timestamp_trunc = date_trunc datetrunc datetime_trunc
to_number = to_decimal to_numeric try_to_number try_to_decimal
trunc = truncate
ts_or_ds_add = date_add dateadd date_sub add_months
ts_or_ds_diff = date_diff datediff
ts_or_ds_to_date = to_date
unix_to_str = from_unixtime
unix_to_time = to_timestamp from_unixtime timestamp_seconds timestamp_millis timestamp_micros
week_of_year = week weekofyear
"""
"""The facts. Sections and the order of lines mean nothing."""

NODES: Final = """
MD5: tsql=hashbytes fabric=hashbytes
MD5Digest: snowflake=md5_binary *=md5
SHA: tsql=hashbytes fabric=hashbytes *=sha1
SHA1Digest: snowflake=sha1_binary *=sha1
SHA2: tsql=hashbytes fabric=hashbytes duckdb=sha256
SHA2Digest: snowflake=sha2_binary
"""
"""Classes of sqlglot's tree that stand for one function in one dialect and for another in the next: what the
function is called there, and elsewhere (``*``)."""
