"""The scanner's tokens are sqlglot's, in every field and every dialect, and plain SQL does not need sqlglot's."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot.dialects.dialect import Dialects
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token
from sqlglot.tokens import Tokenizer

from bench.corpora import shop, tpc_ds
from govtool.capture.sql.cuts import cuts
from govtool.capture.sql.lexer import Lexer, lexer

ROOT = Path(__file__).resolve().parents[3]
DIALECTS = sorted(dialect.value for dialect in Dialects)
FIELDS = ("token_type", "text", "line", "col", "start", "end", "comments")

FRAGMENTS = """
select SELECT a b n x e r q u& N'x' n'a''b' r'\\d' r'\\' R"q" b'01' x'ff' E'a\\n' U&'d' 's' 'it''s' 'a\\'b' ' '' '''a'''
"b"  "a""b" " `t` `` `a``b` [c] [c]]d] [ ] 1 1.5 .5 1. 1e5 1.5e-3 1e+ 1e5.2 0x1F 0x 0xab_1 0xZZ 0b11 10L 1_000 007 1a
t1.c1 a.1 @ @v @@x @1 @1.5 $ $1 $a $$ $$b$$ $t$'y$t$ $1$ {{ {{+ {%- {# {#c#} { } -- --c --5 /* /*c*/ /*+h*/ /*a/*b*/c*/
/**/ /*/ */ #h #! #> #>> //z || ||/ |/ :: ?:: ? ?? <= <=> <-> <<->> <- << < >= > -> ->> -|- -| ~ ~~ ~~* ~* !~ != ! ==
= => := : && &< ^@ ^ @> <@ (+) ( ) , ; . .. % %} +%} -}} \\ \\' é ß 日本 a$b a#b a@b ℘ ² ٣ hello_1 is not null NOT left
outer join primary key with time zone group by GROUP BY order BYX at for version begin call case end like any similar to
""".split()  # noqa: SIM905
GAPS = ["", "", " ", "  ", "\t", "\n", "\n\n  ", "\r\n", "\r", "\x00", "\x85", "\xa0", "\u2003", "\ufeff"]


def fields(tokens: list[Token]) -> list[tuple[object, ...]]:
    return [tuple(getattr(token, field) for field in FIELDS) for token in tokens]


def check(lex: Lexer, text: str) -> bool:
    """Hold the scanner against sqlglot; returns whether it settled the text."""
    if lex.scanner is None:
        return False
    found = lex.scanner.scan(text)
    if found is None:
        return False
    try:
        expected = lex.tokenizer.tokenize(text)
    except TokenError:
        pytest.fail(f"{lex.name}: sqlglot refuses {text!r}, the scanner does not")
    assert fields(found) == fields(expected), (lex.name, text)
    return True


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=150, deadline=None)
@given(parts=st.lists(st.tuples(st.sampled_from(FRAGMENTS), st.sampled_from(GAPS)), max_size=14))
def test_any_text_has_the_tokens_of_sqlglot(dialect: str, parts: list[tuple[str, str]]) -> None:
    check(lexer(dialect), "".join(fragment + gap for fragment, gap in parts))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_pair_of_fragments_has_the_tokens_of_sqlglot(dialect: str) -> None:
    lex = lexer(dialect)
    settled = sum(check(lex, a + b) for a in FRAGMENTS for b in FRAGMENTS)
    assert settled or lex.scanner is None


def test_every_dialect_with_a_tokenizer_of_its_own_is_left_to_sqlglot() -> None:
    own = [name for name in DIALECTS if lexer(name).scanner is None]
    assert own == [name for name in DIALECTS if type(lexer(name).tokenizer).tokenize is not Tokenizer.tokenize]
    assert own == ["athena"]


def test_the_texts_that_are_measured_are_plain() -> None:
    for corpus in (tpc_ds(), *shop()):
        assert all(check(lexer(corpus.dialect), text) for text in corpus.texts)


@pytest.mark.parametrize("path", sorted((ROOT / "fixtures").rglob("*.sql")), ids=lambda path: path.name)
def test_fixtures_in_every_dialect(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for dialect in DIALECTS:
        check(lexer(dialect), text)


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("postgres", "select 'it''s', \"a\"\"b\", $$ x 'y $$, $f$ $$ $f$ from t -- c"),
        ("snowflake", "create procedure p() as $$ select ' from t $$; call p() // c"),
        ("bigquery", "select r'\\d+', `a-b`.c, 0x1F, 1e5 # c"),
        ("tsql", "select [a]]b], @v, N'x', c -- it's\r\nfrom #t"),
        ("mysql", "select 'a' --b\n from t where x --y"),
        ("", "select a /* one\ntwo */ , b -- three\nfrom t group   by\n a"),
    ],
)
def test_what_plain_sql_holds_is_settled(dialect: str, text: str) -> None:
    assert check(lexer(dialect), text)


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("", "select 'a"),
        ("", 'select "a'),
        ("", "select /* a"),
        ("", "select /*+ hint */ a"),
        ("", "select 1_000"),
        ("", "select a\rfrom t"),
        ("postgres", "select /* a /* b */ c */ 1"),
        ("bigquery", "select '''a''', 'b\\'c'"),
        ("postgres", "select $t$ a"),
    ],
)
def test_what_is_not_plain_is_left_to_sqlglot(dialect: str, text: str) -> None:
    scanner = lexer(dialect).scanner
    assert scanner is not None
    assert scanner.scan(text) is None


def test_a_text_that_must_be_cut_anew_again_and_again_is_left_to_sqlglot() -> None:
    lex = lexer("bigquery")
    assert check(lex, "select " + ", ".join([r"r'\d'"] * 4))
    assert not check(lex, "select " + ", ".join([r"r'\d'"] * 40))


@pytest.mark.parametrize(("dialect", "opening"), [("tsql", "["), ("sqlite", "["), ("", "/* "), ("mysql", "/* ")])
def test_what_is_not_closed_is_looked_through_once(dialect: str, opening: str) -> None:
    """Each of many openings on its own would be searched for its end: hours for a file of some megabytes."""
    text = opening * 1000
    assert cuts(lexer(dialect).tokenizer).pieces.findall(text) == [text]


def test_what_a_scanner_remembers_is_bounded() -> None:
    scanner = lexer("duckdb").scanner
    assert scanner is not None
    for start in range(0, 60_000, 6_000):
        assert scanner.scan(" ".join(f"name{number}" for number in range(start, start + 6_000)))
    assert len(scanner._known) <= 20_000
