"""Traces and workflows in the report: what leaves with them, the laws of zoom in Chromium, hostile texts, bounds."""

from __future__ import annotations

import html
import json
import random
import re
from pathlib import Path

import jsonschema
import pytest
from reference.graphs import zoom_out
from workflow.graph.drawn_graphs import Drawing, graph_of, plain

import govtool
from govtool.app.report.scenes import workflow_view
from govtool.cli.main import main
from govtool.errors import UnknownNameError, UsageError
from govtool.report.public_text import public_condition, public_reason
from govtool.report.trace_view import MOST_ROWS, trace_view
from govtool.report.workflow_view import MOST_NODES
from govtool.workflow.zoom import GraphView

ROOT = Path(govtool.__file__).parents[1]
SCHEMA = json.loads((ROOT / "docs" / "schemas" / "report-1.json").read_text())
DEALERSHIP = str(ROOT / "fixtures" / "graphs" / "dealership.json")
HOSTILE = "</script><img src=x onerror=window.hacked=1>\u202e"


def group(dataset: str, rows: list[dict], count: int | None = None, **more) -> dict:
    return {
        "dataset": dataset, "version": "0f", "exactness": "exact", "why": "", "truncated": count is not None,
        "count": len(rows) if count is None else count, "rows": rows, **more,
    }  # fmt: skip


def step(operator: str, rows: int) -> dict:
    return {"operator": operator, "exactness": "exact", "why": "", "rows": rows}


def trace(**more) -> dict:
    """A trace back from ``mart.out`` to ``raw.in``, over two runs."""
    rows = [
        {"_id": f"raw.in[mail=ann{n}@x.org]", "_file": "f.csv", "_row": n, "mail": f"ann{n}@x.org"} for n in range(3)
    ]
    hop = {
        "depth": 1, "run": "early", "output": "stg.mid", "selected": 2, "steps": [step("output", 2)],
        "inputs": [group("raw.in", rows)], "against": [], "outputs": [], "refused": [],
    }  # fmt: skip
    end = {
        "run": "early",
        "dataset": "raw.in",
        "files": [],
        "rows": 3,
        "reason": "no recorded run wrote it",
        "broken": False,
    }
    return {
        "govtool": "0", "schema": "trace/1", "store": "s", "commit": {}, "direction": "back", "where": "mail = 'ann@x.org'",
        "run": "late", "output": "mart.out", "selected": 1, "steps": [step("output", 1), step("join", 2)],
        "inputs": [group("stg.mid", [{"_row": 1, "mail": "ann@x.org"}] * 2)], "against": [group("stg.banned", [])],
        "between": [], "outputs": [], "refused": [], "verified": None, "engine": "DuckDB", "hops": [hop], "ends": [end], **more,
    }  # fmt: skip


def test_a_trace_joins_its_runs_and_holds_rows_only_where_they_are_included(shop):
    answer = shop.report("crm.teams", trace=trace(), workflow=DEALERSHIP)
    body = json.loads(json.dumps(answer.to_dict()))
    jsonschema.validate(body, SCHEMA)
    (found,) = body["traces"]
    names = [box["name"] for box in found["boxes"]]
    edges = {(names[a], names[b], style) for a, b, style in found["edges"]}
    assert edges == {
        ("raw.in", "early", "value"), ("early", "stg.mid", "value"), ("stg.mid", "late", "value"),
        ("stg.banned", "late", "reference"), ("late", "mart.out", "value"),
    }  # fmt: skip
    assert "ann" not in answer.to_html().replace("banned", "")
    assert found["where"] == "? = ?"  # the store does not have the columns of mart.out
    assert "Cars:C2" not in answer.to_html()
    with_rows = shop.report("crm.teams", trace=[trace()], workflow=DEALERSHIP, include_rows=True).to_dict()
    jsonschema.validate(json.loads(json.dumps(with_rows)), SCHEMA)
    shown = json.dumps(with_rows)
    assert all(text in shown for text in ("ann2@x.org", "mail = 'ann@x.org'", "Cars:C2"))


def test_a_trace_forward_runs_from_the_chosen_rows_to_the_outputs():
    view = trace_view(
        trace(direction="forward", inputs=[], against=[], outputs=[group("bi.out", [])], hops=[], ends=[])
    )
    names = [box.name for box in view.boxes]
    assert [(names[a], names[b]) for a, b, _ in view.edges] == [("mart.out", "late"), ("late", "bi.out")]


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "impact/1"},
        {"steps": None},
        {"selected": -1},
        {"inputs": [{"dataset": "x"}]},
        {"hops": [3]},
        {"where": 3},
        {"direction": "ann@x.org"},
        {"steps": [{**step("join", 2), "exactness": "Ann"}]},
    ],
)
def test_what_is_no_trace_is_refused_with_the_reason(shop, tmp_path, change, capsys):
    file = tmp_path / "t.json"
    file.write_text(json.dumps(trace(**change)))
    with pytest.raises(UsageError) as failed:
        shop.report(trace=file)
    assert failed.value.code == "usage.trace"
    assert main(["report", "html", "--trace", str(file), "-o", str(tmp_path / "r.html"), "--store", shop.store]) == 2
    assert "govtool trace back" in capsys.readouterr().err


def test_files_that_cannot_be_read_and_graphs_that_do_not_exist(shop, tmp_path):
    (tmp_path / "t.json").write_text("[1")
    for trace_file in (tmp_path / "t.json", tmp_path / "none.json", tmp_path):
        with pytest.raises(UsageError, match="is not a trace"):
            shop.report(trace=trace_file)
    with pytest.raises(UnknownNameError):
        shop.report(workflow="run:none")


def labels_of(tokens, *, more=(), **options) -> set[str]:
    """Every label and name of a group in the view of a graph of these records, and of further nodes."""
    nodes = [{"id": n, "kind": "p", "type": "wi", "label": token} for n, token in enumerate(tokens)]
    nodes += [
        {"id": f"f{n}", "kind": kind, "type": type_, "label": label} for n, (kind, type_, label) in enumerate(more)
    ]
    edges = [[0, node["id"]] for node in nodes[len(tokens) :]]
    body = workflow_view(graph_of({"nodes": nodes, "edges": edges}), "g", **options).body()
    return {*body["fine"]["labels"], *(group["name"] for group in body["groups"])}


VALUES = ["Smith:42", "Ann Smith[1]", "Meier[born 1970]", "Meier[born=1970]", "ann@example.org", "ann@0f:0/3", "a:b:c", "[x=1]",
          "tel: 1", "4711", "crm.users[Smith]", "crm.users [id=1]", "Smith's[id=1]"]  # fmt: skip


def test_tokens_show_a_dataset_that_is_known_and_nothing_else():
    known = {"crm.users", "file:///tmp/a"}
    tokens = ["crm.users[id=42]", "crm.users[name='Smith, A']", "file:///tmp/a@0f9a:0/12", "crm.users:ann"]
    assert labels_of(tokens, is_dataset=known.__contains__) == known
    assert labels_of(VALUES, is_dataset=known.__contains__) == {"records"}
    assert labels_of(tokens) == {"records"}
    run = labels_of(["file:///tmp/b@0f:0/3"], more=[("v", "val", "CalcBid")], is_recorded=True)
    assert run == {"file:///tmp/b", "CalcBid", "outside of modules"}


def test_labels_of_graphs_made_by_hand_show_no_values():
    more = [("v", "val", "Smith"), ("p", "op", "upper"), ("p", "op", "[COUNT >= 42]"), ("p", "op", "[Smith = 'Ann']"), ("p", "op", "[q'[Ann's]' = COUNT]"),
            ("v", "val", "COUNT"), ("p", "op", "Ann Smith")]  # fmt: skip
    expected = {"records", "outside of modules", "function", "upper", "[COUNT >= ?]", "[? = ?]", "[?]", "COUNT"}
    assert labels_of(["4711"], more=more) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mail = ann@example.org", "mail = ?"),
        ("country = Ann and mail = Ann.Smith", "country = ? and mail = ?"),
        ("mail = \u201cAnn\u201d or mail = \u2039Ann\u203a", "mail = ? or mail = ?"),
        ("mail = q'[Ann's]' and country", "?"),
        ("mail = 'Ann", "?"),
        (r"mail = 'it\'s Ann' and country", "mail = ? and country"),
        ("mail = 'x''Ann' || \"Ann\"", "mail = ? || ?"),
        ("mail = $t$Ann$t$", "mail = ?"),
        ("mail = N'Ann' or mail = x'41' or mail = :ann", "mail = ? or mail = ? or mail = ?"),
        ("`Ann Smith` = 1 and `country` is not null", "? = ? and `country` is not null"),
        ("/*+ Ann */ mail -- Ann\n < 12.5e3", "mail < ?"),
        ("upper(country) IN (Ann, 1) and Ann(mail) = 'mail'", "upper(country) IN (?, ?) and ?(mail) = ?"),
        ("{{ Ann }} = 0xAnn", "? = ?"),
    ],
)
def test_conditions_show_columns_operators_and_keywords_only(text, expected):
    assert public_condition(text, {"mail", "country"}) == expected


def test_random_conditions_never_show_a_word_that_is_not_allowed():
    chance = random.Random(5)
    bits = [
        "Annabel",
        "'",
        '"',
        "`",
        "$",
        "\\",
        "{",
        "--",
        "/*",
        "*/",
        "\n",
        "q'",
        "[",
        " ",
        "mail",
        "=",
        "(",
        "\u201c",
        "r'",
        "@",
        "0",
        "\u202e",
    ]
    shown = set()
    for _ in range(2_000):
        text = "".join(chance.choices(bits, k=chance.randint(1, 12)))
        shown.update(re.findall(r"\w+", public_condition(text, {"mail"})))
        assert "\u202e" not in public_condition(text, {"mail"})
    assert shown == {"mail"}


def test_reasons_with_expressions_or_quotes_are_left_out():
    hostile = [
        "name = Ann",
        "it is 'Ann's'",
        "\u2018Ann\u2019",
        "ann@x.org was",
        "/a/name=Ann/part-0 is gone",
        '"Ann" is',
        "x[Ann]",
        "Ann`s",
    ]
    assert {public_reason(text) for text in hostile} == {"?"}
    assert public_reason("the run's plan keeps 5 of each, by mail") == "the run's plan keeps ? of each, by mail"


def test_refused_files_are_counted_where_rows_are_not_included(shop):
    refused = [
        {"dataset": "raw.in", "file": f"/d/mail=ann{n}/part-0", "reason": f"mail=ann{n} changed"} for n in (1, 1, 2)
    ]
    box = next(box for box in trace_view(trace(refused=refused)).boxes if box.name == "raw.in")
    assert box.notes == ("refused: 2 files", "ends here: no recorded run wrote it")
    assert "ann" not in shop.report("crm.teams", trace=trace(refused=refused)).to_html().replace("banned", "")
    with_rows = next(box for box in trace_view(trace(refused=refused), include_rows=True).boxes if box.name == "raw.in")
    assert with_rows.notes[0] == "refused: /d/mail=ann1/part-0: mail=ann1 changed"


def test_a_condition_names_the_columns_that_the_store_has(shop):
    report = shop.report("crm.teams", trace=trace(output="crm.teams", where="teams.ID = 'SECRET' or secret = 2"))
    assert report.to_dict()["traces"][0]["where"] == "teams.ID = ? or ? = ?"


# ---- in Chromium


def scene_of(view) -> str:
    return f"new govtool.WorkflowScene('workflow', 0, {json.dumps(view.body())}, govtool.page.graph)"


def test_zoom_in_the_page_is_that_of_govtool_zoom(shop, opened):
    page = opened(shop.report("crm.teams"))
    for seed in range(60):
        body, chance = Drawing(seed, 1 + seed % 9).body(), random.Random(seed)
        graph = graph_of(body)
        modules = list(graph.modules)
        sets = [sorted(chance.sample(range(len(modules)), chance.randint(0, len(modules)))) for _ in range(4)]
        shown = page.run(
            f"(() => {{ const fine = ({scene_of(workflow_view(graph, 'g'))}).fine; return {json.dumps(sets)}.map((set) => {{"
            " const view = fine.view(new Set(set)); return [view.nodes, [...view.zooms.keys()], view.edges]; }); })()"
        )
        for chosen, (nodes, zooms, edges) in zip(sets, shown, strict=True):
            names = {modules[number] for number in chosen}
            expected = zoom_out(plain(body), names)
            keys = {
                f"zoom:{module}#{inv}": f"z{modules.index(module)}#{inv}" for module in names for inv in range(1, 20)
            }
            assert {*(f"n{node}" for node in nodes), *zooms} == {keys.get(node, node) for node in expected.nodes}, seed
            wires = sorted((keys.get(a, a), keys.get(b, b)) for a, b, _ in expected.edges)
            assert sorted(map(tuple, edges)) == wires, (seed, chosen)
            view = GraphView(graph, frozenset(names))
            assert (len(nodes) + len(zooms), len(edges)) == (view.node_count, view.edge_count)


def test_zooming_out_and_in_again_gives_the_graph_back(shop, opened):
    page = opened(shop.report("crm.teams", workflow=DEALERSHIP))
    boxes = "[...govtool.page.picture.arrangement.items].map((item) => [item.key, item.x, item.y]).sort()"
    assert (
        page.run("document.querySelectorAll('.box.group').length") == 2
    )  # records of no known dataset, and an invocation
    page.press("3")
    before = page.run(boxes)
    assert len(before) == len(json.loads(Path(DEALERSHIP).read_text())["nodes"])
    page.click('[data-act=zoom][aria-label^="Zoom out of"]')
    answer = govtool.provenance_graph(DEALERSHIP).zoom_out("M_dealer1")
    keys = [key for key, _, _ in page.run(boxes)]
    assert (len(keys), sum(key.startswith("z") for key in keys)) == (answer.node_count, 1)
    assert page.run("govtool.page.picture.arrangement.edges.length") == answer.edge_count
    page.run("govtool.page.pickKey(govtool.page.picture.arrangement.items.find((item) => item.key[0] === 'z').key)")
    page.run("govtool.page.saveNow()")
    address = page.run("location.href")
    page.press("z")  # into it again
    assert page.run(boxes) == before
    page.send("Page.navigate", url="about:blank")
    page.open(address)
    assert [key for key, _, _ in page.run(boxes)] == keys
    assert page.run("document.querySelector('#right h2').textContent") == "M_dealer1#1"
    page.click("[data-tab=tables]")
    assert page.run("document.querySelectorAll('.box.scene').length") == 0
    assert page.messages == []


def test_hostile_texts_of_traces_and_workflows_are_inert(shop, opened, tmp_path):
    nodes = [
        {"id": HOSTILE, "kind": "p", "type": "wi", "label": HOSTILE},
        {"id": "m", "kind": "p", "type": "m", "label": HOSTILE, "module": HOSTILE, "inv": 1},
        {"id": "i", "kind": "p", "type": "i", "label": "·", "module": HOSTILE, "inv": 1},
        {"id": "f", "kind": "p", "type": "op", "label": HOSTILE, "module": HOSTILE, "inv": 1},
        {"id": "o", "kind": "p", "type": "o", "label": "·", "module": HOSTILE, "inv": 1},
    ]
    graph = {"nodes": nodes, "edges": [[HOSTILE, "i"], ["m", "i"], ["i", "f"], ["f", "o"]]}
    (tmp_path / "g.json").write_text(json.dumps(graph))
    rows = [{"_row": 0, HOSTILE: HOSTILE, "__proto__": {"a": HOSTILE}}]
    bad = trace(where=HOSTILE, run=HOSTILE, output=HOSTILE, engine=HOSTILE, steps=[step(HOSTILE, 1)], inputs=[group(HOSTILE, rows, why=HOSTILE)],
                refused=[{"dataset": HOSTILE, "file": HOSTILE, "reason": HOSTILE}])  # fmt: skip
    report = shop.report("crm.teams", trace=bad, workflow=str(tmp_path / "g.json"), include_rows=True)
    assert report.to_html().count("<script") == 2
    page = opened(report)
    for scene in (0, 1):
        page.run(f"govtool.page.showScene(govtool.page.scenes[{scene}])")
        page.press("3")
        for key in page.run("govtool.page.picture.arrangement.items.map((item) => item.key)"):
            page.run(f"govtool.page.pickKey({json.dumps(key)})")
            assert "\u202e" not in page.run("document.body.innerText")
    assert page.run("window.hacked") is None
    assert page.run("document.querySelectorAll('img, script').length") == 2
    assert page.messages == []
    assert [one for one in page.requests if not one.startswith("file:")] == []


def test_a_trace_of_many_rows_shows_counts_and_a_page_of_them(shop, opened):
    rows = [{"_id": f"raw.in[id={n}]", "_file": "f", "_row": n, "n": n} for n in range(MOST_ROWS + 500)]
    large = trace(inputs=[group("raw.in", rows, count=100_000)], hops=[], ends=[])
    report = shop.report("crm.teams", trace=large, include_rows=True)
    assert len(report.to_dict()["traces"][0]["boxes"][2]["groups"][0]["rows"]) == MOST_ROWS
    page = opened(report)
    page.click('.box[data-key="t2"] .head')
    panel = "document.querySelector('#right').textContent"
    assert "input 100,000 rows" in page.run(panel)
    assert "1,000 of 100,000 rows are in this file" in page.run(panel)
    assert page.run("document.querySelectorAll('table.data tr').length") == 51
    page.run("document.querySelectorAll('.turn')[1].click()")
    assert page.run("document.querySelector('table.data td').textContent") == "f 50"
    assert page.run("document.querySelectorAll('.turn')[0].disabled") is False
    assert page.run("[...document.querySelectorAll('.box.on')].map((box) => box.dataset.key).sort()") == [
        "t0",
        "t1",
        "t2",
    ]


def test_a_graph_too_large_for_a_page_shows_its_invocations(shop, opened):
    graph = graph_of(Drawing(1, 900).body())
    assert graph.node_count > MOST_NODES
    view = workflow_view(graph, "big")
    assert view.nodes == ()
    assert "5,000" in view.left_out
    assert sum(sum(one.counts.values()) for one in view.groups) == graph.node_count
    page = opened(shop.report("crm.teams"))
    boxes = page.run(
        f"(() => {{ const scene = {scene_of(view)}; return [scene.canZoom, scene.arrange().items.length]; }})()"
    )
    assert boxes == [False, len(view.groups)]


def test_traces_and_workflows_are_tables_for_readers_without_scripts(shop):
    text = shop.report("crm.teams", trace=trace(), workflow=DEALERSHIP).to_html().split("<noscript>")[1]
    assert "<td>dataset</td><td>stg.mid</td><td>input</td><td>2 exact</td>" in text
    assert "<td>invocation</td><td>M_dealer1#1</td>" in text


def test_a_provenance_graph_draws_itself_in_a_notebook(page, tmp_path):
    view = govtool.provenance_graph(DEALERSHIP).zoom_out("M_dealer1")
    frame = view._repr_html_()
    assert frame.startswith('<iframe sandbox="allow-scripts allow-downloads" srcdoc="&lt;!DOCTYPE html&gt;')
    file = tmp_path / "page.html"
    file.write_text(html.unescape(re.search('srcdoc="([^"]*)"', frame)[1]))
    page.open(file.as_uri())
    assert page.run("document.querySelectorAll('.box.scene').length") == view.node_count
    page.press("z")
    page.click(".hop.zoom")
    assert page.run("document.querySelectorAll('.box.scene').length") == view.zoom_in("M_dealer1").node_count
    assert page.messages == []
