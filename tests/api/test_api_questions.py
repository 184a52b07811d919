"""``govtool.open()`` and the questions of a ``Graph``: the answers of the command line, from any number of threads."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import govtool
from govtool.answers.answer import GraphAnswer
from govtool.cli.main import main
from govtool.errors import EvidenceError, UnknownNameError, UsageError
from govtool.graph import layout

SHOP = Path(govtool.__file__).parents[1] / "fixtures" / "shop" / "postgres"
GDPR = ["--policy", "pack:gdpr"]
DAY = "2026-11-22"

Question = Callable[[govtool.Graph], GraphAnswer]
QUESTIONS: list[tuple[list[str], Question]] = [
    (["impact", "crm.users.email"], lambda g: g.impact("crm.users.email")),
    (
        ["impact", "crm.users.email", "--change", "drop", *GDPR, "--exclude", "mart.**", "--limit", "4"],
        lambda g: g.impact("crm.users.email", change="drop", policy="pack:gdpr", exclude=["mart.**"], limit=4),
    ),
    (
        ["impact", "class:gdpr.contact", *GDPR, "--kind", "identity", "--depth", "2"],
        lambda g: g.impact("class:gdpr.contact", policy=["pack:gdpr"], kind="identity", depth=2),
    ),
    (
        ["impact", "stg.users", "--upstream", "--semantics", "lineagex", "--evidence", "static"],
        lambda g: g.impact("stg.users", upstream=True, semantics="lineagex", evidence="static"),
    ),
    (["path", "crm.users.email", "stg.**"], lambda g: g.path("crm.users.email", "stg.**")),
    (["path", "crm.users", "stg.users", "--limit", "1"], lambda g: g.path("crm.users", "stg.users", limit=1)),
    (["explain", "stg.users.email"], lambda g: g.explain("stg.users.email")),
    (["explain", "stg.**", "--limit", "2"], lambda g: g.explain("stg.**", limit=2)),
    (["ls"], lambda g: g.ls()),
    (
        ["ls", "crm.**", "stg.**", "--columns", "--exclude", "stg.users", "--limit", "5"],
        lambda g: g.ls("crm.**", "stg.**", columns=True, exclude="stg.users", limit=5),
    ),
    (["classes", "stg.**", *GDPR], lambda g: g.classes("stg.**", policy="pack:gdpr")),
    (
        ["classes", *GDPR, "--direct", "--limit", "3"],
        lambda g: g.classes(policy="pack:gdpr", direct=True, limit=3),
    ),
    (["check", *GDPR, "--today", DAY], lambda g: g.check(policy="pack:gdpr", today=DAY)),
    (
        ["check", *GDPR, "--base", "HEAD", "--strict"],
        lambda g: g.check(policy="pack:gdpr", base="HEAD", strict=True),
    ),
    (
        ["whatif", "drop", "crm.users.email", *GDPR],
        lambda g: g.whatif("drop", "crm.users.email", policy="pack:gdpr"),
    ),
    (
        ["whatif", "rename", "crm.users.email", "--to", "mail", "--limit", "2"],
        lambda g: g.whatif("rename", "crm.users.email", to="mail", limit=2),
    ),
    (["whatif", "delete", "crm.users"], lambda g: g.whatif("delete", "crm.users")),
    (["erase", "plan", "--subject", "crm.users.id"], lambda g: g.erase_plan("crm.users.id")),
    (
        ["erase", "plan", "--subject", "crm.users.id=7", "--show-values", *GDPR, "--within", "90d"],
        lambda g: g.erase_plan(["crm.users.id=7"], show_values=True, policy="pack:gdpr", within="90d"),
    ),
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with the SQL of fixtures/shop."""
    folder = tmp_path_factory.mktemp("shop")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GOVTOOL_CACHE", str(folder / "cache"))
        store = govtool.init(folder / "store")
        assert main(["ingest", "sql", str(SHOP), "--dialect", "postgres", "--store", store, "--quiet"]) == 0
    return store


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory without policies or settings, and a cache of its own."""
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GOVTOOL_STORE", raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


@pytest.mark.parametrize(("arguments", "question"), QUESTIONS, ids=[" ".join(words) for words, _ in QUESTIONS])
def test_an_answer_is_that_of_the_command(
    shop: str, capsys: pytest.CaptureFixture[str], arguments: list[str], question: Question
) -> None:
    capsys.readouterr()
    assert main([*arguments, "--store", shop, "--format", "json"]) in (0, 1)
    printed = json.loads(capsys.readouterr().out)
    answer = question(govtool.open(shop))
    assert json.loads(json.dumps(answer.to_dict())) == printed
    table = answer.to_arrow()
    assert table.column_names == list(answer.fields)
    assert table.num_rows == len(list(answer.rows()))


def test_sixteen_threads_get_the_answers_of_one(shop: str) -> None:
    expected = [question(govtool.open(shop)).to_dict() for _, question in QUESTIONS]
    graph = govtool.open(shop)

    def ask(number: int) -> tuple[int, dict[str, object]]:
        at = number % len(QUESTIONS)
        return at, QUESTIONS[at][1](graph).to_dict()

    with ThreadPoolExecutor(16) as pool:  # each starts at another question, on a graph that has computed nothing yet
        found = list(pool.map(ask, [7 * i for i in range(4 * len(QUESTIONS))]))
    assert len(found) == 4 * len(QUESTIONS)
    assert [at for at, answer in found if answer != expected[at]] == []


def test_a_damaged_index_of_the_cache_is_built_again(shop: str, tmp_path: Path) -> None:
    right = govtool.open(shop).impact("crm.users.email", change="drop").to_dict()
    graph = govtool.open(shop)
    with pytest.raises(UnknownNameError):  # a mistake of the user before is no reason to look away later
        graph.impact("nothing.like.it")
    used = graph.snapshot().index
    (file,) = (tmp_path / "cache").rglob(layout.FILE)
    whole = file.read_bytes()
    with file.open("r+b") as damaged:  # in place: the graph has it mapped
        damaged.seek(len(whole) // 2)
        damaged.write(b"\xff" * (len(whole) - len(whole) // 2))
    assert graph.impact("crm.users.email", change="drop").to_dict() == right
    assert graph.snapshot().index is not used
    assert file.read_bytes() == whole


def test_an_error_of_the_question_is_raised_as_it_is(shop: str) -> None:
    graph = govtool.open(shop)
    index = graph.snapshot().index
    with pytest.raises(UnknownNameError):
        graph.impact("crm.users.nothing_like_it")
    with pytest.raises(UsageError, match="is not a date"):
        graph.ls(today="tomorrow")
    with pytest.raises(UnknownNameError, match="no kind"):
        graph.path("crm.users", "stg.users", kind="nonsense")
    with pytest.raises(UsageError, match="no policies"):
        graph.classes()
    assert graph.snapshot().index is index


def test_versions_and_thresholds(shop: str) -> None:
    graph = govtool.open(shop)
    assert graph.at("HEAD").commit == graph.commit
    answer = graph.impact("crm.users.email", change="drop")
    assert answer.fails("breaks")
    assert not answer.fails("none")
    with pytest.raises(UnknownNameError, match="no verdict worse"):
        answer.fails("worse")
    answer.check_coverage(strict=True)
    with pytest.raises(EvidenceError):
        answer.check_coverage(min_coverage=101)
    assert answer.head(2).to_dict()["truncated"] == len(answer.entries) - 2
    assert answer.head(2) == graph.impact("crm.users.email", change="drop", limit=2)


def test_the_values_of_a_subject_are_in_no_repr(shop: str) -> None:
    answer = govtool.open(shop).erase_plan("crm.users.id=4711", show_values=True)
    assert answer.values == ("4711",)
    assert "4711" not in repr(answer)


def test_arrow_has_types_and_pandas_is_optional(shop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    answer = govtool.open(shop).impact("crm.users.email", policy="pack:gdpr")
    table = answer.to_arrow()
    assert table.schema.field("hops").type == pa.int64()
    assert table.schema.field("classes").type == pa.list_(pa.string())
    assert ["gdpr.contact.email"] in table.column("classes").to_pylist()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="pandas is not installed") as caught:
        answer.to_pandas()
    assert caught.value.code == "usage.missing-library"


def test_importing_govtool_imports_nothing_heavy() -> None:
    code = "import sys, govtool; print(*sorted(sys.modules)); govtool.open; print(*sorted(sys.modules))"
    before, after = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    heavy = {"numpy", "pyarrow", "sqlglot", "pydantic", "obstore", "yaml", "typer", "pyspark"}
    assert not heavy & set(before.split())
    assert not heavy & set(after.split())
    assert set(govtool.__all__) <= set(dir(govtool))
    assert all(getattr(govtool, name) is not None for name in govtool.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        govtool.nonsense  # noqa: B018
