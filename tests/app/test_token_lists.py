"""Lists of tokens in files of JSON Lines: one deletion a line, of texts and whole numbers."""

from __future__ import annotations

import pytest

from govtool.app.token_lists import read_deletions
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
