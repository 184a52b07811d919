"""``DATASET@VERSION``: whatever systems call their versions, each is found by the name that is printed for it."""

from __future__ import annotations

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.app.runs.lookup import named_version, version_names
from govtool.errors import AmbiguousNameError, UnknownNameError
from govtool.model.run import Run, RunOutput
from govtool.model.version import ContentIdentity
from govtool.query.runs.history import History, WrittenVersion


def written(dataset, *texts, kind="stated"):
    """A run a minute, each of which wrote a version that is called so."""
    return History(
        Run(
            id=f"run-{number}",
            job="job",
            status="complete",
            how="openlineage",
            ended=f"2026-11-20T10:{number:02d}:00Z",
            outputs=(RunOutput(dataset, "overwrite", identity=ContentIdentity(kind, None, text, 1, 1)),),
        )
        for number, text in enumerate(texts)
    )


def number(history, name):
    return named_version(history, name).number


def test_an_at_sign_in_the_dataset_and_in_the_version():
    history = written("s3://b/a@eu", "2026-11-19T10:00/snap:7;x @y", "v@2")
    assert number(history, "s3://b/a@eu@2026-11-19T10:00/snap:7;x @y") == 1
    assert number(history, "s3://b/a@eu@snap:7;x @y") == 1
    assert number(history, "a@eu@v@2") == 2
    with pytest.raises(UnknownNameError) as error:
        named_version(history, "s3://b/a@eu@v@3")
    assert (error.value.code, error.value.nearest) == ("usage.unknown-version", ("v@2", "snap:7;x @y"))


def test_one_end_of_several_versions_is_none_of_them():
    history = written("d", "2025/1", "2026/1", "2026/2")
    assert number(history, "d@2") == 3
    assert number(history, "d@2025/1") == 1
    with pytest.raises(AmbiguousNameError) as error:
        named_version(history, "d@1")
    assert (error.value.code, error.value.nearest) == ("usage.ambiguous-version", ("2025/1", "2026/1"))
    assert set(version_names(history, [WrittenVersion("d", n) for n in (1, 2, 3)]).values()) == {
        "d@2025/1",
        "d@2026/1",
        "d@2",
    }


def test_a_day_is_its_last_version_also_where_versions_are_called_by_time():
    history = written("d", "2026-11-20T08:00", "2026-11-20T09:00")
    assert number(history, "d@2026-11-20") == 2
    assert number(history, "d@latest") == 2
    assert number(history, "d@2026-11-20T12:00+02:00") == 1
    with pytest.raises(UnknownNameError):
        number(history, "d@20251120")


def test_the_beginning_of_two_digests_is_neither():
    with pytest.raises(AmbiguousNameError):
        named_version(written("d", "abcdef11", "abcdef22", kind="listing"), "d@abcdef")


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.text("ab01/#@- ", min_size=1, max_size=8), min_size=1, max_size=6, unique=True))
def test_every_version_is_found_by_its_printed_name(texts):
    history = written("x@y", *texts)
    versions = [WrittenVersion("x@y", n + 1) for n in range(len(texts))]
    for version, name in version_names(history, versions).items():
        assert named_version(history, name) == version
