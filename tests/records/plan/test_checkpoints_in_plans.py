"""What stands in a plan in the place of rows that the job kept."""

from __future__ import annotations

from itertools import count

import pytest

from govtool.records.plan import types as t
from govtool.records.plan.checkpoints import MAX_BEHIND, Checkpoint, with_definitions
from govtool.records.plan.expressions import Attribute
from govtool.records.plan.nodes import Plan, Range, Reference, Session, Union, With, outputs
from govtool.records.plan.term_pieces import Unread
from govtool.records.plan.tree import walk_nodes

SESSION = Session("4.1.1", True, "UTC", False, ())
K = Attribute(1, "k", t.LONG)


def rounds(many):
    """The checkpoints of a loop, each of which reads the one before twice; the first is a range."""
    made = [Checkpoint(0, Plan(Range(0, 0, 3, 1, K), SESSION))]
    for number in range(1, many):
        before = made[-1]
        twice = Union((before.reference((K,), SESSION), before.reference((K,), SESSION)), (K,))
        made.append(Checkpoint(number, Plan(with_definitions(twice, before.definitions(), count(0)), SESSION)))
    return made


def test_what_checkpoints_have_in_common_is_one_definition():
    root = rounds(10)[-1].plan.root
    assert isinstance(root, With)
    assert [each.id for each in root.definitions] == [-1 - number for number in range(9)]
    assert outputs(root) == (K,)
    (leaf,) = (node for node in walk_nodes(root) if isinstance(node, Range))
    assert leaf.leaf == 0


def test_leaves_of_the_plan_and_of_its_checkpoints_have_numbers_of_their_own():
    (first,) = rounds(1)
    both = Union((Range(0, 0, 9, 1, K), first.reference((K,), SESSION)), (K,))
    root = with_definitions(both, first.definitions(), count(1))
    assert sorted(node.leaf for node in walk_nodes(root) if isinstance(node, Range)) == [0, 1]


@pytest.mark.parametrize(
    ("made", "columns", "session", "why"),
    [
        (Checkpoint(7, None, "the plan is missing"), (K,), SESSION, "a checkpoint: the plan is missing"),
        (rounds(1)[0], (K, K), SESSION, "other columns"),
        (rounds(1)[0], (K,), Session("4.1.1", False, "UTC", False, ()), "other settings"),
    ],
)
def test_rows_that_may_be_others_are_not_read(made, columns, session, why):
    with pytest.raises(Unread, match=why):
        made.reference(columns, session)


def test_long_loops_are_refused_before_their_plans_outgrow_the_store():
    chain = rounds(MAX_BEHIND)
    assert isinstance(chain[-1].reference((K,), SESSION), Reference)
    with pytest.raises(Unread, match="more than 200"):
        rounds(MAX_BEHIND + 1)[-1].reference((K,), SESSION)
