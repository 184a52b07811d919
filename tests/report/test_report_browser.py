"""The report in a real Chromium: open, search, focus, light up, find a path; hostile texts stay texts."""

from __future__ import annotations

import json
import re
import time

import pytest
from report_graphs import indexed, random_derivations, view_of

from govtool.query.changes.impact import expand, impact
from govtool.query.path import paths

LISTED = """[...document.querySelectorAll('.reach[data-side=%s] li')].map(
    (li) => [li.dataset.column, li.dataset.verdict || null, Number(li.dataset.hops)])"""


def find(page, words: str) -> None:
    """Search for a column or table, as a user does, and take the first result."""
    page.press("/")
    page.type(words)
    page.press("Enter")


def listed(page, side: str) -> set[tuple[str, str | None, int]]:
    """The columns that the panel lists on one side, with their verdicts and hops."""
    page.run("document.querySelectorAll('.reach [data-act=all]').forEach((one) => one.click())")
    return {tuple(one) for one in page.run(LISTED % side)}


def entries(answer) -> set[tuple[str, str | None, int]]:
    return {(one["column"], one["verdict"], one["hops"]) for one in answer.to_dict()["columns"]}


def test_a_column_is_found_and_lights_up_as_impact_lists_it(shop, opened):
    page = opened(shop.report())
    find(page, "crm.users email")
    assert page.run("document.querySelector('#right h2').textContent") == "email"
    assert listed(page, "down") == entries(shop.impact("crm.users.email"))
    assert listed(page, "up") == entries(shop.impact("crm.users.email", upstream=True))
    page.press("w")  # all of its ways
    lit = set(
        page.run("[...document.querySelectorAll('.row.on')].map((row) => govtool.page.graph.name(+row.dataset.node))")
    )
    reached = entries(shop.impact("crm.users.email")) | entries(shop.impact("crm.users.email", upstream=True))
    assert lit == {name for name, _, _ in reached if not name.endswith(".*")} | {"crm.users.email"}
    assert page.run("document.querySelectorAll('#lit path').length") >= 2  # contributed and referenced apart


@pytest.mark.parametrize("name", ["mart.customers.age", "stg.users", "mart.dedup_users.id", "ml.churn", "crm.teams"])
def test_other_columns_and_whole_datasets_as_well(shop, opened, name):
    page = opened(shop.report())
    page.run(f"govtool.page.go(govtool.page.graph.node({json.dumps(name)}))")
    assert listed(page, "down") == entries(shop.impact(name))
    assert listed(page, "up") == entries(shop.impact(name, upstream=True))


def test_a_table_whose_sources_are_left_out_is_no_base_table(shop, opened):
    bases = "[...document.querySelectorAll('#list .base')].map((one) => one.parentElement.querySelector('a').title)"
    assert opened(shop.report("mart.customers", "crm.users")).run(bases) == ["crm.users"]


def test_the_walks_of_the_page_are_those_of_impact_on_random_graphs(shop, opened):
    page = opened(shop.report("crm.teams"))
    differing = []
    for seed in range(120):
        index = indexed(random_derivations(seed))
        view = view_of(index)
        names = [index.name(n) for n in range(index.node_count) if not index.is_elided(index.node_dataset[n])]
        wanted = [name for name in names if not name.endswith((".*", ".?"))]
        wanted += sorted({name[:-2] for name in names if name.endswith(".*")})
        found = page.run(
            f"(() => {{ const g = new govtool.Graph({json.dumps(view.body())});"
            f"const one = (name, up) => [...g.impact(g.node(name), up).entries].map("
            f"([n, e]) => [g.name(n), e.verdict, e.hops]).sort();"
            f"return {json.dumps(wanted)}.map((name) => [one(name, false), one(name, true)]); }})()"
        )
        for name, sides in zip(wanted, found, strict=True):
            for direction, side in zip(("down", "up"), sides, strict=True):
                result = impact(index, name, direction=direction)
                truth = {
                    (one.column, None if one.verdict is None else one.verdict.label, one.hops)
                    for one in expand(index, result)
                }
                if {tuple(one) for one in side} != truth:
                    differing.append((seed, name, direction, sorted(truth ^ {tuple(one) for one in side})))
    assert differing == []


def test_a_path_is_as_long_as_that_of_govtool_path(shop, opened):
    page = opened(shop.report())
    find(page, "crm.users email")
    page.press("p")
    page.type("birthdays.csv email")
    page.press("Enter")
    way = shop.path("crm.users.email", '"/exports/birthdays.csv".email').ways[0]
    assert page.run("document.querySelector('[data-hops].hops-line').dataset.hops") == str(way.length)
    steps = page.run("[...document.querySelectorAll('.steps > li > p')].map((p) => p.textContent)")
    assert [step.split()[0] for step in steps] == list(way.nodes[:-1])
    assert "CREATE OR REPLACE VIEW stg.users" in page.run("document.querySelector('.steps pre').textContent")
    assert page.run("document.querySelectorAll('.row.on').length") == len(way.nodes)


def test_paths_between_all_columns_of_random_graphs(shop, opened):
    page = opened(shop.report("crm.teams"))
    for seed in range(25):
        index = indexed(random_derivations(1000 + seed))
        names = [
            index.name(n)
            for n in range(index.node_count)
            if not index.is_elided(index.node_dataset[n]) and not index.is_rows(n) and not index.is_unknown(n)
        ]
        found = page.run(
            f"(() => {{ const g = new govtool.Graph({json.dumps(view_of(index).body())}), names = {json.dumps(names)};"
            "return names.map((a) => names.map((b) => { const way = a === b ? null : g.shortest(g.node(a), g.node(b));"
            " return way && way.hops; })); })()"
        )
        for start, row in zip(names, found, strict=True):
            for end, hops in zip(names, row, strict=True):
                if start != end:
                    ways = paths(index, start, end, 1).ways
                    assert hops == (ways[0].length if ways else None), (seed, start, end)


def test_one_more_hop_a_click(shop, opened):
    page = opened(shop.report())
    find(page, "reporting.matched_users")
    shown = "[...govtool.page.state.shown].map((d) => govtool.page.graph.datasets[d].name)"
    first = set(page.run(shown))
    name = "reporting.matched_users"
    assert first == {name, *hop(shop, name, upstream=True), *hop(shop, name, upstream=False)}
    page.click('.box[data-d] .hop.up[title^="Show"]')
    more = set(page.run(shown)) - first
    assert more
    assert any(more == hop(shop, name, upstream=True) - first for name in first)


def hop(graph, name: str, *, upstream: bool) -> set[str]:
    """The datasets one hop up or down."""
    found = graph.impact(name, depth=1, upstream=upstream).to_dict()["columns"]
    return {one["dataset"] for one in found} - {name}


def test_a_finding_shows_its_path_with_the_sql_of_each_hop(shop, opened):
    report = shop.report(policy="pack:gdpr", today="2026-11-22")
    finding = next(one for one in report.findings.findings if len(one.path) > 3)
    page = opened(report)
    page.click("[data-tab=findings]")
    number = [one["fingerprint"] for one in report.to_dict()["findings"]].index(finding.fingerprint)
    page.click(f'[data-finding="{number}"]')
    lit = page.run("[...document.querySelectorAll('.row.on')].map((row) => govtool.page.graph.name(+row.dataset.node))")
    assert set(lit) == set(finding.path)
    assert page.run("document.querySelectorAll('.steps > li').length") == len(finding.steps)
    assert page.run("document.querySelectorAll('.steps pre').length") >= 1
    assert page.run("document.querySelector('#right h2').textContent") == finding.rule


def test_the_address_keeps_the_state(shop, opened):
    page = opened(shop.report())
    find(page, "crm.users email")
    page.press("w")
    page.run("govtool.page.saveNow()")
    before = page.run(
        "[location.href, document.querySelectorAll('.box').length, document.querySelectorAll('.row.on').length]"
    )
    page.send("Page.navigate", url="about:blank")
    page.open(before[0])
    after = page.run(
        "[location.href, document.querySelectorAll('.box').length, document.querySelectorAll('.row.on').length]"
    )
    assert after == before


def test_levels_keys_and_both_schemes(shop, opened):
    page = opened(shop.report())
    page.press("1")
    zones = page.run("document.querySelectorAll('.box.group').length")
    assert (
        zones
        == len({name.rpartition(".")[0] for name in shop.report().to_arrow()["dataset"].to_pylist() if "/" not in name})
        + 1
    )
    page.press("3")
    assert page.run("govtool.page.state.expanded.size") == len(list(shop.report().rows()))
    page.press("2")
    assert page.run("document.querySelectorAll('.box.dataset').length") == len(list(shop.report().rows()))
    page.run("document.querySelector('.box .head').focus()")
    page.press("ArrowRight")
    assert page.run("document.activeElement.className") == "head"
    page.press("Enter")
    assert page.run("document.querySelectorAll('.row').length") > 0
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.run(background)
    page.press("d")
    assert page.run(background) != light


HOSTILE = (
    "</script><script>window.hacked=1</script>",
    '"><img src=x onerror=window.hacked=1>',
    "\u202egro.live\u202c",
    "<!--<script>",
    "a\u2028b\u2029c",
    "{{constructor.constructor('window.hacked=1')()}}",
    "javascript:window.hacked=1//",
    "@DATA@ &lt;b&gt; ' \\\\ \U0001f600",
)


def test_hostile_names_and_sql_are_inert(ingest, opened):
    names = ['"' + text.replace('"', '""') + '"' for text in HOSTILE]
    files = {
        f"f{i}/<b>{i}.sql": f"create view {name}.v as select {name} as {name} /* {text} */ from {name}.base b where {name} > '{i}'"
        for i, (name, text) in enumerate(zip(names, HOSTILE, strict=True))
    }
    graph = ingest(files)
    report = graph.report(title='</title><script>window.hacked=1</script>"\u202e')
    text = report.to_html()
    assert text.count("<script") == 2
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u2028\u2029]", text)
    page = opened(report)
    assert page.run("govtool.page.report") == report.to_dict()  # nothing lost on the way
    page.press("3")
    for node in range(page.run("govtool.page.graph.count")):
        page.run(f"govtool.page.go({node})")
        page.hover(f'.row[data-node="{node}"], .box')
    page.click("[data-tab=coverage]")
    find(page, "script v")
    page.press("w")
    assert page.run("window.hacked") is None
    assert page.run("document.querySelectorAll('img, script').length") == 2  # those of the page
    turned = next(one.name for one in graph.ls().entries if "\u202e" in one.name)
    page.run(f"govtool.page.go(govtool.page.graph.node({json.dumps(turned)}))")
    shown = page.run("document.body.innerText + document.documentElement.outerHTML.split('<script')[0]")
    assert "\u202e" not in shown
    assert "\\u202egro.live\\u202c" in shown
    assert page.messages == []  # no violation of the policy, no error
    assert [one for one in page.requests if not one.startswith("file:")] == []


def test_the_policy_of_the_page_forbids_what_it_does_not_need(shop, opened):
    page = opened(shop.report("crm.teams"))
    tried = page.run(
        "(async () => { const found = []; const tries = {"
        " fetch: () => fetch('https://example.org/'), "
        " eval: () => Promise.resolve(eval('1')), "
        " html: () => Promise.resolve(document.body.innerHTML = '<b>x</b>'), "
        " style: () => { const s = document.createElement('style'); s.textContent = '* { color: red }';"
        "   document.head.append(s); return s.sheet ? Promise.resolve() : Promise.reject(); }, "
        " script: () => { const s = document.createElement('script'); s.text = 'window.ran = 1';"
        "   document.head.append(s); return window.ran ? Promise.resolve() : Promise.reject(); } };"
        " for (const [name, one] of Object.entries(tries)) {"
        "   try { await one(); found.push(name); } catch { /* forbidden */ } } return found; })()"
    )
    assert tried == []


def test_what_changed_between_two_versions(ingest, opened):
    graph = ingest({"v.sql": "create table src (a int, b int); create view v as select a, b as c from src"})
    graph = ingest({"v.sql": "create table src (a int, b int); create view v as select upper(a) as a, b as d from src;"
                    "create view w as select a from v"})  # fmt: skip
    page = opened(graph.report(diff="HEAD~1"))
    marks = page.run("[...document.querySelectorAll('.row.added, .row.removed, .row.changed')].map("
                     "(row) => [govtool.page.graph.name(+row.dataset.node), row.classList[1]]).sort()")  # fmt: skip
    assert marks == [["v.c", "removed"], ["v.d", "added"], ["w.a", "added"]]
    assert page.run("[...document.querySelectorAll('.box.added')].length") == 1
    assert page.run(
        "document.querySelector('.wire.removed') !== null && document.querySelector('.wire.added') !== null"
    )
    assert page.run("document.querySelectorAll('.changes li').length") == len(graph.diff("HEAD~1").changes)
    page.run("govtool.page.go(govtool.page.graph.node('src.b'))")
    assert listed(page, "down") == entries(graph.impact("src.b"))  # what is gone does not count


def test_an_empty_graph_and_a_page_without_scripts(ingest, page, tmp_path):
    graph = ingest({"a.sql": "create table t (x int)"})
    file = tmp_path / "r.html"
    file.write_text(graph.to_html(), encoding="utf-8")
    page.open(file.as_uri())
    assert page.run("document.querySelectorAll('.box').length") == 1
    page.send("Emulation.setScriptExecutionDisabled", value=True)
    page.send("Page.navigate", url=file.as_uri())
    page.send("Emulation.setScriptExecutionDisabled", value=False)
    shown = ""
    for _ in range(200):  # the page may not be there yet
        shown = page.run("document.documentElement?.outerHTML ?? ''")
        if "noscript" in shown:
            break
        time.sleep(0.05)
    assert "noscript" in shown


def test_contributed_referenced_and_both_are_told_apart(ingest, opened):
    ddl = "create table t (a int, b int, c int, d int); create table u (k int, m int);"
    view = "create view v as select t.a as x, t.b, case when u.m > 0 then 1 end as s from t join u on t.b = u.k where t.c > 1;"
    graph = ingest({"v.sql": f"{ddl} {view} create view w as select x, b from v"})
    page = opened(graph.report())
    roles = (
        "[...document.querySelectorAll('.reach[data-side=%s] li')].map((li) => "
        "[li.dataset.column, li.querySelector('.role').textContent])"
    )

    def letters(name: str, side: str) -> dict[str, str]:
        page.run(f"govtool.page.go(govtool.page.graph.node({json.dumps(name)}))")
        return {column: letter for column, letter in page.run(roles % side) if not column.endswith(".*")}

    assert letters("v.x", "up") == {"t.a": "C", "t.b": "R", "t.c": "R", "u.k": "R"}
    assert letters("v.b", "up")["t.b"] == "B"
    assert letters("v.s", "up")["u.m"] == "C"
    assert letters("w.b", "up")["t.b"] == "B"
    assert letters("t.b", "down") == {"v.b": "B", "v.s": "R", "v.x": "R", "w.b": "B", "w.x": "R"}
    assert letters("t.c", "down") == dict.fromkeys(("v.b", "v.s", "v.x", "w.b", "w.x"), "R")
    assert letters("t.a", "down") == {"v.x": "C", "w.x": "C"}


def test_many_sources_of_one_table_fill_the_window_instead_of_one_column(ingest, opened):
    arms = " union all ".join(f"select a from s{n}.t" for n in range(150))
    page = opened(ingest({"v.sql": f"create view m.v as {arms}"}).report())
    box = page.run("govtool.page.picture.arrangement.bounds")
    assert 1 <= (box["right"] - box["left"]) / (box["bottom"] - box["top"]) <= 3
    places = page.run("govtool.page.picture.arrangement.items.map((one) => [one.x, one.y, one.w, one.h])")
    assert len(places) == 151
    overlaps = [
        (one, other)
        for at, one in enumerate(places)
        for other in places[:at]
        if abs(one[0] - other[0]) < one[2] and abs(one[1] - other[1]) < one[3]
    ]
    assert not overlaps
