"""Record tokens: one parser, one printer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from govtool.errors import UsageError
from govtool.model.token import (
    FILE_BITS,
    LEAF_BITS,
    MAX_TOKEN,
    ROW_BITS,
    KeyToken,
    NamedToken,
    PositionToken,
    pack,
    parse_token,
    unpack,
)

# Characters that the grammar gives a meaning to, beside all others.
hostile = st.text(
    st.sampled_from("ab\"'\\[]@:/,=. \n\t\x00\x85\u2028\u202eé😀u0") | st.characters(exclude_categories=("Cs",)),
    max_size=12,
)
some = hostile.filter(bool)
whole = st.integers(0, 2**63 - 1)
tokens = st.one_of(
    st.builds(KeyToken, some, st.dictionaries(some, hostile, min_size=1, max_size=3).map(lambda d: tuple(d.items()))),
    st.builds(PositionToken, some, some, whole, whole),
    st.builds(NamedToken, some, some),
)


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("crm.users[id=42]", KeyToken("crm.users", (("id", "42"),))),
        ("crm.users[id=42,day=2024-01-31]", KeyToken("crm.users", (("day", "2024-01-31"), ("id", "42")))),
        ('crm."Odd [Name]".u["A=b"=\'x y\']', KeyToken('crm."Odd [Name]".u', (('"A=b"', "x y"),))),
        ("crm.users[id='']", KeyToken("crm.users", (("id", ""),))),
        ("s3://lake/views@7:3/1200", PositionToken("s3://lake/views", "7", 3, 1200)),
        ("file:/tmp/out@sha1-ab:0/0", PositionToken("file:/tmp/out", "sha1-ab", 0, 0)),
        ("'/tmp/a@b'@1:0/1", PositionToken("/tmp/a@b", "1", 0, 1)),
        ("orders:o1", NamedToken("orders", "o1")),
        ("'file:/x':7", NamedToken("file:/x", "7")),
        ("orders:'a b\\n\\u00e9'", NamedToken("orders", "a b\né")),
        ("orders:2024-01-01T10:00:00", NamedToken("orders", "2024-01-01T10:00:00")),
    ],
)
def test_tokens_read(text, token):
    assert parse_token(text) == token
    assert parse_token(str(token)) == token


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("", 1, "expected a dataset"),
        ("users", 6, "expected ':'"),
        ("users[]", 7, "expected a key column"),
        ("users[id]", 9, "expected '='"),
        ("users[id=1", 11, "expected ']'"),
        ("users[id=1,id=2]", 12, "key column 'id' twice"),
        ("users[id=1]x", 12, "expected the end"),
        ("users[id=a b]", 11, "expected ']'"),
        ("users@1", 8, "expected ':'"),
        ("users@1:x/2", 9, "expected a file ordinal"),
        ("users@1:01/2", 9, "expected a file ordinal"),
        ("users@1:0/9223372036854775808", 11, "expected a row index"),
        ("users@:0/1", 7, "expected a version"),
        ("users:", 7, "expected a row id"),
        (":1", 1, "expected a dataset"),
        ("'users", 1, "expected a dataset"),
        ("'a\\q':1", 1, "stands for no character"),
        ("'a\\ud800':1", 1, "stands for no character"),
        ("'a\\U00110000':1", 1, "stands for no character"),
        ("us\u202eers:1", 1, "must be quoted"),
        ('"open:1', 1, "expected a dataset"),
    ],
)
def test_what_is_no_token_is_refused_with_its_column(text, column, message):
    with pytest.raises(UsageError, match="token") as caught:
        parse_token(text)
    assert message in caught.value.message
    assert caught.value.location == f"column {column}"
    assert caught.value.message.isprintable()


def test_long_texts_are_refused_unread():
    with pytest.raises(UsageError, match="65,536 at most"):
        parse_token("a" * (MAX_TOKEN + 1))


@pytest.mark.parametrize(
    "text", ["[" * 60000, '"' * 60001, "'" + "\\" * 60001, "a[" + "b=1," * 15000, "\\" * 60000, '"a"' * 20000 + " "]
)
def test_hostile_texts_end_in_an_error(text):
    with pytest.raises(UsageError):
        parse_token(text)


@given(tokens)
def test_a_printed_token_reads_back_as_itself(token):
    text = str(token)
    assert text.isprintable()
    assert parse_token(text) == token


@given(hostile)
def test_any_text_is_a_token_or_a_usage_error(text):
    try:
        token = parse_token(text)
    except UsageError:
        return
    assert parse_token(str(token)) == token


@given(tokens, tokens)
def test_two_tokens_never_print_alike(one, other):
    assert (str(one) == str(other)) == (one == other)


@pytest.mark.parametrize("build", [lambda: KeyToken("a", ()), lambda: KeyToken("", (("b", "1"),)), lambda: PositionToken("a", "", 0, 0), lambda: PositionToken("a", "1", -1, 0), lambda: NamedToken("a", "")])  # fmt: skip
def test_parts_that_make_no_token_are_refused(build):
    with pytest.raises(UsageError):
        build()


@given(st.integers(0, 2**LEAF_BITS - 1), st.integers(0, 2**FILE_BITS - 1), st.integers(0, 2**ROW_BITS - 1))
def test_packed_ids_unpack(leaf, file, row):
    packed = pack(leaf, file, row)
    assert 0 <= packed < 2**63
    assert unpack(packed) == (leaf, file, row)


@pytest.mark.parametrize("parts", [(2**LEAF_BITS, 0, 0), (0, 2**FILE_BITS, 0), (0, 0, 2**ROW_BITS), (0, 0, -1)])
def test_parts_beyond_their_bits_are_refused(parts):
    with pytest.raises(UsageError, match="does not fit"):
        pack(*parts)


def test_names_of_many_quotes_print_in_linear_time():
    token = NamedToken('"a"' * 20000 + " ", "1")
    assert parse_token(str(token)) == token
