"""What a report holds: the graph as the store has it, parts of it, two versions of it; and its page as text."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import random
import re
from itertools import combinations
from pathlib import Path

import jsonschema
import pytest
from report_graphs import indexed, random_derivations, view_of

import govtool
from govtool.answers.notebook import table as notebook_table
from govtool.api.notebook import cell_lineage, load_ipython_extension, show
from govtool.cli.main import main
from govtool.errors import UnknownNameError, UsageError
from govtool.model import ColumnRef, Derivation, Edge, EdgeKind, OutputColumn, Statement
from govtool.report.drawing import MANY, drawing, group_of, groups_of
from govtool.report.escaping import escaped
from govtool.report.fallback import table as fallback
from govtool.report.html import json_block
from govtool.report.layout import contracted, crossings, place
from govtool.report.model import REMOVED, ColumnView, DatasetView, EdgeView, LineageView, StatementView, ViewNode

SCHEMA = json.loads((Path(govtool.__file__).parents[1] / "docs" / "schemas" / "report-1.json").read_text())


def names_of(view: LineageView) -> set[str]:
    return {dataset.name for dataset in view.datasets if not dataset.is_temporary}


def test_the_answer_is_as_its_schema_says(shop):
    answer = shop.report(
        policy="pack:gdpr", today="2026-11-22", erase="crm.users.id=zq-7315", diff="HEAD~1", title="Shop"
    )
    body = json.loads(json.dumps(answer.to_dict()))
    jsonschema.validate(body, SCHEMA)
    assert body["title"] == "Shop"
    assert body["erasure"]["tasks"]
    assert "zq-7315" not in json.dumps(body)
    assert body["findings"] == list(shop.check(policy="pack:gdpr", today="2026-11-22").items())
    assert body["sources"] == list(shop.coverage().sources())


def test_all_nodes_and_edges_are_in_it(shop):
    index, view = shop.snapshot().index, shop.report().graph
    assert view.column_count == sum(len(index.columns(d)) for d in range(index.dataset_count))
    ends = {(view.datasets[e.source.dataset].name, view.datasets[e.target.dataset].name, e.kind) for e in view.edges}
    truth = {
        (
            index.dataset_name(index.node_dataset[index.edge_source[e]]),
            index.dataset_name(index.node_dataset[index.edge_target[e]]),
            index.kind(e).label,
        )
        for e in range(index.edge_count)
    }
    assert ends == truth
    assert names_of(view) == {one.name for one in shop.ls().entries}


def test_selectors_choose_datasets_and_what_is_left_out_is_counted(shop):
    view = shop.report("mart.*", exclude="mart.stock").graph
    assert names_of(view) == {one.name for one in shop.ls("mart.*").entries} - {"mart.stock"}
    customers = next(one for one in view.datasets if one.name == "mart.customers")
    assert customers.omitted_sources == len({"stg.users", "stg.orders", "stg.addresses"})
    assert all(not one.omitted_sources + one.omitted_readers for one in shop.report().graph.datasets)
    with pytest.raises(UnknownNameError):
        shop.report("no.such")
    with pytest.raises(UsageError, match="nothing"):
        shop.report("mart.*", exclude="mart.*")
    with pytest.raises(UnknownNameError):
        shop.report(diff="no-such-version")


def test_statements_have_no_literals_even_where_the_store_keeps_them():
    text = "create view v as select a from s where mail = 'ann@example.org' and token = 'abc' -- ann"
    statement = Statement("f", "create_view", "postgres", "v.sql", 1, text=text)
    edge = Edge(ColumnRef("s", "a"), "a", EdgeKind.IDENTITY)
    view = view_of(indexed([Derivation("v", "view", "replace", statement, (OutputColumn("a"),), edges=(edge,))]))
    assert view.statements[0].text.startswith("create view v as select a from s where mail = '?'")
    assert not re.search("ann|abc", view.statements[0].text)


def test_marks_of_a_comparison_are_the_changes_that_diff_lists(ingest):
    chance = random.Random(5)

    def version() -> dict[str, str]:
        files = {"a.sql": f"create table src ({', '.join(f'c{i} int' for i in range(chance.randint(2, 4)))})"}
        for number in range(chance.randint(1, 4)):
            columns = chance.sample(["c0", "c1", "upper(c0)", "c0 + c1"], 2)
            where = chance.choice(["", " where c1 > 1"])
            made = ", ".join(f"{one} as o{i}" for i, one in enumerate(columns))
            files[f"{number}.sql"] = f"create view v{number} as select {made} from src{where}"
        return files

    ingest(version())
    for _ in range(6):
        graph = ingest(version())
        if len(list(graph.log().commits)) < 2:
            continue
        listed = {(c.what, c.name, c.source, c.kind if c.what == "edge" else None, c.change)
                  for c in graph.diff("HEAD~1").changes if c.what in ("dataset", "column", "edge")}  # fmt: skip
        assert marks(graph.report(diff="HEAD~1").graph) == listed


def test_a_selector_of_something_new_leaves_the_others_as_they_were(ingest):
    old = {"a.sql": "create table src (a int); create view old_view as select a from src"}
    ingest(old)
    graph = ingest({**old, "b.sql": "create view new_view as select a from src"})
    view = graph.report("old_view", "new_view", diff="HEAD~1").graph
    assert {one.name: one.change for one in view.datasets} == {"new_view": "added", "old_view": None}
    for selectors in ([], ["src", "old_view"]):
        view = graph.report(*selectors, exclude="new_view", diff="HEAD~1").graph
        assert {one.name: one.change for one in view.datasets} == {"old_view": None, "src": None}
    view = graph.report("new_view", diff="HEAD~1").graph
    assert {one.name: one.change for one in view.datasets} == {"new_view": "added"}
    for mistake in ("no.such", "++"):
        with pytest.raises(UsageError):
            graph.report("old_view", mistake, diff="HEAD~1")


def marks(view: LineageView) -> set[tuple[str, str, str | None, str | None, str]]:
    def text(ref: ViewNode) -> str:
        dataset = view.datasets[ref.dataset]
        return f"{dataset.name}.{'*' if ref.column < 0 else dataset.columns[ref.column].path}"

    found = {("dataset", one.name, None, None, one.change) for one in view.datasets if one.change}
    found |= {
        ("column", f"{d.name}.{c.path}", None, None, c.change) for d in view.datasets for c in d.columns if c.change
    }
    return found | {("edge", text(e.target), text(e.source), e.kind, e.change) for e in view.edges if e.change}


def test_a_version_compared_with_itself_has_no_marks_and_with_nothing_only_them():
    from govtool.report.union import union

    for seed in range(40):
        view = view_of(indexed(random_derivations(seed)))
        assert marks(union(view, view)) == set()
        again = union(LineageView((), (), ()), view)
        assert {one.change for one in again.edges} <= {"added"}
        gone = union(view, LineageView((), (), ()))
        assert {one.change for one in gone.edges} <= {REMOVED}
        assert gone.column_count == view.column_count


def test_layers_follow_the_edges_and_crossings_are_counted_right():
    chance = random.Random(3)
    for _ in range(60):
        count = chance.randint(1, 25)
        pairs = {(chance.randrange(count), chance.randrange(count)) for _ in range(chance.randint(0, 40))}
        found = place(count, pairs)
        acyclic = {(a, b) for a, b in pairs if a < b}
        ordered = place(count, acyclic)
        assert all(ordered.layers[a] < ordered.layers[b] for a, b in acyclic)
        assert sorted(zip(found.layers, found.ranks, strict=True)) == sorted(
            {(layer, rank) for layer, rank in zip(found.layers, found.ranks, strict=True)}
        )
        assert found == place(count, pairs)  # the same again
        assert min(found.layers) >= 0


def test_crossings_against_every_pair():
    chance = random.Random(9)
    for _ in range(80):
        left, right = list(range(chance.randint(1, 7))), list(range(10, 10 + chance.randint(1, 7)))
        edges = sorted({(chance.choice(left), chance.choice(right)) for _ in range(chance.randint(0, 14))})
        following = [[b for a, b in edges if a == node] for node in range(20)]
        truth = sum((a - c) * (b - d) < 0 for (a, b), (c, d) in combinations(edges, 2))
        assert crossings([left, right], following) == truth


def test_sweeps_untangle_what_can_be():
    pairs = [(i, 10 + (i * 3) % 10) for i in range(10)]
    assert place(20, pairs).crossings == 0


def test_ways_through_what_is_not_shown_are_one_edge():
    assert contracted([(0, 1), (1, 2), (2, 1), (2, 3)], [False, True, True, False]) == {(0, 3)}


def test_groups_are_zones_or_schemas():
    def group(name: str, zone: str | None = None) -> str:
        return group_of(DatasetView(name, "table", (), zone))

    assert group_of(DatasetView("query:12", "query", ())) == "queries"
    assert [group("a.b.c"), group("t"), group('"/x/y.csv"'), group("a.b", "gold")] == [
        "a.b",
        "default",
        "files",
        "gold",
    ]


def written_by(files: list[str], names: str = "m{}") -> LineageView:
    """A view of one table a file, each written from the same source, which nothing writes."""
    datasets = [DatasetView("src", "table", ()), *(DatasetView(names.format(i), "view", ()) for i in range(len(files)))]
    edges = [EdgeView(ViewNode(0, -1), ViewNode(i + 1, -1), "read", "rows", i) for i in range(len(files))]
    statements = [StatementView("select", "sql", file, 1, "f", None, "understood", "x") for file in files]
    return LineageView(tuple(datasets), tuple(edges), tuple(statements))


def test_many_datasets_without_a_schema_are_grouped_by_the_folders_of_their_files():
    many = [f"models/marts/{part}/{i}.sql" for part in ("a", "b") for i in range(MANY)]
    files = [*many, "models/staging/x.sql", "models/top.sql", "loose.sql"]
    assert groups_of(written_by(files)) == [
        "default",
        *["models/marts/a/"] * MANY,
        *["models/marts/b/"] * MANY,
        "models/staging/",
        "models/",
        "default",
    ]
    assert set(groups_of(written_by(files, "own.m{}"))) == {"default", "own"}
    assert set(groups_of(written_by(files[: MANY - 1]))) == {"default"}


def test_a_large_graph_stays_small_and_is_laid_out_at_once():
    columns = tuple(ColumnView(f"c{i}", "int") for i in range(10))
    datasets = tuple(DatasetView(f"s{i % 9}.t{i}", "view", columns) for i in range(1000))
    edges = tuple(
        EdgeView(ViewNode(i - 1 - i % 3, c), ViewNode(i, c), "identity", "copy", 0)
        for i in range(4, 1000)
        for c in range(10)
    )
    view = LineageView(datasets, edges, (StatementView("select", "sql", "a.sql", 1, "f", None, "understood", "x"),))
    assert len(json_block({"graph": view.body(), "drawing": drawing(view)})) < 3_000_000


def test_the_page_names_its_style_and_script_by_their_hashes_and_nothing_else(shop):
    page = shop.to_html("crm.*", title="<Crm> & co")
    policy = html.unescape(re.search('Content-Security-Policy" content="([^"]*)"', page)[1])
    style = re.search("<style>(.*?)</style>", page, re.DOTALL)[1]
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)[1]
    for name, text in (("style-src", style), ("script-src", script)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "&lt;Crm&gt; &amp; co" in page
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", script + style)
    assert not re.search(r"innerHTML|outerHTML|document\.write|insertAdjacentHTML|eval\(|new Function", script)
    assert not re.search(r"\son\w+\s*=|style=", page.split("<script")[0].split("</style>")[1])


def test_a_block_of_json_cannot_end_early_and_keeps_every_character():
    every = "".join(map(chr, range(0x3000))) + "</script><!--\ud800"
    block = json_block({"x": every})
    assert json.loads(block) == {"x": every}
    assert not re.search("[<>&\u2028\u202e\u200f]", block)
    block.encode()  # no lone halves of pairs


def test_the_table_for_readers_without_scripts(shop):
    text = fallback(shop.report("stg.users", "crm.users").graph)
    assert "<td>stg.users</td><td>view</td>" in text
    assert "<td>crm.users</td></tr>" in text
    hostile = LineageView((DatasetView("</noscript><script>\u202e", "view", ()),), (), ())
    assert "&lt;/noscript&gt;&lt;script&gt;\\u202e" in fallback(hostile)


# ---- the command


def test_the_command_writes_a_file_or_to_a_pipe(shop, tmp_path, capsys, monkeypatch):
    file = tmp_path / "x.html"
    assert main(["report", "html", "crm.*", "-o", str(file), "--store", shop.store]) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"wrote {file}: 7 datasets, 0.2 MB\n")
    assert file.read_text().startswith("<!DOCTYPE html>")
    assert main(["report", "html", "crm.*", "--store", shop.store]) == 0
    assert capsys.readouterr().out.rstrip("\n") == file.read_text().rstrip("\n")
    assert main(["report", "html", "no.such", "-o", str(file), "--store", shop.store]) == 2
    assert main(["report", "html", "--diff", "no-such", "-o", str(file), "--store", shop.store]) == 2
    assert main(["report", "html", "-o", str(tmp_path / "no" / "x.html"), "--store", shop.store]) == 2


# ---- notebooks


def test_every_answer_shows_itself_in_a_notebook(shop):
    for answer in (
        shop.impact("crm.users.email"),
        shop.ls(),
        shop.coverage(),
        shop.log(),
        shop.check(policy="pack:gdpr"),
    ):
        text = answer._repr_html_()
        assert text.count("<table") == 1
        assert all(f"<th>{name}</th>" in text for name in answer.fields)
    assert "commit 2" in shop.impact("crm.users.email")._repr_html_()
    assert "to_pandas() has all rows" in shop.ls(columns=True)._repr_html_()


def test_texts_of_others_are_escaped_in_a_notebook():
    answer = govtool.lineage('create view "<img src=x onerror=y>\u202e" as select "<b>" from t')
    text = notebook_table(answer.fields, answer.rows(), None)
    assert "<img" not in text
    assert "&lt;img src=x onerror=y&gt;\\u202e" in text


def test_the_report_is_a_frame_of_its_own_in_a_notebook(shop):
    text = shop.report("crm.*")._repr_html_()
    assert text.startswith('<iframe sandbox="allow-scripts allow-downloads" srcdoc="&lt;!DOCTYPE html&gt;')
    assert "allow-same-origin" not in text


def test_show_needs_a_notebook(shop, monkeypatch):
    with pytest.raises(UsageError, match="not a notebook") as failed:
        show(store=shop.store)
    assert failed.value.code == "usage.no-notebook"


def test_show_hands_the_report_to_the_notebook(shop, monkeypatch):
    import sys
    from types import ModuleType, SimpleNamespace

    shown = []
    shell, display = ModuleType("IPython"), ModuleType("IPython.display")
    shell.get_ipython = SimpleNamespace
    display.display = shown.append
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    assert govtool.show("crm.users+", store=shop.store, title="Users") is None
    assert shown[0].title == "Users"
    assert names_of(shown[0].graph) == names_of(shop.report("crm.users+").graph)


def test_the_magic_reads_the_sql_of_a_cell():
    class Shell:
        def register_magic_function(self, function, kind, name):
            self.magic = (function, kind, name)

    shell = Shell()
    load_ipython_extension(shell)
    function, kind, name = shell.magic
    assert (kind, name) == ("cell", "govtool")
    answer = function("--dialect snowflake", "create view v as select lower(email) as e from crm.users")
    assert [row[:2] for row in answer.rows()] == [("v.e", "crm.users.email")]
    with pytest.raises(UsageError, match="unrecognized"):
        cell_lineage("--nonsense", "select 1")
    assert govtool.load_ipython_extension is load_ipython_extension


def test_control_characters_are_written_out():
    """The page may go to a terminal: stdout is where it goes by default."""
    assert escaped("M\x1b[2J\x07\n<b>") == "M\\u001b[2J\\u0007\n&lt;b&gt;"
