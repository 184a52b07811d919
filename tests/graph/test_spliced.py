"""An index that is another one and a change: in all that it says it equals one that is built anew."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from random import Random
from typing import Any

import numpy as np
import pytest
from changed_graphs import Fragments, changed, derivation, fragments, warehouse

from govtool.arrays import layout
from govtool.graph.builder.build import build_gathered
from govtool.graph.builder.gathered import Gathered, first_derivation, fragment_order, gather, mapped, ordered, pack
from govtool.graph.builder.statement_arrays import EVIDENCE
from govtool.graph.delta.derive import derive
from govtool.graph.delta.spliced import SplicedIndex
from govtool.graph.index import Index
from govtool.model import ColumnRef, Derivation, Edge, EdgeKind, OutputColumn, Statement
from govtool.model.columnar import encode, read_table

ROUNDS = 30
TEXTS = {
    "dataset_name", "dataset_kind", "node_path", "node_type", "diagnostic_json", "path_suffix",
    *(f"derivation_{name}" for name in EVIDENCE if name not in ("complete", "line", "count", "min_group")),
}  # fmt: skip
"""Arrays of numbers of texts."""


def encoded(some: Fragments) -> dict[str, bytes]:
    """The bytes of fragments by their names."""
    found = map(encode, some)
    return {hashlib.sha256(data).hexdigest(): data for data in found}


def read(some: Iterable[tuple[str, bytes]]) -> Gathered:
    """The columns of fragments, read in the order of their names."""
    return gather((name, read_table(data, dictionary=False)) for name, data in sorted(some))


def built(some: dict[str, bytes]) -> Index:
    """An index built anew."""
    return Index(b"".join(build_gathered(ordered(read(some.items())))))


def spliced(before: dict[str, bytes], after: dict[str, bytes]) -> SplicedIndex | None:
    """An index derived from the one before, by way of files."""
    base = built(before)
    kept = mapped(b"".join(pack(ordered(read(before.items())))))
    fresh = read((name, data) for name, data in after.items() if name not in before)
    places = {name: place for place, name in enumerate(kept.fragments)}
    firsts = {name: first_derivation(kept, places[name], base.text) for name in after if name in places}
    firsts |= {name: first_derivation(fresh, place) for place, name in enumerate(fresh.fragments)}
    names = list(after)
    order = [names[place] for place in fragment_order(names, [firsts[name] for name in names])]
    made = derive(base, kept, fresh, order, 10**9)
    if made is None:
        return None
    change, meta = layout.view(b"".join(layout.pack(layout.narrowed(made.arrays), made.meta, 1)), 1)
    return SplicedIndex(base, change, meta, lambda: built(after))


def said(index: Index) -> dict[str, Any]:
    """All that an index says: its arrays with texts, labels and statements in place of their numbers."""
    arrays = {name: np.asarray(values).tolist() for name, values in index.arrays.items()}
    texts = [index.text(number) for number in range(len(arrays.pop("string")) - 1)]
    del arrays["text"]
    labels = [
        (texts[one], texts[two])
        for one, two in zip(arrays.pop("label_functions"), arrays.pop("label_reason"), strict=True)
    ]
    del arrays["derivation_statement"], arrays["statement"], arrays["statement_derivation"]
    found: dict[str, Any] = {
        name: [texts[number] for number in values] if name in TEXTS else values for name, values in arrays.items()
    }
    found["edge_label"] = [labels[number] for number in arrays["edge_label"]]
    found["same_statement"] = [index.same_statement(one) for one in range(len(arrays["derivation_mode"]))]
    found["meta"] = {name: value for name, value in index.meta.items() if name != "base"}
    return found


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_spliced_index_says_what_one_that_is_built_anew_says(seed: int) -> None:
    draw = Random(seed)
    of = warehouse(draw)
    before = fragments(draw, of)
    after = changed(draw, of, before)
    found = spliced(encoded(before), encoded(after))
    if found is None:
        return
    expected = said(built(encoded(after)))
    for name, values in said(found).items():
        assert values == expected[name], name
    for name, array in found.arrays.items():  # one by one as well as at once
        assert [array[at] for at in range(len(array))] == np.asarray(array).tolist(), name
    assert bytes(found.folded().buffer) == bytes(built(encoded(after)).buffer)


def test_nearly_all_changes_are_spliced_and_few_derivations_are_built_for_it() -> None:
    shares = []
    for seed in range(40):
        draw = Random(seed)
        of = warehouse(draw)
        if not of.plain:
            continue
        before = fragments(draw, of)
        after = changed(draw, of, before)
        found = spliced(encoded(before), encoded(after))
        assert found is not None
        shares.append(len(found.change["derivation_mode"]) / max(1, sum(map(len, after))))
    assert sorted(shares)[len(shares) // 2] < 0.25


def test_a_column_that_only_an_open_star_may_carry_is_gone_with_the_last_that_names_it() -> None:
    star = Edge(ColumnRef("s", "?"), "?", EdgeKind.OPAQUE, reason="star")
    made = OutputColumn("a")
    stays = Derivation("t", "view", "replace", Statement("1", "create_view", "", "t.sql"), (made,), edges=(star,))
    names = Edge(ColumnRef("s", "b"), "a", EdgeKind.IDENTITY)
    goes = Derivation("u", "view", "replace", Statement("2", "create_view", "", "u.sql"), (made,), edges=(names,))
    before, after = encoded([[stays], [goes]]), encoded([[stays]])
    found = spliced(before, after)
    assert found is not None
    assert built(before).find(ColumnRef("s", "b")) is not None
    assert found.find(ColumnRef("s", "b")) is None
    assert said(found) == said(built(after))


@pytest.mark.parametrize(("name", "is_spliced"), [("ds.events", True), ('ds."events_*"', False)])
def test_a_wildcard_of_bigquery_is_not_spliced(name: str, is_spliced: bool) -> None:
    draw = Random(1)
    of = warehouse(draw)
    before = fragments(draw, of)
    after = [*before, [derivation(draw, of._replace(datasets=[name]))]]
    assert (spliced(encoded(before), encoded(after)) is not None) == is_spliced
