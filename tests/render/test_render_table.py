from __future__ import annotations

import csv
import io
import json

from hypothesis import given
from hypothesis import strategies as st

from govtool.render.envelope import envelope, json_lines
from govtool.render.table import Table, TableColumn, lines, markdown, plain, to_csv
from govtool.render.text import width

COLUMNS = (TableColumn("verdict"), TableColumn("column"), TableColumn("hops", justify="right"))
TABLE = Table(
    columns=COLUMNS,
    rows=[("breaks", "mart_marketing.audience.email", "2"), ("rows", "x.*", "10")],
    heading="crm.users.email · change: drop",
    summary="1 break",
)


def test_off_a_terminal_a_table_is_as_wide_as_it_needs():
    assert list(plain(TABLE)) == [
        "crm.users.email · change: drop",
        "",
        " verdict  column                         hops",
        " breaks   mart_marketing.audience.email     2",
        " rows     x.*                              10",
        "",
        "1 break",
    ]


def test_on_a_narrow_terminal_names_are_folded_and_not_cut():
    shown = ["".join(span.text for span in spans) for spans in lines(TABLE, 32)]
    assert all(width(line) <= 32 for line in shown)
    assert " breaks   mart_marketing.     2" in shown
    assert "          audience.email" in shown


@given(st.lists(st.tuples(st.text(max_size=30), st.text(max_size=30)), max_size=5), st.integers(30, 100))
def test_any_text_fits_on_a_terminal(rows, limit):
    table = Table(columns=(TableColumn("a"), TableColumn("b")), rows=rows)
    for spans in lines(table, limit):
        text = "".join(span.text for span in spans)
        assert width(text) <= limit
        assert text.isprintable() or not any(ord(ch) < 32 for ch in text)


def test_markdown_escapes_what_would_break_the_table():
    table = Table(columns=(TableColumn("a"), TableColumn("n", justify="right")), rows=[("x|y", "*"), ("<b>\n", "1")])
    assert list(markdown(table)) == ["| a | n |", "| --- | ---: |", r"| x\|y | \* |", r"| \<b\>\\n | 1 |", ""]


def test_csv_is_read_back_by_any_reader():
    text = "\n".join(to_csv(("a", "b"), [('say "x", y', 2), ("line\nbreak", None)]))
    assert list(csv.reader(io.StringIO(text))) == [["a", "b"], ['say "x", y', "2"], [r"line\nbreak", ""]]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON))
def test_json_lines_are_the_json_of_the_value(value):
    text = "\n".join(json_lines(value))
    assert json.loads(text) == value
    assert "\x1b" not in text


def test_json_opens_up_only_what_does_not_fit_on_a_line():
    body = envelope("lineage/1", {"edges": [["a.b", "c.d"]], "long": [["x" * 60, "y" * 60]], "empty": []})
    assert list(json_lines(body)) == [
        "{",
        '  "govtool": "0.1.0",',
        '  "schema": "lineage/1",',
        '  "edges": [["a.b", "c.d"]],',
        '  "long": [',
        "    [",
        f'      "{"x" * 60}",',
        f'      "{"y" * 60}"',
        "    ]",
        "  ],",
        '  "empty": []',
        "}",
    ]
