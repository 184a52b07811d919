"""Damaged fragments of recorded runs: fsck names their runs, and what is forgotten is gone in spite of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from store_doubles import Wrapped

from govtool.app.records.forgotten import forgotten_applications
from govtool.app.records.tables import read_stored, read_tables_beside_damage
from govtool.app.upkeep.forget import ForgetRequest, forget_text
from govtool.app.upkeep.store import check, runs_without_values
from govtool.errors import IntegrityError, UnknownNameError
from govtool.model.positions import PRIVATE_POSITIONS, StoredPositions, encode_positions
from govtool.model.records import (
    PLANS,
    PRIVATE_VALUES,
    RECORD_RUNS,
    RECORD_TABLES,
    PrivateValues,
    RecordRun,
    StoredPlan,
    decode_plans,
    decode_private,
    decode_record_runs,
    encode_plans,
    encode_private,
    encode_record_runs,
)
from govtool.records.plan.codec import dumps
from govtool.records.plan.nodes import File, LocalRows, Plan, Relation, Session
from govtool.records.plan.types import Struct
from govtool.records.split_plans import relation_text, taken_apart
from govtool.render.upkeep import render_fsck
from govtool.store import Changes, Fragment, Store
from govtool.store.codec import digest

FACTS = {"tables": [[-1, 0, "exact", ""]], "coarse": [], "texts": []}


def application(number):
    """The fragments of one application with one run, by table."""
    return dict(encoded(number))


@cache
def encoded(number):
    run = f"app-{number}/0"
    parts = taken_apart(Plan(LocalRows(0, (), ((f"secret of {run}",),)), Session(f"{number}", True, "UTC")))
    body = parts.body.replace('"session"', f'"x{number}":0,"session"')
    positions = encode_positions(StoredPositions(FACTS | {"run": run}, (np.array([[number, 1]]),)))
    record = RecordRun(run, digest(body.encode()), "out", (), parts.listings, positions=digest(positions))
    return {
        PLANS: encode_plans([StoredPlan(record.plan, body)]),
        RECORD_RUNS: encode_record_runs([record]),
        PRIVATE_VALUES: encode_private([PrivateValues(run, parts.values)]),
        PRIVATE_POSITIONS: positions,
    }


def commit(store, *numbers):
    """A commit of a job that carries what earlier applications recorded along."""
    made = [(table, data) for number in numbers for table, data in application(number).items()]
    add = [Fragment("job", table, data, 1) for table, data in made]
    add.append(Fragment("job", "notes", f"runs of app-{numbers[-1]}/0".encode(), 1))
    store.commit(Changes(("job",), tuple(add)), message="m", author="ann", batch=f"b{numbers}")


@pytest.fixture
def store():
    made = Store.init("memory://")
    commit(made, 1)
    commit(made, 1, 2)
    return made


def key(number, table):
    return f"frag/{table}/{digest(application(number)[table])}.parquet"


def problems(store):
    return check(store, anchor=None, contents=True, progress=None).problems


def forgotten(store, run, **options):
    return forget_text(store, ForgetRequest(runs=(run,), author="ann", **options))


def flipped(place):
    return lambda data: data[: int(place * len(data))] + b"\xa5" + data[int(place * len(data)) + 1 :]


def cut(place):
    return lambda data: data[: int(place * len(data))]


DAMAGES = [change(place) for place in (0, 0.03, 0.2, 0.5, 0.8, 0.97) for change in (flipped, cut)]


def damage(store, number, table, change):
    store.objects.put(key(number, table), change(store.objects.get(key(number, table))))


@pytest.mark.parametrize("table", RECORD_TABLES)
def test_damage_is_named_with_its_run_and_blocks_no_other(table):
    for change in DAMAGES:
        store = Store.init("memory://")
        commit(store, 1)
        commit(store, 1, 2)
        damage(store, 1, table, change)
        (problem,) = [each for each in problems(store) if each.key == key(1, table)]
        assert problem.code == "store.corrupt-fragment"
        assert f"{table} of job, of app-1/0:" in problem.message
        assert "restore this object" in problem.remedy
        assert "govtool store forget --" in problem.remedy
        answer = forgotten(store, "app-2")
        assert answer.held == ()
        assert {each.table for each in answer.fragments} == {PRIVATE_VALUES, PRIVATE_POSITIONS}
        assert store.objects.get(key(2, PRIVATE_VALUES)) is None
        assert store.objects.get(key(1, PRIVATE_VALUES)) is not None
        assert {each.key for each in problems(store)} == {key(1, table)}


@pytest.mark.parametrize("table", [RECORD_RUNS, PRIVATE_VALUES, PRIVATE_POSITIONS])
def test_a_run_of_which_a_part_is_damaged_is_forgotten(store, table):
    damage(store, 1, table, flipped(0.5))
    answer = forgotten(store, "app-1")
    assert answer.held == ()
    assert store.objects.get(key(1, PRIVATE_VALUES)) is None
    assert store.objects.get(key(1, PRIVATE_POSITIONS)) is None
    assert store.objects.get(key(2, PRIVATE_VALUES)) is not None
    assert [each.key for each in problems(store)] == ([key(1, RECORD_RUNS)] if table == RECORD_RUNS else [])


def test_a_run_of_which_nothing_can_be_read_is_forgotten_if_its_source_names_it(store):
    for table in (RECORD_RUNS, PRIVATE_VALUES):
        damage(store, 1, table, cut(0.5))
    with pytest.raises(UnknownNameError, match="damaged fragments of job may hold them"):
        forgotten(store, "app-3/0")
    assert forgotten(store, "app-1/0").held == ()
    assert store.objects.get(key(1, PRIVATE_VALUES)) is None
    assert store.objects.get(key(2, PRIVATE_VALUES)) is not None


def test_values_that_may_be_of_the_run_stay_and_are_listed():
    """One run of the source was forgotten before, so that what is missing may have been its own."""
    store = Store.init("memory://")
    commit(store, 1, 2)
    forgotten(store, "app-2")
    damage(store, 1, PRIVATE_VALUES, flipped(0.5))
    (held,) = forgotten(store, "app-1").held
    assert held.place.startswith(PRIVATE_VALUES)
    assert "--source 'job'" in held.reason


@pytest.mark.parametrize(
    ("table", "data", "word"),
    [
        (RECORD_RUNS, b"no Parquet", "no records"),
        (PRIVATE_VALUES, encode_record_runs([]), "no records"),
        (PRIVATE_POSITIONS, b"PAR1", "no positions"),
        (PLANS, encode_plans([StoredPlan(digest(b"{}"), "{}")]), "its plan is not in the store"),
        (PLANS, encode_plans([StoredPlan(digest(b"{"), "{")]), "a part of it is missing"),
    ],
)
def test_content_that_was_never_right_is_named_though_its_digest_is(table, data, word):
    parts = application(1)
    if table in (PLANS, PRIVATE_POSITIONS):
        listings = taken_apart(Plan(LocalRows(0, (), ()), Session("", True, "UTC"))).listings
        record = RecordRun("app-1/0", digest(b"{"), "out", (), listings, positions=digest(data))
        parts[RECORD_RUNS] = encode_record_runs([record])
    store = Store.init("memory://")
    add = [Fragment("job", name, content, 1) for name, content in {**parts, table: data}.items()]
    store.commit(Changes(("job",), tuple(add)), message="m", author="ann", batch="b")
    assert any(word in each.message for each in problems(store)), problems(store)


def test_a_text_in_what_is_damaged_is_removed_or_the_fragment_is_listed(store):
    damage(store, 1, PRIVATE_VALUES, cut(0.5))
    held = forget_text(store, ForgetRequest(texts=("secret of app-2",), author="ann")).held
    assert [each.place for each in held] == [f"{PRIVATE_VALUES}/{key(1, PRIVATE_VALUES).split('/')[2][:12]}"]
    store.objects.put(key(1, PRIVATE_VALUES), b"PAR1 secret of app-1/0")
    assert forget_text(store, ForgetRequest(texts=("secret of app-1",), author="ann")).held == ()
    assert store.objects.get(key(1, PRIVATE_VALUES)) is None


class Packing(Wrapped):
    """Objects in memory on which small fragments are packed, as on a server."""

    is_remote = True


def test_what_is_damaged_in_the_same_pack_is_lost_and_said_to_be(tmp_path, monkeypatch):
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path))
    made = Store.init("memory://")
    store = Store(Packing(made.objects), made.store_id)
    commit(store, 1)
    commit(store, 1, 2)
    (pack,) = {ref.key for ref in store.fragments(store.head()) if ref.pack and ref.table == "notes"} or {""}
    data = made.objects.get(pack)
    assert data
    made.objects.put(pack, data.replace(b"runs of app-2", b"runs of app-X"))
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "other"))
    answer = forgotten(store, "app-2")
    assert [each.place.split("/")[0] for each in answer.lost] == ["notes"]
    assert made.objects.get(pack) is None
    assert [each.message for each in problems(store)] == ["the fragment is missing"]


def test_a_run_that_was_forgotten_is_named(store):
    assert runs_without_values(store) == ()
    forgotten(store, "app-1")
    assert runs_without_values(store) == ("app-1",)
    assert problems(store) == ()
    result = check(store, anchor=None, contents=True, progress=None)
    _, line = render_fsck("table", result, "s", (), ("app-1",)).summary.splitlines()
    assert line == "private values removed by store forget, of 1 run: app-1"
    damage(store, 2, PRIVATE_VALUES, cut(0.5))
    assert runs_without_values(store) == (), "they may be what is damaged"


@pytest.mark.parametrize(
    ("output", "place", "is_found"),
    [
        ("file:///d/out", "file:///d/out/part-0", False),
        ("file:///d/out", "file:///d/%6fut", False),
        ("s3://b/out", "s3a://b/out/a=1/part-0", False),
        ("mart.orders", "file:///d/out/part-0", False),
        ("file:///d/o*", "file:///d/out/part-0", False),
        ("file:///d/outx", "file:///d/out/part-0", True),
        ("file:///d/ou", "file:///d/out/part-0", True),
    ],
)
def test_files_lie_where_the_dataset_is_that_they_are_of(output, place, is_found):
    parts = application(1)
    (record,) = decode_record_runs(parts[RECORD_RUNS])
    leaf = Relation(0, output, "parquet", (File(0, place, 1, 1),), (), Struct(()))
    record = replace(record, output=output, written=relation_text(leaf, Session("1", True, "UTC")))
    parts[RECORD_RUNS] = encode_record_runs([record])
    store = Store.init("memory://")
    add = [Fragment("job", name, content, 1) for name, content in parts.items()]
    store.commit(Changes(("job",), tuple(add)), message="m", author="ann", batch="b")
    assert any("does not lie in" in each.message for each in problems(store)) is is_found


@pytest.mark.parametrize(("name", "is_found"), [("data/in", False), ("file:///d/in", False), ("7", True), ("", True)])
def test_an_input_is_called_as_the_path_that_was_read(name, is_found):
    parts = application(1)
    (record,) = decode_record_runs(parts[RECORD_RUNS])
    leaf = Relation(0, "file:/d/in", "parquet", (), (), Struct(()))
    listings = dumps(Plan(leaf, Session("1", True, "UTC")))
    parts[RECORD_RUNS] = encode_record_runs([replace(record, inputs=((0, name),), listings=listings)])
    store = Store.init("memory://")
    add = [Fragment("job", table, content, 1) for table, content in parts.items()]
    store.commit(Changes(("job",), tuple(add)), message="m", author="ann", batch="b")
    assert any("is called" in each.message for each in problems(store)) is is_found


def stated(*parts):
    """A store with one source that holds the fragments of applications."""
    made = Store.init("memory://")
    add = tuple(Fragment("job", table, data, 1) for each in parts for table, data in each.items())
    made.commit(Changes(("job",), add), message="m", author="ann", batch="b")
    return made


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("app-1/0", {"two records bear this name", "its private values are there, and no record of it"}),
        ("app-9/0", {"its private values are not in the store", "its private values are there, and no record of it"}),
    ],
)
def test_a_record_under_the_name_of_another_run_is_found(name, words):
    parts = application(2)
    (record,) = decode_record_runs(parts[RECORD_RUNS])
    parts[RECORD_RUNS] = encode_record_runs([replace(record, run=name)])
    found = [each.message for each in problems(stated(application(1), parts))]
    assert {word for word in words if any(word in each for each in found)} == words


def test_a_record_of_written_files_that_names_no_dataset_is_damaged():
    """A trace forward would pass it over as one whose rows went to the driver."""
    parts = application(1)
    (record,) = decode_record_runs(parts[RECORD_RUNS])
    leaf = Relation(0, "file:///d/out", "parquet", (File(0, "file:///d/out/a", 1, 1),), (), Struct(()))
    written = relation_text(leaf, Session("1", True, "UTC"))
    with pytest.raises(IntegrityError, match="no records"):
        decode_record_runs(encode_record_runs([replace(record, output="", written=written)]))


def test_a_plan_that_is_another_than_its_digest_says_is_found():
    parts = application(1)
    (plan,) = decode_plans(parts[PLANS])
    parts[PLANS] = encode_plans([StoredPlan(plan.digest, plan.body.replace('"x1":0', '"x1":1'))])
    store = stated(parts)
    assert any("another plan than its digest says" in each.message for each in problems(store))
    (record,) = decode_record_runs(parts[RECORD_RUNS])
    with pytest.raises(IntegrityError, match="another plan than its digest says"):
        read_stored(store, store.head(), record)


# ---- values that are not those of the run ------------------------------------------------------------------------


def noting(number, *others):
    """An application whose record notes the fragment of its values, which holds those of others, too."""
    parts = application(number)
    (record,) = decode_record_runs(parts[RECORD_RUNS])
    (values,) = decode_private(parts[PRIVATE_VALUES])
    parts[PRIVATE_VALUES] = encode_private([values, *others])
    parts[RECORD_RUNS] = encode_record_runs([replace(record, private=digest(parts[PRIVATE_VALUES]))])
    return parts


def values_of(store, run="app-1/0"):
    head = store.head()
    refs = [ref for ref in store.fragments(head) if ref.table == RECORD_RUNS]
    records = [each for ref in refs for each in decode_record_runs(store.read(ref))]
    record = next(each for each in records if each.run == run)
    tables, damaged = read_tables_beside_damage(store, head, "job")
    found = tables.private.get(run)
    assert damaged or read_stored(store, head, record)[1] == (found.values if found is not None else None)
    return read_stored(store, head, record)[1]


def test_values_in_the_place_of_those_that_a_run_notes_are_no_data():
    parts = noting(1)
    assert "secret of app-1/0" in values_of(stated(parts))
    assert problems(stated(parts)) == ()
    (own,) = decode_private(parts[PRIVATE_VALUES])
    other = encode_private([replace(own, values=own.values.replace("secret", "others"))])
    store = stated({**parts, PRIVATE_VALUES: other})
    with pytest.raises(IntegrityError, match="app-1/0 are not those that it was recorded with"):
        values_of(store)
    tables, damaged = read_tables_beside_damage(store, store.head(), "job")
    assert tables.private == {}
    assert [each.ref.sha256 for each in damaged] == [digest(other)]
    assert [each.message.rpartition(": ")[2] for each in problems(store)] == [
        "its private values are not those that it was recorded with"
    ]
    del parts[PRIVATE_VALUES]
    assert values_of(stated(parts)) is None, "refused as removed"
    assert [each.message.rpartition(": ")[2] for each in problems(stated(parts))] == [
        "its private values are not in the store"
    ]


def test_what_was_forgotten_of_values_is_no_damage():
    """Another fragment is in the place of the one that the run notes, and one in the place of that."""
    store = stated(noting(1, PrivateValues("app-1/1", '["kept"]')), application(2))
    assert forget_text(store, ForgetRequest(texts=("kept",), author="ann")).held == ()
    assert "secret of app-1/0" in values_of(store)
    assert forget_text(store, ForgetRequest(texts=("secret of app-1",), author="ann")).held == ()
    assert values_of(store) is None, "with *** in its place the plan is another one"
    assert not [each for each in problems(store) if "app-1/0" in each.message]
    assert forgotten(store, "app-1/0").held == ()
    assert values_of(store) is None
    assert not [each for each in problems(store) if "app-1/0" in each.message]


def test_only_fragments_of_which_something_was_forgotten_are_read_to_know_whose_values_are_gone():
    asked = []
    inner = stated(noting(1), noting(2), noting(3))
    forgotten(inner, "app-2")
    store = Store(Wrapped(inner.objects, lambda op, key: asked.append(key)), inner.store_id)
    assert forgotten_applications(store, store.head()) == {"app-2"}
    values = {f"frag/{PRIVATE_VALUES}/{digest(noting(number)[PRIVATE_VALUES])}.parquet" for number in (1, 2, 3)}
    assert not values.intersection(asked)
    assert len({key for key in asked if key.startswith(f"frag/{PRIVATE_VALUES}/")}) == 1, "what stands in their place"
