"""Patterns on whole columns of names find what each name alone would match."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from depth import examples
from graph_samples import graph, view
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.graph.index import Index
from govtool.names import split_name
from govtool.query.selection import patterns
from govtool.query.selection.name_columns import NameColumns, ending, matching
from govtool.query.selection.patterns import ColumnPaths, Pattern, Patterns

ROOT = "/srv/etl"
PARTS = st.sampled_from(
    ["a", "mart_x", "Users", "é", "a\nb", "", '"x.y"', '"q""r"', '"Odd Part"', "items[]", "p['k.z']", "a]", "["]
)
FILES = st.sampled_from(
    [
        *('"/exports/a.csv"', '"data/c d.csv"', '"s3://lake/x/y.parquet"', '"data/""q"".csv"', '"/open', '"a/b"c'),
        *("file:data/x", "file:", "file:///srv/etl/data/x", "file:///data/x", "hdfs://nn/data/x", "s3://lake/é"),
    ]
)
NAMES = st.lists(st.one_of(PARTS, PARTS, FILES), min_size=1, max_size=4).map(".".join) | FILES
GLOB_PARTS = st.sampled_from(
    ["a", "mart_*", "*", "**", "**", "?", "*s*", "Users", '"x.y"', "items[]", '"q""r"', "é", "*a*"]
)
GLOBS = st.lists(GLOB_PARTS, min_size=1, max_size=4).map(".".join)
OTHERS = st.sampled_from(
    [
        *("/(?i)(^|[._])users$/", '/^"[^"]*(share|export)/', "/x$/", "/./", "/^$/", "/a\\nb/", "/(a|x)+y?/", "/é/"),
        *(
            "/exports/*",
            "/srv/etl/data/*",
            "/data/x",
            "/**",
            "data/**",
            "file:///srv/**",
            "file:data/*",
            "s3://lake/**",
            "**.csv",
            "a\udc80",
        ),
    ]
)


def one_by_one(pattern: Pattern, names: list[str]) -> list[int]:
    """The oracle: the method for a single name, name by name."""
    return [place for place, name in enumerate(names) if pattern.matches(name)]


@settings(deadline=None, max_examples=examples(400))
@given(GLOBS | OTHERS, st.lists(NAMES, max_size=40), st.sampled_from(["", ROOT]))
def test_a_column_of_names_matches_as_its_names_do(text, names, root):
    pattern = Pattern(text, root)
    assert matching(pattern, pa.array(names, pa.large_string())).tolist() == one_by_one(pattern, names)


@settings(deadline=None, max_examples=examples(200))
@given(GLOBS, st.lists(NAMES, max_size=40))
def test_the_last_parts_of_a_column_of_names_match_as_each_does(text, names):
    pattern = Pattern(text)
    if pattern.last is not None:
        right = [place for place, name in enumerate(names) if pattern.last.fullmatch(split_name(name)[-1])]
        assert ending(pattern.last, pa.array(names, pa.large_string())).tolist() == right


DATASETS = ["mart.users", "mart.x", "raw.users", "a.b.c", '"/exports/a.csv"', "file:data/x", '"Odd".t', "hidden.t"]
PATHS = "email id:int address address.city items[] items[].price"


def sample() -> Index:
    made = [view(name, PATHS, target_kind="table", mode="declare") for name in DATASETS]
    scratch = view("tmp.scratch", "email", target_kind="temporary", mode="replace", file="s.sql")
    index = graph(*made, scratch)
    index.paths_root = ROOT
    return index


@pytest.fixture(params=["one by one", "in columns"])
def index(request, monkeypatch) -> Iterator[Index]:
    if request.param == "in columns":
        monkeypatch.setattr(patterns, "FEW", -1)
    return sample()


@pytest.mark.parametrize(
    "text",
    [
        *("**", "mart.*", "**.users", "**.users.email", "**.email", "*.*.id", "m*.**", "/^email$/", "/city/", "**.p*"),
        *("/exports/*", "/exports/*.csv.email", "/srv/etl/data/*", "file:///srv/etl/data/x.id", "hidden.**", "tmp.**"),
        *('"Odd".t.items[].price', "**.items[].*", "mart.users.address.**", "none.**"),
    ],
)
def test_datasets_and_columns_of_a_graph_either_way(index, text):
    pattern = Pattern(text, ROOT)
    shown = [dataset for dataset in range(index.dataset_count) if not index.is_hidden(dataset)]
    assert pattern.datasets(index) == [d for d in shown if pattern.matches(index.dataset_name(d))]
    every = [node for dataset in shown for node in index.columns(dataset)]
    assert set(pattern.columns(index, ColumnPaths(index))) == {n for n in every if is_column(pattern, index, n)}


def is_column(pattern: Pattern, index: Index, node: int) -> bool:
    """The oracle: a regular expression is searched in the path; a glob is matched with its last part, then whole."""
    path = index.path(node)
    if pattern.is_regex:
        return pattern.matches(path)
    may_end = pattern.last is None or pattern.last.fullmatch(split_name(path)[-1])
    return may_end and pattern.matches(index.name(node))


def test_several_patterns_share_the_names_of_a_graph(monkeypatch):
    monkeypatch.setattr(patterns, "FEW", -1)
    index = sample()
    names = NameColumns(index)
    found = Patterns(["mart.*", "**.users"], ROOT).datasets(index, names)
    assert {index.dataset_name(d) for d in found} == {"mart.users", "mart.x", "raw.users"}
    assert names.datasets is names.datasets
    assert names.datasets.to_pylist() == [index.dataset_name(d) for d in range(index.dataset_count)]
