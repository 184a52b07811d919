from __future__ import annotations

from govtool.model import Diagnostic
from govtool.render.errors import diagnostic_lines


def text_of(diagnostic: Diagnostic, line: str | None = None) -> str:
    return "\n".join("".join(span.text for span in spans) for spans in diagnostic_lines(diagnostic, line))


def test_a_parse_error_points_at_its_place():
    diagnostic = Diagnostic("parse-error", "error", "expected )", file="etl/a.sql", line=9, column=17)
    assert text_of(diagnostic, "SELECT a, (b FROM t") == (
        "error[parse-error] expected )\n  --> etl/a.sql:9:17\n   |\n 9 | SELECT a, (b FROM t\n   |                 ^"
    )


def test_an_ambiguous_column_lists_its_candidates():
    diagnostic = Diagnostic("ambiguous", "warning", "which id", file="a.sql", line=1, candidates=("t.id", "u.id"))
    assert text_of(diagnostic).splitlines()[2:] == ["  candidate     t.id", "  candidate     u.id"]


def test_a_long_line_is_shown_around_the_caret():
    diagnostic = Diagnostic("parse-error", "error", "no", file="a.sql", line=1, column=501)
    source, caret = text_of(diagnostic, "a" * 500 + "!" + "b" * 500).splitlines()[-2:]
    assert source.index("!") == caret.index("^")
    assert len(source) < 120
    assert source.count("…") == 2


def test_escapes_and_tabs_in_a_source_line_do_not_move_the_caret():
    diagnostic = Diagnostic("parse-error", "error", "no", file="a.sql", line=1, column=4)
    source, caret = text_of(diagnostic, "\t\x1b[!").splitlines()[-2:]
    assert source.index("!") == caret.index("^")
    assert "\x1b" not in source
