"""Functions that hide values, and functions that never do; which of them a declassifier means.

A declassifier lists functions by name, by glob, or by one of the sets ``@keyed``, ``@hash``, ``@mask``. Globs and sets
never mean a function of ``NEVER``: whoever wants ``max`` to count must write ``max``, and lint says what that means.
Hashing is pseudonymisation (GDPR Art. 4(5)); an unkeyed hash of few possible values is no more than a code.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from govtool.policy.functions import is_same, spellings, squashed


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


KEYED = _words(
    "hmac hmac_sha1 hmac_sha224 hmac_sha256 hmac_sha384 hmac_sha512 tokenize detokenizable_hash encrypt encrypt_raw "
    "aes_encrypt try_aes_encrypt pgp_sym_encrypt pgp_pub_encrypt crypt deterministic_encrypt aead.encrypt "
    "aead.deterministic_encrypt encryptbykey encryptbypassphrase keyed_hash fpe_encrypt fpe_tokenize"
)
"""With a key: HMAC, encryption, tokenisation. Spark, Databricks, Snowflake, BigQuery, PostgreSQL, T-SQL, Trino."""

HASH = _words(
    "md5 md5_hex md5_binary md5_digest md5_number_lower64 md5_number_upper64 sha sha1 sha1_hex sha1_binary sha1_digest "
    "sha2 sha2_hex sha2_binary sha2_digest sha224 sha256 sha384 sha512 sha2_512 hash hashbytes standard_hash "
    "farm_fingerprint farmfingerprint xxhash64 murmur3 murmur_hash ora_hash fnv_hash mask_hash digest checksum "
    "binary_checksum dbms_crypto.hash"
)
"""Without a key: anyone can hash a guess and compare."""

MASK = _words("mask mask_first_n mask_last_n regexp_mask masking_policy")
"""Blots characters out: Hive, Spark and Databricks ``mask``."""

SETS = {"@keyed": KEYED, "@hash": HASH, "@mask": MASK}

VALUE_AGGREGATES = _words(
    "min max any_value anyvalue first last first_value last_value nth_value lag lead mode array_agg arrayagg "
    "array_unique_agg array_concat_agg string_agg stringagg listagg group_concat groupconcat collect_list collect_set "
    "grouparray json_agg jsonb_agg json_object_agg jsonb_object_agg object_agg xmlagg percentile_disc percentiledisc "
    "min_by max_by arg_min arg_max argmin argmax approx_top_k approx_top_count histogram topk anylast"
)
"""Aggregates that hand on a real value, or all of them: ``max(ssn)`` is someone's number."""

NEVER = VALUE_AGGREGATES | _words(
    "substr substring left right split_part split lower upper trim ltrim rtrim initcap reverse concat concat_ws cast "
    "try_cast safe_cast convert to_char to_json base64 to_base64 unhex hex encode decode coalesce case if iff nvl "
    "mask_show_first_n mask_show_last_n"
)
"""Keep a real value, whole or in part."""

_NEVER = frozenset(map(squashed, NEVER))
_VALUE_AGGREGATES = frozenset(map(squashed, VALUE_AGGREGATES))
_HASH = frozenset(map(squashed, HASH))
_SETS = {name: frozenset(map(squashed, members)) for name, members in SETS.items()}


def is_listed(listed: Iterable[str], function: str) -> bool:
    """Whether a function, as an edge names it, is among those that a declassifier lists by their names."""
    return any(is_same(item, function) for item in listed)


def named(listed: Iterable[str], function: str) -> bool:
    """Whether a function, as an edge names it, is among those that a declassifier lists, in whatever way.

    >>> named(["tokenize*"], "tokenize_v2"), named(["*"], "max"), named(["max"], "max"), named(["@hash"], "sha2")
    (True, False, True, True)
    """
    names = spellings(function)
    spelled = {function.lower(), function.lower().rpartition(".")[2]}
    for item in listed:
        if is_same(item, function):
            return True
        text = item.lower()
        if names & _NEVER:
            continue
        if names & _SETS.get(text, frozenset()) or any(fnmatchcase(name, text) for name in spelled):
            return True
    return False


def is_unkeyed(function: str) -> bool:
    """Whether a function is a hash without a key."""
    return bool(spellings(function) & _HASH)


def keeps_a_value(function: str) -> bool:
    """Whether an aggregate hands on a real value, so that an aggregate over it hides nobody."""
    return bool(spellings(function) & _VALUE_AGGREGATES)
