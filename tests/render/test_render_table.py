from __future__ import annotations

import csv
import io
import json

from hypothesis import given
from hypothesis import strategies as st

from govtool.answers.envelope import envelope
from govtool.config import Setting
from govtool.release import __version__
from govtool.render.formats.envelope import json_lines
from govtool.render.layout.table import Table, TableColumn, lines, markdown, plain, to_csv
from govtool.render.layout.text import width
from govtool.render.settings import render as render_settings

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


def test_on_a_narrow_terminal_what_follows_names_goes_below_them():
    columns = (TableColumn(""), TableColumn("what"), TableColumn("name"), TableColumn("how"), TableColumn("statement"))
    rows = [
        ("~", "edge", "stg.users.email → mart_marketing.audience.email", "lower() → upper()", "etl/audience.sql:4"),
        ("+", "column", "stg.users.phone", "", ""),
    ]
    table = Table(columns, rows, names=2)
    shown = ["".join(span.text for span in spans) for spans in lines(table, 66)]
    assert shown == [
        "    what    name",
        "              how  statement",
        " ~  edge    stg.users.email → mart_marketing.audience.email",
        "              lower() → upper()  etl/audience.sql:4",
        " +  column  stg.users.phone",
    ]
    narrow = ["".join(span.text for span in spans) for spans in lines(table, 44)]
    assert all(width(line) <= 44 for line in narrow)
    assert "            mart_marketing.audience.email" in narrow
    assert len(["".join(span.text for span in spans) for spans in lines(table, None)]) == 3


def test_cells_of_several_words_are_broken_between_these():
    columns = (TableColumn("code"), TableColumn("place"), TableColumn("message"))
    message = "stg.users has no column phone in the known schema"
    table = Table(columns, [("unresolved", "sql:warehouse: etl/dedup.sql:3:43", message)])
    shown = ["".join(span.text for span in spans) for spans in lines(table, 66)]
    assert all(width(line) <= 66 for line in shown)
    assert any("etl/dedup.sql:3:43" in line for line in shown), shown


def test_on_a_narrow_terminal_rows_flow_and_names_stay_whole():
    shown = ["".join(span.text for span in spans) for spans in lines(TABLE, 44)]
    assert all(width(line) <= 44 for line in shown)
    assert " breaks   mart_marketing.audience.email  2" in shown
    narrow = ["".join(span.text for span in spans) for spans in lines(TABLE, 32)]
    assert all(width(line) <= 32 for line in narrow)
    assert " breaks   mart_marketing." in narrow, "longer than a line: broken behind a separator"


def test_flowing_cells_are_named_where_some_are_empty():
    columns = tuple(map(TableColumn, ("execution", "node", "state read", "made")))
    rows = [("1", "seed", "", "Guess_of_everything"), ("1", "post", "Ledger_of_all_posts", "")]
    shown = ["".join(span.text for span in spans) for spans in lines(Table(columns, rows), 50)]
    assert shown == [
        " execution",
        " 1          node: seed  made: Guess_of_everything",
        " 1          node: post  state read:",
        "              Ledger_of_all_posts",
    ]
    below = Table(columns, [("1", "seed_of_the_whole_ledger", *rows[0][2:]), rows[1]], names=1)
    assert "made: Guess_of_everything" in "".join(span.text for spans in lines(below, 40) for span in spans)


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


def test_a_text_in_csv_is_no_formula():
    cells = ["=1+1.sql", "@SUM(A1)", "+cmd|' /C calc'!A0", "-1.5e-7", "+49 30 1", "-", "a=b"]
    assert list(to_csv(("a",), [(cell,) for cell in cells]))[1:] == [f"'{cell}" for cell in cells[:3]] + cells[3:]


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
        f'  "govtool": "{__version__}",',
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


NAMES = Table(
    columns=(TableColumn("verdict"), TableColumn("column"), TableColumn("via"), TableColumn("evidence")),
    rows=[
        ("breaks", "db.public.kdigo_creatinine.creat_low_past_48hr", "copy", "kdigo_creatinine.sql:2"),
        ("breaks", "db.public.kdigo_creatinine.* (7 columns)", "copy", "kdigo_creatinine.sql:2"),
        ("breaks", "db.public.kdigo_stages.aki_stage_creat", "case", "stages.sql:9"),
        ("rows", "db.public.kdigo_stages.x", "join", "stages.sql:40"),
    ],
    names=1,
    groups=["db.public.kdigo_creatinine"] * 2 + ["db.public.kdigo_stages"] * 2,
)


def test_on_a_narrow_terminal_relations_are_headings_and_names_stay_whole():
    shown = ["".join(span.text for span in spans) for spans in lines(NAMES, 48)]
    assert shown == [
        " all in db.public.",
        " verdict  column               via",
        "kdigo_creatinine  kdigo_creatinine.sql:2",
        " breaks   creat_low_past_48hr  copy",
        " breaks   * (7 columns)        copy",
        "kdigo_stages",
        " breaks   aki_stage_creat      case",
        "   stages.sql:9",
        " rows     x                    join",
        "   stages.sql:40",
    ]
    assert list(plain(NAMES)) == ["".join(span.text for span in spans) for spans in lines(NAMES, 200)]


def test_what_all_uris_begin_with_is_said_once_on_a_narrow_terminal():
    host = "postgres://127.0.0.1:5432/shop"
    columns = (TableColumn("from"), TableColumn("to"), TableColumn("type"), TableColumn("evidence"))
    rows = [
        (f"{host}/crm.users.email", f"{host}/stg.users.email", "", "etl/stg_users.sql:4:8"),
        (f"{host}/stg.users.email", f"{host}/mart.audience.email", "", "etl/audience.sql:9:8"),
    ]
    table = Table(columns=columns, rows=rows)
    assert ["".join(span.text for span in spans) for spans in lines(table, 80)] == [
        f" all in {host}/",
        " from             to                   evidence",
        " crm.users.email  stg.users.email      etl/stg_users.sql:4:8",
        " stg.users.email  mart.audience.email  etl/audience.sql:9:8",
    ]
    others = Table(columns=columns, rows=[*rows, ("s3://bucket/a.x", f"{host}/b.x", "", "")])
    assert not any("all in" in span.text for spans in lines(others, 80) for span in spans)
    wide = next(lines(table, 200))
    assert "".join(span.text for span in wide).split() == ["from", "to", "evidence"]
    assert next(plain(table)).split() == [
        "from",
        "to",
        "type",
        "evidence",
    ]  # off a terminal the columns are always the same


@given(
    st.lists(st.tuples(st.text("ab.", max_size=9), st.text("xyz_", min_size=1, max_size=30), st.text(max_size=20))),
    st.integers(40, 100),
)
def test_no_name_and_no_cell_is_lost_at_any_width(found, limit):
    columns = (TableColumn("column"), TableColumn("via"))
    rows = [(f"{group}.{name}", text) for group, name, text in found]
    table = Table(columns=columns, rows=rows, names=0, groups=[group for group, _, _ in found])
    shown = "\n".join("".join(span.text for span in spans) for spans in lines(table, limit))
    assert all(name in shown for _, name, _ in found)


def test_sentences_break_between_words():
    table = Table(columns=COLUMNS, rows=(), summary="45 change, 34 by rows only · coverage 100.0% (53/53 statements)")
    assert ["".join(span.text for span in spans) for spans in lines(table, 46)] == [
        "45 change, 34 by rows only · coverage 100.0%",
        "(53/53 statements)",
    ]


def test_titles_are_printable_too():
    """Columns of data are titles: their names are whatever a file says."""
    table = Table((TableColumn("a\x1b[2J"), TableColumn("b\u202e")), [("1", "2")])
    for limit in (None, 80, 10):
        text = "".join(span.text for line in lines(table, limit) for span in line)
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "\x1b" not in "".join(markdown(table))


def test_settings_are_written_as_in_their_file():
    found = [Setting("store.publish", False, "default"), Setting("cache", None, "default"), Setting("s", "a b", "x")]
    assert list(render_settings("csv", found))[1:] == ["store.publish,false,default", "cache,,default", "s,a b,x"]
