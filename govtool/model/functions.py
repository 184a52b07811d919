"""Facts about functions that every reader of lineage needs."""

from __future__ import annotations

from functools import lru_cache

VALUE_WINDOW_FUNCTIONS = frozenset(
    {"lag", "lead", "first_value", "last_value", "nth_value", "first", "last", "any_value"}
)
"""Under OVER these hand on one row's value: a transformation, not an aggregation."""

MASKING = frozenset(
    [
        "md5",
        "md5_hex",
        "md5_binary",
        "md5_digest",
        "md5_number_lower64",
        "md5_number_upper64",
        "sha",
        "sha1",
        "sha2",
        "sha224",
        "sha256",
        "sha384",
        "sha512",
        "sha1_hex",
        "sha2_hex",
        "sha2_512",
        "sha1_binary",
        "sha2_binary",
        "sha1_digest",
        "sha2_digest",
        "standard_hash",
        "hmac",
        "hmac_sha256",
        "hmac_sha512",
        "hash",
        "hashbytes",
        "farm_fingerprint",
        "farmfingerprint",
        "xxhash64",
        "mask",
        "mask_first_n",
        "mask_last_n",
        "mask_hash",
        "mask_show_first_n",
        "mask_show_last_n",
        "tokenize",
        "encrypt",
        "aes_encrypt",
        "pgp_sym_encrypt",
        "digest",
        "crypt",
        "deterministic_encrypt",
        "ora_hash",
        "checksum",
        "binary_checksum",
        "murmur_hash",
        "fnv_hash",
    ]
)
"""Functions that OpenLineage's ``masking`` flag stands for: the value is hashed, encrypted or blotted out. What a
policy
accepts as declassification is the policy's to say."""


@lru_cache(maxsize=4096)
def is_masking(functions: tuple[str, ...]) -> bool:
    """Whether any function on the way hides the value."""
    return any(name.rsplit(".", 1)[-1] in MASKING for name in functions)
