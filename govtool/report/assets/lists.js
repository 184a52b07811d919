// The panel on the left, the search, the legend and the line at the bottom.

class Lists {
  constructor(graph, state, report) {
    Object.assign(this, { graph, state, report, list: byId("list"), tabs: byId("tabs") });
    this.pages = [["tables", "Tables", () => this.tables()]];
    if (report.findings) this.pages.push(["findings", "Findings", () => this.findings()]);
    if (report.diff) this.pages.push(["changes", "Changes", () => this.changes()]);
    if (report.erasure) this.pages.push(["erasure", "Erasure", () => this.erasure()]);
    if (report.sources) this.pages.push(["coverage", "Coverage", () => this.coverage()]);
    for (const [key, title] of [["trace", "Trace"], ["workflow", "Workflow"]]) {
      if (state.scenes.some((scene) => scene.tab === key)) this.pages.push([key, title, () => this.sceneList(key)]);
    }
    this.tabs.append(...this.pages.map(([key, title]) => el("button", { role: "tab", "data-tab": key }, title,
      key === "findings" ? el("span", { class: "number" }, report.findings.length) : "")));
  }

  show(key) {
    const page = this.pages.find(([one]) => one === key) || this.pages[0];
    this.state.tab = page[0];
    for (const tab of this.tabs.children) tab.setAttribute("aria-selected", tab.dataset.tab === page[0]);
    this.list.replaceChildren(...[page[2]()].flat(3).filter(Boolean));
  }

  // Datasets by zone; those that nothing makes, in the report or left out of it, are base tables.
  tables() {
    const { graph, state } = this, groups = new Map();
    graph.datasets.forEach((_, d) => {
      if (!graph.isShown(d)) return;
      const group = state.drawing.group[d];
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(d);
    });
    const bases = graph.datasets.filter((_, d) => graph.isShown(d) && graph.isBase(d)).length;
    const filter = el("label", { class: "check" }, el("input", { type: "checkbox", id: "bases" }), ` base tables only (${bases})`);
    filter.firstChild.checked = state.basesOnly;
    const items = [...groups].sort((a, b) => (state.drawing.groups[a[0]] < state.drawing.groups[b[0]] ? -1 : 1)).map(([group, members]) => {
      const chosen = members.filter((d) => !state.basesOnly || graph.isBase(d));
      if (!chosen.length) return "";
      const fold = el("details", { "data-group": group }, el("summary", {}, breakable(state.drawing.groups[group]),
        el("span", { class: "number" }, chosen.length)));
      const fill = () => { if (fold.open && fold.children.length === 1) fold.append(el("ul", { class: "plain" }, chosen.map((d) => this.table(d)))); };
      fold.addEventListener("toggle", fill);
      if (groups.size <= 12 && chosen.length <= 30) { fold.open = true; fill(); }
      return fold;
    });
    return [filter, items];
  }

  table(d) {
    const { graph } = this, dataset = graph.datasets[d], base = graph.isBase(d);
    return el("li", { class: dataset.change || "" }, el("a", { href: "#", "data-focus": d, title: dataset.name },
      el("i", { class: "sort" }, kindMark(dataset.kind)), splitName(dataset.name)[1]),
    base ? el("span", { class: "base", title: "base table: nothing that was read makes it" }, "base") : "",
    classesOf(graph, [d]).slice(0, 3).map((c) => chip(graph, c)));
  }

  findings() {
    const { findings } = this.report;
    if (!findings.length) return el("p", { class: "none" }, "No findings.");
    const by = new Map();
    findings.forEach((finding, i) => {
      if (!by.has(finding.rule)) by.set(finding.rule, []);
      by.get(finding.rule).push([finding, i]);
    });
    return [...by].map(([rule, found]) => el("details", { open: true }, el("summary", {}, rule, el("span", { class: "number" }, found.length),
      el("p", { class: "dim" }, found[0][0].title)), el("ul", { class: "plain" }, found.map(([finding, i]) => {
      const about = finding.accepted ? "accepted" : finding.verdict === "violated" ? finding.severity : finding.verdict;
      return el("li", {}, el("a", { href: "#", "data-finding": i, class: this.state.finding === i ? "current" : "" },
        el("span", { class: `level ${about}` }, about), el("span", { class: "name" }, finding.column)));
    }))));
  }

  changes() {
    const { diff } = this.report, commit = (one) => `${one.seq} (${one.id.slice(0, 7)})`;
    const head = el("p", { class: "dim" }, `${commit(diff.from)} → ${commit(diff.to)}`);
    const by = new Map();
    for (const change of diff.changes) {
      const key = `${change.what}s ${change.change}`;
      if (!by.has(key)) by.set(key, []);
      by.get(key).push(change);
    }
    if (!by.size) return [head, el("p", { class: "none" }, "Nothing changed.")];
    return [head, [...by].map(([key, found]) => el("details", { open: found.length < 30 }, el("summary", {}, key.replace("classs", "classes"),
      el("span", { class: "number" }, found.length)), el("ul", { class: "plain changes" }, found.slice(0, LIST_LIMIT).map((change) => {
      const node = this.graph.node(change.name);
      const name = change.source && change.what === "edge" ? `${change.source} → ${change.name}` : change.name;
      return el("li", { class: change.change, "data-what": change.what }, node < 0 ? name : el("a", { href: "#", "data-go": node }, name),
        change.before || change.after ? el("span", { class: "dim" }, ` ${[change.before, change.after].filter(Boolean).join(" → ")}`) : "");
    }))))];
  }

  // The scenes of a tab; the shown one with its own list.
  sceneList(tab) {
    const { scenes, scene, mode } = this.state, own = scenes.map((one, i) => [one, i]).filter(([one]) => one.tab === tab);
    const current = mode === "scene" && scene.tab === tab ? scene : null;
    const choice = own.length > 1 ? el("ul", { class: "plain" }, own.map(([one, i]) => el("li", {},
      el("a", { href: "#", "data-scene": i, class: one === current ? "current" : "" }, `${one.index + 1}. ${one.title()}`)))) : "";
    return [choice, current ? current.list() : ""];
  }

  // The tasks of an erasure plan as lanes, in the order to work through.
  erasure() {
    const lanes = new Map();
    for (const task of this.report.erasure.tasks) {
      const lane = task.order || 0;
      if (!lanes.has(lane)) lanes.set(lane, []);
      lanes.get(lane).push(task);
    }
    const order = [...lanes].sort((a, b) => (a[0] || Infinity) - (b[0] || Infinity));
    return [el("p", { class: "dim" }, `Subject: ${this.report.erasure.subjects.join(", ")}`),
      el("button", { "data-act": "show-erasure", class: "wide" }, "Show in the picture"),
      order.map(([lane, tasks]) => el("div", { class: "lane" }, el("h4", {}, lane ? `Step ${lane}` : "Nothing to do"),
        tasks.map((task) => {
          const node = this.graph.node(task.dataset);
          return el("div", { class: `task ${task.action}` }, el("span", { class: "action" }, task.action),
            node < 0 ? task.dataset : el("a", { href: "#", "data-go": node }, task.dataset), el("p", { class: "dim" }, task.why));
        })))];
  }

  coverage() {
    const { coverage, sources, folders } = this.report;
    const share = (one) => { const all = one.understood + one.partial + one.opaque + (one.unread || 0); return all ? one.understood / all : 1; };
    const bar = (one) => {
      const meter = el("meter", { min: 0, max: 1, low: 0.9, high: 0.99, optimum: 1, "aria-label": "coverage" });
      meter.value = share(one);
      return [meter, el("b", {}, `${(100 * share(one)).toFixed(1)}%`)];
    };
    const row = (name, one) => el("li", { class: "cover" }, el("span", { class: "name" }, name), bar(one),
      el("span", { class: "dim" }, `${one.understood} understood${one.partial ? `, ${one.partial} partial` : ""}${one.opaque ? `, ${one.opaque} not` : ""}`));
    return [el("ul", { class: "plain" }, row("all", coverage)), el("h4", {}, "Sources"),
      el("ul", { class: "plain" }, sources.map((one) => row(one.source, one))), el("h4", {}, "Folders"),
      el("ul", { class: "plain" }, folders.map((one) => el("li", { class: "cover" }, el("span", { class: "name" }, one.folder),
        el("span", { class: one.incomplete || one.errors ? "bad" : "dim" },
          `${count(one.statements, "statement")}${one.incomplete ? `, ${one.incomplete} incomplete` : ""}${one.errors ? `, ${count(one.errors, "error")}` : ""}`))))];
  }

  legend() {
    const line = (style, words) => {
      const svg = document.createElementNS(SVG, "svg"), path = document.createElementNS(SVG, "path");
      svg.setAttribute("width", "34");
      svg.setAttribute("height", "10");
      path.setAttribute("class", `wire ${style}`);
      path.setAttribute("d", "M1 5H33");
      svg.append(path);
      return el("span", {}, svg, words);
    };
    const { graph, state: { mode, scene } } = this;
    if (mode === "scene") {
      byId("legend").replaceChildren(...scene.legend().map(([style, words]) => line(style, words)));
      return;
    }
    const wires = this.state.isDiff ? [["added", "added"], ["removed", "removed"], ["changed", "changed"], ["value", "unchanged"]]
      : [["value", "C contributed"], ["reference", "R referenced"], ["both", "B both"], ["opaque", "U unknown"]];
    byId("legend").replaceChildren(...wires.map(([style, words]) => line(style, words)),
      ...graph.classes.slice(0, 12).map((name, c) => el("span", {}, chip(graph, c), ` ${name}`)),
      graph.classes.length > 12 ? `and ${graph.classes.length - 12} more classes` : "");
  }

  status() {
    const { report, graph } = this, shown = graph.datasets.filter((_, d) => graph.isShown(d));
    const columns = shown.reduce((sum, dataset) => sum + dataset.columns.length, 0), counts = report.coverage;
    if (!report.commit) return; // a graph in a notebook, of no version
    const all = counts.understood + counts.partial + counts.opaque + counts.unread;
    const cover = all ? `${((100 * counts.understood) / all).toFixed(1)}%` : "100%";
    byId("status").replaceChildren(el("span", {}, `commit ${report.commit.seq} (${report.commit.id.slice(0, 7)}) · ${report.commit.time}`),
      el("span", {}, `${count(shown.length, "dataset")}, ${count(columns, "column")}, ${count(graph.edges.length, "edge")}`),
      el("span", { class: counts.opaque + counts.unread ? "bad" : "" }, `coverage ${cover}`),
      report.selection.length ? el("span", {}, `only ${report.selection.join(" ")}`) : "", el("span", { class: "dim" }, `govtool ${report.govtool}`));
  }

  // Datasets and columns whose names have all words of a query; those that begin with it first.
  search(query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean), found = [], { graph } = this;
    if (!words.length) return found;
    if (!this.names) {
      this.names = [];
      graph.datasets.forEach((dataset, d) => {
        if (!graph.isShown(d)) return;
        const name = dataset.name.toLowerCase();
        this.names.push([name, graph.base[d]]);
        for (const node of graph.columns(d)) if (!graph.unknown[node]) this.names.push([`${name}.${graph.path[node].toLowerCase()}`, node]);
      });
    }
    for (const [name, node] of this.names) {
      if (!words.every((word) => name.includes(word))) continue;
      const own = graph.isRows(node) ? splitName(name)[1] : graph.path[node].toLowerCase(), word = words[words.length - 1];
      const score = (own === word ? 0 : own.startsWith(word) ? 1 : own.includes(word) ? 2 : 3) * 2 + (graph.isRows(node) ? 0 : 1);
      found.push([score, name, node]);
    }
    return found.sort((a, b) => a[0] - b[0] || (a[1] < b[1] ? -1 : 1)).slice(0, 50).map(([, , node]) => node);
  }
}
