"""Every command of docs/provenance-graphs.md runs, in the order of the page, in a project with a graph."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import jsonschema
import pytest

from govtool.cli.main import main

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def project(tmp_path, capsys):
    shutil.copy(ROOT / "fixtures" / "graphs" / "dealership.json", tmp_path / "run.json")
    assert main(["init"]) == 0
    capsys.readouterr()
    return tmp_path


def run(capsys, *words):
    """Exit code, stdout, stderr."""
    capsys.readouterr()
    code = main(list(words))
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_every_command_of_the_page_runs(project, capsys):
    text = (ROOT / "docs" / "provenance-graphs.md").read_text(encoding="utf-8")
    commands = [line[2:] for block in _BLOCK.findall(text) for line in block.splitlines() if line.startswith("$ ")]
    assert len(commands) >= 10
    for command in commands:
        code, out, err = run(capsys, *shlex.split(command)[1:])
        assert code == 0, f"{command}: {err}"
        assert out or "-o" in command


def asked(capsys, *words):
    """Exit code and answer, which keeps to its schema."""
    code, out, _ = run(capsys, *words, "--format", "json")
    answer = json.loads(out)
    schema = ROOT / "docs" / "schemas" / f"{answer['schema'].replace('/', '-')}.json"
    jsonschema.validate(answer, json.loads(schema.read_text(encoding="utf-8")))
    return code, answer


def test_answers_of_a_file_and_of_the_store_are_the_same(project, capsys):
    assert asked(capsys, "graph", "import", "run.json", "--name", "dealers")[1]["created"]
    assert not asked(capsys, "graph", "import", "run.json", "--name", "dealers")[1]["created"]
    for words in (
        ("whatif", "delete", "Cars:C2"),
        ("subgraph", "s2"),
        ("depends", "Bid", "--on", "Cars:C2"),
        ("zoom", "out", "-m", "M_dealer1"),
    ):
        answers = [asked(capsys, *words, "--graph", name) for name in ("run.json", "dealers")]
        for _, answer in answers:
            answer.pop("graph")
        assert answers[0] == answers[1]


def test_the_answers_have_the_keys_of_the_specification(project, capsys):
    code, answer = asked(capsys, "whatif", "delete", "Cars:C2", "--graph", "run.json")
    assert code == 0
    assert set(answer["removed"]) == {"C2", "s2", "Inventory2", "t2"}
    assert answer["recomputed"] == {"NumAvail": 1}
    assert set(answer["unknown"]) == {"CalcBid", "Amount"}
    assert (answer["left_nodes"], answer["left_edges"]) == (19, 22)
    _, answer = asked(capsys, "zoom", "out", "-m", "M_dealer1", "--graph", "run.json")
    assert answer["added_nodes"] == ["zoom:M_dealer1#1"]
    assert (answer["nodes"], answer["edges"]) == (6, 6)
    _, answer = asked(capsys, "subgraph", "t2", "--graph", "run.json")
    assert set(answer["siblings"]) == {"t3"}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("depends", "Bid", "--on", "Cars:C2"), 0),
        (("depends", "Amount", "--on", "Cars:C2"), 3),
        (("depends", "Bid", "--on", "Requests:B1"), 0),
        (("depends", "Bid", "--on", "Requests:B1", "--exit-code"), 1),
        (("depends", "Bid", "--on", "Cars:C2", "--exit-code"), 0),
        (("depends", "Bid", "--on", "Requests:B1", "--fail-on", "depends"), 1),  # the former spelling
        (("depends", "Bid", "--fail-on=depends", "--on", "Cars:C2"), 0),
        (("depends", "Bid", "--on", "Cars:C2", "--fail-on", "unknown"), 2),
        (("depends", "Bid", "--on", "Cars:C9"), 2),
        (("whatif", "delete", "Cars:C2", "--strict"), 3),
        (("whatif", "delete", "Cars:C1", "--strict"), 0),
        (("whatif", "delete"), 2),
        (("whatif", "delete", "Cars:C1", "--fail-on", "lost"), 2),
        (("zoom", "out", "-m", "M_dealer1#1"), 2),
        (("zoom", "in", "-m", "M_dealer1", "--zoomed", "M"), 2),
        (("subgraph", "nothing"), 2),
    ],
)
def test_exit_codes(project, capsys, words, code):
    assert run(capsys, *words, "--graph", "run.json")[0] == code


def test_lists_of_tokens_give_an_answer_a_line(project, capsys):
    (project / "lists.jsonl").write_text('["Cars:C2"]\n\n["Cars:C2", "Cars:C3"]\n', encoding="utf-8")
    code, out, _ = run(capsys, "whatif", "delete", "--graph", "run.json", "--from", "lists.jsonl", "--format", "json")
    answers = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [answer["deleted"] for answer in answers] == [["Cars:C2"], ["Cars:C2", "Cars:C3"]]
    assert "Amount" in answers[1]["removed"]
    (project / "lists.jsonl").write_text('["Cars:C2"]\n{}\n', encoding="utf-8")
    code, _, err = run(capsys, "whatif", "delete", "--graph", "run.json", "--from", "lists.jsonl")
    assert code == 2
    assert "lists.jsonl:2" in err


def test_earlier_graphs_are_found_by_commit_and_the_cache_is_no_need(project, capsys):
    assert run(capsys, "graph", "import", "run.json", "--name", "g")[0] == 0
    assert run(capsys, "zoom", "out", "--graph", "run.json", "-m", "M_dealer1", "-f", "dot", "-o", "x.dot")[0] == 0
    assert run(capsys, "graph", "export", "g", "--zoomed", "M_dealer1", "-f", "json", "-o", "small.json")[0] == 0
    assert run(capsys, "graph", "import", "small.json", "--name", "g")[0] == 0
    for at, nodes in (("1", 23), ("HEAD", 6)):
        shutil.rmtree(project / "cache", ignore_errors=True)
        _, listed = asked(capsys, "graph", "list", "--at", at)
        assert [entry["nodes"] for entry in listed["graphs"]] == [nodes]
        for _ in range(2):
            code, out, _ = run(capsys, "graph", "export", "g", "--at", at)
            assert (code, len(json.loads(out)["nodes"])) == (0, nodes)
    assert run(capsys, "graph", "export", "gg")[0] == 2
    assert run(capsys, "graph", "import", "run.json", "--name", "../g")[0] == 2
    assert run(capsys, "graph", "import", "missing.json")[0] == 2


def test_a_damaged_cache_is_built_again(project, capsys):
    assert run(capsys, "graph", "import", "run.json", "--name", "g")[0] == 0
    assert run(capsys, "graph", "export", "g")[0] == 0
    (file,) = (project / "cache").rglob("provenance.graph")
    data = bytearray(file.read_bytes())
    data[-200] ^= 0xFF
    file.chmod(0o644)
    file.write_bytes(bytes(data))
    code, out, _ = run(capsys, "graph", "export", "g")
    assert (code, len(json.loads(out)["nodes"])) == (0, 23)


def test_names_cannot_steer_a_terminal(project, capsys):
    token, function = "\x1b[31mX\u202e", "f\x1b]0;title\x07"
    nodes = [
        {"id": 1, "kind": "p", "type": "wi", "label": token},
        {"id": function, "kind": "p", "type": "op", "label": function},
    ]
    (project / "names.json").write_text(json.dumps({"nodes": nodes, "edges": [[1, function]]}), encoding="utf-8")
    for words in (("whatif", "delete", token), ("subgraph", "1"), ("depends", function, "--on", token)):
        for form in ("table", "plain", "json", "jsonl", "csv", "markdown"):
            code, out, _ = run(capsys, *words, "--graph", "names.json", "--format", form)
            assert code == 0
            assert not {"\x1b", "\x07", "\u202e"} & set(out)
    for form in ("json", "dot", "graphml", "prov-json"):
        assert not {"\x1b", "\x07", "\u202e"} & set(run(capsys, "graph", "export", "names.json", "-f", form)[1])


@pytest.mark.parametrize("words", [("--mode", "replay"), ("--key", "a=b"), ("--data", "."), ("--sql", "q.sql")])
def test_options_of_a_query_are_refused_for_a_graph(project, capsys, words):
    code, _, err = run(capsys, "whatif", "delete", "Cars:C2", "--graph", "run.json", *words)
    assert code == 2
    assert words[0].strip("-") in err
