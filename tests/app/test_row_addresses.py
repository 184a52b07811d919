"""Addresses of rows: relations by name, by node, and by the place of the dataset that a program wrote."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from govtool.app.workflow_runs.addresses import _key_text, find_version, parse_address, select_versions
from govtool.errors import AmbiguousNameError, UnknownNameError


def invocation(node, relation, path):
    return SimpleNamespace(execution=1, node=node, outputs=[(relation, path)], kept=[relation], new_state=[])


RUN = SimpleNamespace(
    whole=1, invocations=[invocation("7", "top", "file:///srv/out/top@7"), invocation("a", "mart/top", "x/mart/top@8")]
)


@pytest.mark.parametrize("text", ["top", "7/top", "out/top[1]", "srv/out/top", "file:///srv/out/top@1[k=1]"])
def test_a_dataset_is_called_by_name_node_or_place(text):
    assert [each.node for each in select_versions(RUN, parse_address(text))] == ["7"]


def test_a_relation_may_be_called_after_folders():
    assert [each.node for each in select_versions(RUN, parse_address("mart/top"))] == ["a"]


@pytest.mark.parametrize(("text", "near"), [("out/tpo[1]", "7/top"), ("8/top", "7/top"), ("tpo", "top")])
def test_near_names_are_relations(text, near):
    with pytest.raises(UnknownNameError) as found:
        select_versions(RUN, parse_address(text))
    assert found.value.code == "usage.unknown-relation"
    assert near in found.value.nearest


@pytest.mark.parametrize("key", ["[de]", "[land=de]"])
def test_one_of_several_versions_is_proposed_with_the_key(key):
    rows = SimpleNamespace(values=[("de", 2)], columns=["land", "n"])
    twice = [invocation("a", "top", "a/top"), invocation("b", "top", "b/top")]
    run = SimpleNamespace(whole=1, invocations=twice, relations={"a/top": 1, "b/top": 2})
    with pytest.raises(AmbiguousNameError) as found:
        find_version(run, SimpleNamespace(rows=lambda _: rows), parse_address(f"top{key}"))
    assert found.value.hint == f"name one: b/top@1{key}"


@pytest.mark.parametrize("key", ["[x]", "[a=x,y]", "['a, b','it''s']", "[a='=x',2]", "['']"])
def test_a_key_is_written_as_it_is_read(key):
    known = parse_address(f"top{key}").key
    assert parse_address(f"top{_key_text(known)}").key == known
