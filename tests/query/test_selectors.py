"""Selectors on a small warehouse."""

from __future__ import annotations

import pytest
from graph_samples import graph, view

from govtool.app.versions.index import index_of
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.errors import UnknownNameError, UsageError
from govtool.model import Derivation, OutputColumn, Statement
from govtool.query.selection.patterns import Pattern, Patterns
from govtool.query.selection.select import select
from govtool.query.selection.selectors import select_many

INDEX = graph(
    view("a", "x y", target_kind="table", mode="declare"),
    view("b", "p q", "a.x -> p identity", "a.y -> q transformation", "a.* -> * read", file="etl/b.sql"),
    view("c", "r", "b.p -> r identity", "b.q -> * filter", "b.* -> * read", file="etl/c.sql"),
    view("d", "s", "a.y -> s opaque", "a.* -> * read", file="job.py"),
)


def chosen(*texts, exclude=(), **methods):
    found = select_many(INDEX, texts, exclude=exclude, methods=methods)
    return [INDEX.dataset_name(d) for d in found.datasets] + [INDEX.name(n) for n in found.columns]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ["a", "b", "c", "d"]),
        ("a.x", ["a.x"]),
        ("a", ["a"]),
        ("a.x+", ["a.x", "b.p", "c.r"]),
        ("a.x+1", ["a.x", "b.p"]),
        ("+c.r", ["a.x", "b.p", "c.r"]),
        ("1+c.r", ["b.p", "c.r"]),
        ("1+b.p+1", ["a.x", "b.p", "c.r"]),
        ("a+", ["a", "b", "c", "d"]),
        ("+c", ["a", "b", "c"]),
        ("@b.q", ["a.y", "b.q"]),
        ("@a.y", ["a.y", "b.q", "d.s"]),
        ("a.x b.q", ["a.x", "b.q"]),
        ("a.x+,b.*", ["b.p"]),
        ("*", ["a", "b", "c", "d"]),
        ("**.p", ["b.p"]),
        ("/^[pq]$/", ["b.p", "b.q"]),
        ("a.x,b.q", []),
        ("job:etl/*", ["b.p", "b.q", "c.r"]),
        ("job:c", ["c.r"]),
        ("kind:table", ["a"]),
        ("opaque:", ["d.s"]),
        ("unused:", ["c.r", "d.s"]),
        ("unused:dataset", ["c", "d"]),
    ],
)
def test_selects(text, names):
    assert chosen(*([text] if text else [])) == names


def test_exclusion_makes_holes_in_datasets():
    assert chosen("b", exclude=["b.q"]) == ["b.p"]
    assert chosen("a b", exclude=["b"]) == ["a"]
    assert chosen("a.x+", exclude=["c"]) == ["a.x", "b.p"]


def test_methods_from_outside():
    assert chosen("tag:pii", tag=lambda value: [INDEX.rows(0)] if value == "pii" else []) == ["a"]


def test_what_is_no_selector_says_so():
    with pytest.raises(UnknownNameError) as wrong:
        chosen("clas:x")
    assert wrong.value.nearest == ("class",)
    for text in ("@a.x+", ",", "+"):
        with pytest.raises(UsageError):
            chosen(text)
    with pytest.raises(UnknownNameError):
        chosen("nothing.of.that")
    with pytest.raises(UsageError):
        chosen("/(/")


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("mart.**", "mart.t", True),
        ("mart.**", "mart", False),
        ("**.t", "t", True),
        ("a.**.c", "a.c", True),
        ("a.**.c", "a.b.b.c", True),
        ("a_*.t", "a_b.t", True),
        ("a_*.t", "a_b.c.t", False),
        ("a.*", 'a."x.y"', True),
        ("*.t", '"x.y".t', True),
        ("a.?", "a.b", True),
        ("a.b", "a.bc", False),
        ("/b/", "a.bc", True),
        ("a.items[].p*", "a.items[].price", True),
    ],
)
def test_patterns(pattern, name, matches):
    assert Pattern(pattern).matches(name) is matches


def test_patterns_end_soon_on_hostile_names():
    name = "a." * 200 + '"' + "x" * 2000
    for text in ("**.*a*a*a*a.b", "*.*.*.*.**.z", "**.**.**.**.q"):
        assert not Pattern(text).matches(name)


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("mart.**", ["mart.a", "mart.a.b", "mart.b"]),
        ("mart.*", ["mart.a", "mart.b"]),
        ("mart*.a", ["mart.a", "mart2.a"]),
        ("mart.a", ["mart.a"]),
        ("m?rt.a", ["mart.a"]),
        ("**.a", ['"ma*".a', "mart.a", "mart2.a", "z.mart.a"]),
        ('"ma*".a', ['"ma*".a']),
        ("/^mart\\./", ["mart.a", "mart.a.b", "mart.b"]),
    ],
)
def test_patterns_of_datasets_find_what_each_name_alone_would_match(pattern, names):
    made = ["mart.a", "mart.a.b", "mart.b", "mart2.a", "z.mart.a", '"ma*".a']
    index = graph(*(view(n, "x", target_kind="table", mode="declare") for n in made))
    found = sorted(index.dataset_name(d) for d in Pattern(pattern).datasets(index))
    assert found == sorted(names) == sorted(n for n in made if Pattern(pattern).matches(n))


def test_impact_of_a_selection_is_the_worst_of_its_parts():
    from govtool.query.changes.change import Change
    from govtool.query.changes.impact import impact
    from govtool.query.selection.selectors import subjects

    def verdicts(*texts):
        found = impact(INDEX, subjects(INDEX, select_many(INDEX, texts)), change=Change("drop"))
        return {e.column: (e.verdict, e.path[0]) for e in found.columns}, found

    one, other = verdicts("a.x")[0], verdicts("a.y")[0]
    both, found = verdicts("a.x", "a.y")
    assert (found.subject_kind, found.subjects) == ("selection", ("a.x", "a.y"))
    assert both.keys() == one.keys() | other.keys()
    for column, (verdict, start) in both.items():
        assert verdict == min(each[column][0] for each in (one, other) if column in each)
        assert start in ("a.x", "a.y")


@pytest.mark.parametrize(
    ("text", "code", "near"),
    [
        ("kind:tabel", "usage.unknown-kind", "table"),
        ("kind:vew*", "usage.unknown-kind", "view"),
        ("job:etl/cc.sql", "usage.unknown-job", "etl/c.sql"),
        ("job:nothing*", "usage.unknown-job", None),
    ],
)
def test_a_kind_or_job_that_nothing_is_called_is_a_typing_error(text, code, near):
    with pytest.raises(UnknownNameError) as caught:
        select_many(INDEX, [text])
    assert caught.value.code == code
    assert (near is None) or near in caught.value.nearest


def test_a_kind_that_a_graph_may_have_and_has_not_selects_nothing():
    assert not select_many(INDEX, ["kind:materialized_view"])


@pytest.mark.parametrize(
    ("pattern", "matching"),
    [
        ("/exports/*", {'"/exports/loyal.csv"', '"/exports/a b.csv"', '"/exports/loyal.csv".email'}),
        (
            "/exports/**",
            {'"/exports/loyal.csv"', '"/exports/a b.csv"', '"/exports/in/x.csv"', '"/exports/loyal.csv".email'},
        ),
        ("file:///exports/loyal.csv", {'"/exports/loyal.csv"'}),
        ("**.csv", {'"/exports/loyal.csv"', '"/exports/a b.csv"', '"/exports/in/x.csv"', '"data/c.csv"'}),
        ("/exports/*.csv.email", {'"/exports/loyal.csv".email'}),
        ("data/?.csv", {'"data/c.csv"'}),
        ('"/exports/loyal.csv"', {'"/exports/loyal.csv"'}),
        ("/loyal/", {'"/exports/loyal.csv"', '"/exports/loyal.csv".email', "exports.loyal"}),
        ("s3://exports/*", set()),
    ],
)
def test_patterns_of_paths_match_the_files_that_sql_names(pattern, matching):
    names = {
        *('"/exports/loyal.csv"', '"/exports/a b.csv"', '"/exports/in/x.csv"', '"/exports/loyal.csv".email'),
        *('"data/c.csv"', '"Odd Schema".t', "exports.loyal"),
    }
    assert {name for name in names if Pattern(pattern).matches(name)} == matching


def test_a_file_that_sql_names_is_found_without_its_quotes():
    index = index_of(
        extract(
            [Script("q.sql", "create table t as select city from read_csv('/in/c.csv'); copy t to 'out/t.csv'")],
            Options(dialect="duckdb"),
        ).derivations
    )
    for text in ("/in/c.csv", "file:///in/c.csv"):
        assert select(index, text).text == '"/in/c.csv"'
        assert select(index, f"{text}.city").text == '"/in/c.csv".city'
    assert list(Pattern("/in/*").datasets(index)) == [index.find_dataset('"/in/c.csv"')]
    assert [index.name(node) for node in Patterns(["/in/*.city"]).columns(index)] == ['"/in/c.csv".city']


def test_a_plain_path_is_that_of_a_local_file_too():
    made = [f"{folder}/{name}" for folder in ("file:///in", "s3://in") for name in ("a.csv", "b.csv")]
    index = index_of(
        [
            Derivation(name, "file", "update", Statement("f", "insert", "spark", "j"), columns=(OutputColumn("x"),))
            for name in made
        ]
    )
    assert select(index, "/in/a.csv").text == "file:///in/a.csv"
    assert [index.dataset_name(d) for d in Pattern("/in/*").datasets(index)] == ["file:///in/a.csv", "file:///in/b.csv"]
    assert Pattern("/in/*.csv.x").matches("file:///in/a.csv.x")
    assert not Pattern("/in/*").matches("s3://in/a.csv")


STAGES = index_of(
    extract(
        [
            Script(
                "q.sql", "create table crm.users(id int); copy into @area/out/users.csv from (select id from crm.users)"
            )
        ],
        Options(dialect="snowflake"),
    ).derivations
)


def test_a_name_that_begins_like_an_operator_is_a_name():
    (stage,) = select_many(STAGES, ["@area/out/users.csv"]).datasets
    assert STAGES.dataset_name(stage) == '"@area/out/users.csv"'


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("@crm.usres", "@crm.users"),
        ("2+crm.usres+1", "2+crm.users+1"),
        ("crm.usres", "crm.users"),
        ("@area/out/user.csv", '"@area/out/users.csv"'),
    ],
)
def test_near_names_keep_the_operators(text, near):
    with pytest.raises(UnknownNameError) as caught:
        select_many(STAGES, [text])
    assert caught.value.nearest[0] == near


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("@crm.users+", "'@crm.users', or 'crm.users+' for what is downstream"),
        ("@@crm.users", "'@NAME', '+NAME', 'NAME+' or '2+NAME+1'"),
        ("1+@crm.users", "'@NAME', '+NAME', 'NAME+' or '2+NAME+1'"),
        ("@", "'@NAME', '+NAME', 'NAME+' or '2+NAME+1'"),
    ],
)
def test_operators_without_a_name_lead_to_the_right_form(text, hint):
    with pytest.raises(UsageError) as caught:
        select_many(STAGES, [text])
    assert (caught.value.code, caught.value.hint) == ("usage.selector", hint)
