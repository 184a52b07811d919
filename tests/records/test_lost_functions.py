"""User-defined functions that are not found as they were: their cells are left out, all else stays exact."""

from __future__ import annotations

import pytest

from govtool.app.records.opened import without_lost_functions
from govtool.records.plan.expressions import Attribute, Call, Named, Opaque, Udf, UdfReference
from govtool.records.plan.nodes import LocalRows, Project
from govtool.records.plan.tree import walk
from govtool.records.plan.types import LONG
from govtool.spark.live.records.exact import source_digest

SCRIPT = "def twice(n):\n    return n * 2\n"
N = Attribute(1, "n", LONG)
ROWS = LocalRows(0, (N,), ((1,), (2,)))


def plan(digest):
    call = Udf(UdfReference("__main__", "twice", digest, "python"), (N,), LONG)
    return Project(ROWS, (Named(N, 1, "n"), Named(Call("+", (call, N), LONG), 2, "m")))


def digest_of(source, folder):
    import importlib.util

    file = folder / "original.py"
    file.write_text(source)
    spec = importlib.util.spec_from_file_location("__main__", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    digest = source_digest(module.twice)
    file.unlink()
    return digest


@pytest.mark.parametrize("script", [None, SCRIPT.replace("2", "3"), "import nothing_of_this_name\n"])
def test_a_function_that_is_gone_or_changed_is_an_opaque_cell(tmp_path, monkeypatch, script):
    monkeypatch.chdir(tmp_path)
    if script is not None:
        (tmp_path / "job.py").write_text(script)
    found = without_lost_functions(plan("0" * 64))
    terms = list(walk(found))
    assert not [term for term in terms if isinstance(term, Udf)]
    (opaque,) = [term for term in terms if isinstance(term, Opaque)]
    assert opaque.arguments == (N,)
    assert "twice has changed since" in opaque.reason


def test_a_function_that_is_there_stays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    digest = digest_of(SCRIPT, tmp_path)
    (tmp_path / "job.py").write_text(SCRIPT)
    whole = plan(digest)
    assert without_lost_functions(whole) is whole


def test_a_helper_within_a_comprehension_counts(tmp_path):
    source = "def half(n):\n    return n / 2\n\ndef twice(n):\n    return [half(i) for i in (n,)][0]\n"
    assert digest_of(source, tmp_path) != digest_of(source.replace("n / 2", "n / 3"), tmp_path)


def test_a_plan_without_functions_looks_at_no_file(monkeypatch):
    monkeypatch.setattr("govtool.app.records.opened.own_files", lambda _: pytest.fail("files were looked at"))
    assert without_lost_functions(ROWS) is ROWS
