"""Lists of tokens in files of JSON Lines: one deletion a line, of texts and whole numbers."""

from __future__ import annotations

import pytest

from govtool.app.records.token_lists import near_tokens, read_deletions
from govtool.errors import UsageError


def test_only_a_newline_ends_a_line(tmp_path):
    file = tmp_path / "tokens.jsonl"
    file.write_bytes('["a\u2028b", 7]\r\n\n["c\u0085d\u2029e"]'.encode())
    assert read_deletions(str(file)) == [["a\u2028b", "7"], ["c\u0085d\u2029e"]]


@pytest.mark.parametrize("line", ["[true]", '["a", false]', "[1.5]", "[null]", "[]", "{}", "[[1]]", "["])
def test_anything_else_is_refused_with_its_line(tmp_path, line):
    file = tmp_path / "tokens.jsonl"
    file.write_text(f'["a"]\n{line}\n')
    with pytest.raises(UsageError) as found:
        read_deletions(str(file))
    assert (found.value.code, found.value.location) == ("usage.deletions", f"{file}:2")


PLACE = "file:///srv/data/1"
FILES = [f"{PLACE}/Payments.csv@674c3c061e02:0/{row}" for row in range(3)] + [f"{PLACE}/Rates.parquet@0af:0/0"]


@pytest.mark.parametrize(
    ("text", "known", "first"),
    [
        ("Cars:C9", ["Cars:C1", "Sold:S1"], "Cars:C1"),
        ("Payments.csv:0/1", FILES, FILES[1]),
        ("Rates:0", FILES, FILES[3]),
    ],
)
def test_near_tokens_are_like_the_text_or_like_it_without_folder_and_version(text, known, first):
    assert near_tokens(text, known)[0] == first


def test_tokens_that_are_not_near_are_not_proposed():
    assert near_tokens("zzz", []) == ()
    assert near_tokens("zzz", FILES) == ()


def test_a_key_is_not_near_the_row_of_that_number():
    assert near_tokens("Payments.csv[id=1]", FILES) == ()
    assert near_tokens("users[id=17]", ["users[id=1]", *FILES]) == ("users[id=1]",)
