"""Encryption that is undone: the class comes back, in one expression and across statements."""

from __future__ import annotations

import pytest
from policy_samples import checked, policy, reported, sql

RULES = """
classes: {personal: {}, hidden: {}}
classify: [{class: personal, columns: ["crm.u.email"]}]
declassify:
  - {name: m, kind: mask, functions: [%s], from: [personal], to: hidden}
rules:
  - {id: F, title: t, deny: {flow: {class: personal, to: {datasets: ["share.**"]}}}, unless: [{declassified: [m]}]}
"""
VIOLATED = [("F", "share.t.w", "violated")]


def shared(expression: str, dialect: str = "spark", functions: str = '"@keyed", "@hash"'):
    index = sql(f"create table share.t as select {expression} as w from crm.u", dialect=dialect)
    return reported(checked(index, policy(RULES % functions)))


@pytest.mark.parametrize(
    ("dialect", "expression"),
    [
        ("spark", "aes_decrypt(aes_encrypt(email, 'k'), 'k')"),
        ("spark", "upper(cast(try_aes_decrypt(base64(aes_encrypt(email, 'k')), 'k') as string))"),
        ("snowflake", "decrypt(encrypt(email, 'k'), 'k')"),
        ("snowflake", "try_decrypt(encrypt(email, 'k'), 'k')"),
        ("snowflake", "decrypt_raw(encrypt_raw(email, k, iv), k, iv)"),
        ("postgres", "pgp_sym_decrypt(pgp_sym_encrypt(email, 'k'), 'k')"),
        ("tsql", "decryptbykey(encryptbykey(key_guid('k'), email))"),
        ("tsql", "decryptbypassphrase('k', encryptbypassphrase('k', email))"),
        ("bigquery", "aead.decrypt_string(k, aead.encrypt(k, email, ''), '')"),
        ("bigquery", "deterministic_decrypt_string(k, deterministic_encrypt(k, email, ''), '')"),
        ("bigquery", "dlp_deterministic_decrypt(k, dlp_deterministic_encrypt(k, email, ''), '')"),
        ("oracle", "dbms_crypto.decrypt(dbms_crypto.encrypt(email, 1, k), 1, k)"),
        ("postgres", "detokenize(tokenize(email))"),
        ("postgres", "etl.unmask_email(tokenize(email))"),
    ],
)
def test_what_is_encrypted_and_decrypted_is_clear(dialect, expression):
    assert shared(expression, dialect) == VIOLATED


@pytest.mark.parametrize(
    ("dialect", "expression"),
    [
        ("spark", "sha2(aes_decrypt(aes_encrypt(email, 'k'), 'k'), 256)"),  # hashed behind the inverse
        ("spark", "aes_encrypt(aes_decrypt(email, 'k'), 'k')"),
        ("spark", "aes_decrypt(sha2(email, 256), 'k')"),  # nothing undoes a hash
        ("postgres", "decrypt(hmac(email, 'k', 'sha256'), 'k', 'aes')"),
        ("bigquery", "DLP_DETERMINISTIC_ENCRYPT(k, email, '')"),
        ("bigquery", "dlp_deterministic_encrypt(dlp_key_chain('gcp-kms://k', b'x'), email, '', 's')"),
    ],
)
def test_what_stays_hidden_stays_hidden(dialect, expression):
    assert shared(expression, dialect) == []


def test_a_function_of_the_user_is_undone_too():
    assert shared("our_decrypt(our_encrypt(email))", functions="our_encrypt") == VIOLATED
    assert shared("our_encrypt(email)", functions="our_encrypt") == []


STEPS = """
create table tmp.e as select aes_encrypt(email, 'k') as e from crm.u;
create table tmp.f as select e from tmp.e;
create table share.t as select %s as w from tmp.f;
"""


@pytest.mark.parametrize(
    ("expression", "expected"),
    [("aes_decrypt(e, 'k')", VIOLATED), ("e", []), ("sha2(aes_decrypt(e, 'k'), 256)", []), ("lower(e)", [])],
)
def test_an_inverse_in_a_later_statement_takes_the_class_back(expression, expected):
    assert reported(checked(sql(STEPS % expression, dialect="spark"), policy(RULES % '"@keyed", "@hash"'))) == expected


def test_an_inverse_in_a_cycle():
    text = """
create table tmp.e (e string, d string);
insert into tmp.e select aes_encrypt(email, 'k'), null from crm.u;
insert into tmp.e select e, aes_decrypt(e, 'k') from tmp.e;
insert into tmp.e select aes_encrypt(d, 'k'), d from tmp.e;
create table share.t as select d as w, e as v from tmp.e;
"""
    assert reported(checked(sql(text, dialect="spark"), policy(RULES % '"@keyed"'))) == VIOLATED


def test_a_declassifier_of_hashes_alone_is_not_undone():
    text = """
create table tmp.e as select sha2(email, 256) as e from crm.u;
create table share.t as select aes_decrypt(e, 'k') as w from tmp.e;
"""
    assert reported(checked(sql(text, dialect="spark"), policy(RULES % '"@hash"'))) == []


@pytest.mark.parametrize(
    ("dialect", "expression"),
    [
        ("trino", "hmac_sha256('const', email)"),
        ("trino", "hmac_sha256(email, email)"),
        ("postgres", "hmac('const', email, 'sha256')"),
        ("spark", "aes_encrypt('x', email)"),
        ("spark", "upper(aes_encrypt('x', lower(email)))"),
        ("snowflake", "encrypt('x', email)"),
        ("snowflake", "encrypt_raw('x', email, iv)"),
        ("bigquery", "aead.encrypt(email, 'x', '')"),
        ("bigquery", "dlp_deterministic_encrypt(email, 'x', '')"),
        ("clickhouse", "encrypt('aes-256-gcm', 'x', email)"),
        ("tsql", "encryptbypassphrase(email, 'x')"),
        ("oracle", "dbms_crypto.encrypt('x', 1, email)"),
    ],
)
def test_a_key_is_not_hidden_by_the_function_that_takes_it(dialect, expression):
    assert shared(expression, dialect) == VIOLATED
    assert shared(expression, dialect, '"hmac*", "*encrypt*"') == VIOLATED


@pytest.mark.parametrize(
    ("dialect", "expression"),
    [
        ("trino", "hmac_sha256(email, 'const')"),
        ("clickhouse", "encrypt('aes-256-gcm', email, 'x')"),
        ("clickhouse", "hmac('sha256', email, 'x')"),
        ("tsql", "encryptbypassphrase('x', email)"),
        ("postgres", "crypt(email, gen_salt('bf'))"),
        ("postgres", "keyed_hash('x', email)"),  # its signature is not known
    ],
)
def test_a_value_is_hidden_by_its_function(dialect, expression):
    assert shared(expression, dialect) == []


def test_a_finding_names_the_key():
    index = sql("create table share.t as select aes_encrypt('x', email) as w from crm.u", dialect="spark")
    (finding,) = checked(index, policy(RULES % '"@keyed"')).findings
    assert "aes_encrypt() takes the value as its key" in finding.why


def test_a_finding_names_the_inverse():
    index = sql(STEPS % "aes_decrypt(e, 'k')", dialect="spark")
    (finding,) = checked(index, policy(RULES % '"@keyed"')).findings
    assert "aes_decrypt() gives the value back" in finding.why
