"""User-defined functions that are not found as they were: their cells are left out, all else stays exact."""

from __future__ import annotations

import pytest

from govtool.app.records.user_functions import without_lost_functions
from govtool.records.plan.expressions import Attribute, Call, Named, Opaque, ScalarSubquery, Udf, UdfReference
from govtool.records.plan.nodes import LocalRows, Project
from govtool.records.plan.tree import walk, walk_nodes
from govtool.records.plan.types import LONG
from govtool.spark.live.records.function_source import source_digest

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


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (None, "the function twice of the script is not found in the Python files of the working folder"),
        ("import nothing_of_this_name\n", "the function twice of the script is not found in the Python files"),
        (SCRIPT.replace("2", "3"), "the function twice has changed since, or what it uses"),
    ],
)
def test_a_function_that_is_gone_or_changed_is_an_opaque_cell(tmp_path, monkeypatch, script, reason):
    monkeypatch.chdir(tmp_path)
    if script is not None:
        (tmp_path / "job.py").write_text(script)
    found = without_lost_functions(plan("0" * 64))
    terms = list(walk(found))
    assert not [term for term in terms if isinstance(term, Udf)]
    (opaque,) = [term for term in terms if isinstance(term, Opaque)]
    assert opaque.arguments == (N,)
    assert reason in opaque.reason


@pytest.mark.parametrize(
    ("module", "name", "digest", "reason"),
    [
        ("helpers", "initial", "0" * 64, "the function initial of the module helpers is not found"),
        ("job", "<lambda>", "0" * 64, "a lambda is not found again: only functions with a name are"),
        ("job", "make.<locals>.inner", "0" * 64, "not those within a function or a class"),
        ("job", "boxed", "", "a change of it could not be seen: it refers to box, which is no plain data"),
    ],
)
def test_the_reason_says_what_is_missing(tmp_path, monkeypatch, module, name, digest, reason):
    monkeypatch.chdir(tmp_path)
    why = "" if digest else "it refers to box, which is no plain data"
    call = Udf(UdfReference(module, name, digest, "python", why), (N,), LONG)
    found = without_lost_functions(Project(ROWS, (Named(call, 2, "m"),)))
    (opaque,) = [term for term in walk(found) if isinstance(term, Opaque)]
    assert reason in opaque.reason


def test_a_function_that_uses_another_module_of_the_users_changes_with_it(tmp_path, monkeypatch):
    """Also with the modules that this one uses, and whether the function or the module is imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "deep_of_test.py").write_text("def double(n):\n    return n * 2\n")
    (tmp_path / "near_of_test.py").write_text("from deep_of_test import double\n\ndef make(n):\n    return double(n)\n")
    sources = [
        "from near_of_test import make\n\ndef twice(n):\n    return make(n)\n",
        "import near_of_test\n\ndef twice(n):\n    return near_of_test.make(n)\n",
    ]
    digests = [digest_of(source, tmp_path) for source in sources]
    assert [digest_of(source, tmp_path) for source in sources] == digests
    (tmp_path / "deep_of_test.py").write_text("def double(n):\n    return n * 2  # a remark changes nothing\n")
    assert [digest_of(source, tmp_path) for source in sources] == digests
    (tmp_path / "job.py").write_text(sources[0])
    assert not lost(plan(digests[0]))
    (tmp_path / "deep_of_test.py").write_text("def double(n):\n    return n * 3\n")
    for source, digest in zip(sources, digests, strict=True):
        assert digest_of(source, tmp_path) != digest
    assert lost(plan(digests[0]))


def lost(given):
    return [term for term in walk(without_lost_functions(given)) if isinstance(term, Opaque)]


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
    monkeypatch.setattr("govtool.app.records.user_functions.own_files", lambda _: pytest.fail("files were looked at"))
    assert without_lost_functions(ROWS) is ROWS


@pytest.mark.long
def test_a_function_of_a_subquery_is_lost_too():
    found = without_lost_functions(Project(ROWS, (Named(ScalarSubquery(plan("0" * 64), LONG), 3, "s"),)))
    terms = [term for node in walk_nodes(found) for term in walk(node)]
    assert not [term for term in terms if isinstance(term, Udf)]
    assert [term for term in terms if isinstance(term, Opaque)]
