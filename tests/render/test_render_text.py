from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from govtool.render.layout.text import Prose, count, fold, markdown_text, percent, printable, width


def test_names_are_broken_after_a_separator():
    assert fold("mart_marketing.audience.email", 16) == ["mart_marketing.", "audience.email"]


def test_what_is_in_brackets_stays_together():
    assert fold("mart.audience.* (5 columns)", 22) == ["mart.audience.*", "(5 columns)"]


def test_a_long_word_is_broken_anywhere():
    assert fold("a" * 25, 10) == ["a" * 10, "a" * 10, "a" * 5]


@given(st.text(alphabet=st.characters(exclude_categories=("Cc", "Cs", "Zs")), max_size=60), st.integers(2, 30))
def test_folding_loses_nothing_and_fits(text, limit):
    lines = fold(printable(text), limit)
    assert "".join(lines) == printable(text)
    assert all(width(line) <= limit for line in lines)


def test_wide_characters_take_two_cells():
    assert width("顧客") == 4
    assert fold("顧客.住所", 5) == ["顧客.", "住所"]


@given(st.text())
def test_printable_text_holds_nothing_that_steers_a_terminal(text):
    assert not any(ord(ch) < 32 or 127 <= ord(ch) < 160 for ch in printable(text))
    printable(text).encode()


@pytest.mark.parametrize(
    ("part", "whole", "text"), [(412, 427, "96.5%"), (9999, 10000, "99.9%"), (0, 0, "n/a"), (3, 3, "100.0%")]
)
def test_a_share_is_never_rounded_up_to_everything(part, whole, text):
    assert percent(part, whole) == text


def test_counts():
    assert [count(1, "column"), count(2345, "column"), count(2, "entry", "entries")] == [
        "1 column",
        "2,345 columns",
        "2 entries",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "@acme/security",
        "#12",
        "GH-7",
        "https://evil.test",
        "www.evil.test",
        ":x:",
        "&lt;b&gt;",
        "a@b.test",
        "_x_",
        "$x$",
    ],
)
def test_markdown_shows_hostile_names_as_they_are(text):
    written = markdown_text(f"see {text} there")
    plain = re.sub(r"\\(.)", r"\1", written.replace("<!-- -->", "").replace("&amp;", "&"))
    assert plain == f"see {text} there"
    assert text not in written
    assert "\n" not in markdown_text("a\n# b")


def test_a_branch_of_a_tree_goes_on_below_itself():
    lines = ["├─ a.b  copy  models/x.sql:1", "│  └─ c.d  join key  models/y.sql:1"]
    assert list(Prose(lines).folded(22)) == [
        "├─ a.b  copy",
        "│    models/x.sql:1",
        "│  └─ c.d  join key",
        "│       models/y.sql:1",
    ]
