// The page: its state, which is also in the address, and what it shows.

const LEGIBLE = 0.55;

class Page {
  constructor(report) {
    this.report = report;
    this.graph = new Graph(report.graph);
    const graph = this.graph;
    const statements = new Map(graph.statements.map((one) => [evidenceKey(one), one]));
    this.state = { mode: "map", open: new Set(), shown: new Set(), expanded: new Set(), whole: new Set(), picked: -1, to: -1,
      finding: -1, lit: null, tab: "", basesOnly: false, drawing: report.drawing, isDiff: Boolean(report.diff),
      statementOf: (evidence) => statements.get(evidenceKey(evidence)), findingsIn: (members) => this.findingsIn(members) };
    this.findingCounts = this.countFindings();
    this.impacts = new Map();
    this.picture = new Picture(graph, this.state);
    this.details = new Details(graph, this.state);
    this.scenes = [...(report.traces || []).map((data, i) => new TraceScene("trace", i, data, graph)),
      ...(report.workflows || []).map((data, i) => new WorkflowScene("workflow", i, data, graph))];
    this.state.scenes = this.scenes;
    this.lists = new Lists(graph, this.state, report);
    this.visible = graph.datasets.map((_, d) => d).filter((d) => graph.isShown(d));
    this.listen();
    this.lists.status();
    if (!this.restore()) this.start();
    this.ready = true;
  }

  start() {
    this.lists.show(this.report.diff ? "changes" : "tables");
    if (this.report.diff && this.showChanges()) return;
    if (this.visible.length <= 150) this.openAll();
    if (this.scenes.length) {
      this.showScene(this.scenes[0]);
      return;
    }
    this.redraw();
    this.picture.fit();
    if (!this.visible.length) {
      byId("empty").hidden = false;
      byId("empty").textContent = "There is nothing in this graph yet.";
    }
  }

  openAll() { this.report.drawing.groups.forEach((_, group) => this.state.open.add(group)); }

  // The datasets that changed with those beside them, if anything did.
  showChanges() {
    const { graph, state } = this, changed = new Set();
    graph.datasets.forEach((dataset, d) => {
      if (graph.isShown(d) && (dataset.change || dataset.columns.some((column) => column.change))) changed.add(d);
    });
    graph.near.down.forEach((targets, a) => targets.forEach((marks, b) => {
      if (marks & (ADDED | REMOVED | CHANGED)) { changed.add(a); changed.add(b); }
    }));
    if (!changed.size || changed.size > 120) return false;
    state.mode = "focus";
    state.shown = changed;
    if (changed.size <= 30) state.expanded = new Set(changed);
    this.redraw();
    this.picture.fit();
    return true;
  }

  countFindings() {
    const found = new Map();
    for (const finding of this.report.findings || []) {
      const node = this.graph.node(finding.column);
      if (node >= 0) found.set(this.graph.of[node], (found.get(this.graph.of[node]) || 0) + 1);
    }
    return found;
  }

  findingsIn(members) { return members.reduce((sum, d) => sum + (this.findingCounts.get(d) || 0), 0); }

  // ---- what is drawn and lit

  redraw(anchor) {
    this.hovered = -1;
    const scene = this.scene();
    this.picture.show(scene ? scene.arrange() : new Arrangement(this.graph, this.report.drawing, this.state), anchor);
    this.showLevels(scene);
    this.lists.legend();
    this.light();
    this.save();
  }

  // The scene that is shown instead of the lineage.
  scene() { return this.state.mode === "scene" ? this.state.scene : null; }

  showLevels(scene) {
    const names = scene ? ["Modules", "Tuples", "Operators"] : ["Zones", "Datasets", "Columns"];
    byId("levels").hidden = Boolean(scene) && !scene.canZoom;
    [...byId("levels").children].forEach((button, i) => {
      button.textContent = names[i];
      button.title = `${names[i]} (${i + 1})`;
      button.setAttribute("aria-pressed", button.dataset.level === this.level());
    });
  }

  level() {
    const { state } = this;
    if (this.scene()) return state.scene.canZoom ? state.scene.level() : "";
    if (state.mode === "focus") return "";
    return state.expanded.size > this.visible.length / 2 ? "columns" : state.open.size ? "datasets" : "zones";
  }

  impact(node, side) {
    const key = `${node} ${side}`, { graph } = this;
    if (!this.impacts.has(key)) {
      const most = Math.max(4, Math.min(60, Math.floor(1e6 / graph.count))); // one takes 48 bytes a node
      if (this.impacts.size >= most) this.impacts.delete(this.impacts.keys().next().value);
      this.impacts.set(key, graph.impact(node, side === "up"));
    }
    return this.impacts.get(key);
  }

  // Every node on the ways of a column or dataset, with its role and its side.
  litBy(node) {
    const { graph } = this, found = new Map();
    for (const [side, mark] of [["down", DOWN], ["up", UP]]) {
      const impact = this.impact(node, side);
      for (const [one, entry] of impact.entries) { // what only its rows imply is on no way itself: no wire leads to it
        found.set(one, (found.get(one) || 0) | graph.roles(impact, one) | (entry.implied ? 0 : mark));
      }
    }
    const own = graph.isRows(node) ? [node, ...graph.columns(graph.of[node])] : [node];
    for (const one of own) found.set(one, VALUE | UP | DOWN);
    return found;
  }

  litByPath(edges, names) {
    const found = new Map(), on = new Set(edges), { graph } = this;
    for (const e of edges) {
      for (const node of [graph.source[e], graph.target[e]]) found.set(node, (found.get(node) || 0) | graph.role[graph.kind[e]]);
    }
    for (const name of names) if (graph.node(name) >= 0 && !found.has(graph.node(name))) found.set(graph.node(name), VALUE);
    return [found, edges.length ? (_a, _b, way) => way.every((e) => on.has(e)) : () => true];
  }

  light(hover) {
    const { state } = this;
    if (this.scene()) {
      const key = typeof hover === "string" ? hover : state.key;
      this.picture.lightItems(key ? state.scene.reach(key) : null);
      return;
    }
    const node = hover !== undefined && hover >= 0 ? hover : state.picked;
    if (state.onPath && !(hover >= 0)) {
      this.picture.light(...state.onPath);
      return;
    }
    if (node < 0) {
      state.lit = null;
      this.picture.light(null);
      return;
    }
    const lit = this.litBy(node);
    if (!(hover >= 0)) state.lit = lit;
    this.picture.light(lit, (a, b) => (lit.get(a) & lit.get(b) & (UP | DOWN)) !== 0);
  }

  // ---- what users do

  pick(node, reveal) {
    const { state, graph } = this;
    Object.assign(state, { picked: node, to: -1, finding: -1, onPath: null });
    this.chosen();
    const down = this.impact(node, "down"), up = this.impact(node, "up");
    if (graph.isRows(node)) this.details.dataset(graph.of[node], down, up);
    else this.details.column(node, down, up);
    this.light();
    if (reveal) this.picture.reveal(`d${graph.of[node]}`);
    this.save();
  }

  clear() {
    const { state } = this;
    if (state.choosing) {
      this.chosen();
      return;
    }
    Object.assign(state, { picked: -1, to: -1, finding: -1, onPath: null, key: "" });
    this.details.welcome();
    this.light();
    this.save();
  }

  // Shows a dataset with its sources and readers, one hop each way.
  focus(d) {
    const { state, graph } = this;
    Object.assign(state, { mode: "focus", shown: new Set([d, ...graph.near.up[d].keys(), ...graph.near.down[d].keys()]),
      expanded: new Set([d]), picked: -1, onPath: null, lanes: null });
    this.redraw();
    this.pick(graph.base[d]);
    this.picture.fit();
    this.picture.reveal(`d${d}`);
  }

  // Goes to a column or dataset: in the picture if it is there, else by focusing its dataset.
  go(node) {
    const { state, graph } = this, d = graph.of[node];
    if (this.scene()) {
      this.focus(d);
      return;
    }
    if (this.picture.arrangement.at.get(`d${d}`) === undefined) {
      state.lanes = null;
      if (state.mode === "focus") state.shown.add(d);
      else state.open.add(this.report.drawing.group[d]);
    }
    if (!graph.isRows(node)) state.expanded.add(d);
    state.picked = node;
    state.lit = this.litBy(node);
    this.redraw();
    this.pick(node, true);
  }

  toggle(d) {
    const { state } = this;
    if (state.expanded.has(d)) state.expanded.delete(d);
    else state.expanded.add(d);
    state.whole.delete(d);
    this.redraw(`d${d}`);
  }

  hop(d, side) {
    const { state, graph } = this, near = [...graph.near[side][d].keys()];
    state.lanes = null;
    if (state.mode === "map") {
      for (const one of near) state.open.add(this.report.drawing.group[one]);
    } else {
      const hidden = near.filter((one) => !state.shown.has(one));
      if (hidden.length) hidden.forEach((one) => state.shown.add(one));
      else near.forEach((one) => { if (this.hangsOn(one, d)) state.shown.delete(one); });
    }
    this.redraw(`d${d}`);
  }

  // Whether a dataset is shown for the sake of another only.
  hangsOn(one, d) {
    const { state, graph } = this;
    const others = [...graph.near.up[one].keys(), ...graph.near.down[one].keys()].filter((other) => state.shown.has(other));
    return others.every((other) => other === d) && one !== this.graph.of[state.picked];
  }

  // All datasets on the ways of what is picked, open where that stays legible.
  ways() {
    const { state, graph } = this;
    if (state.picked < 0) return;
    const lit = this.litBy(state.picked), datasets = new Set([...lit.keys()].map((node) => graph.of[node]));
    Object.assign(state, { mode: "focus", shown: datasets, lit, onPath: null, lanes: null,
      expanded: new Set(datasets.size <= 60 ? datasets : [graph.of[state.picked]]) });
    this.redraw();
    this.picture.fit(LEGIBLE);
    this.picture.reveal(`d${graph.of[state.picked]}`);
  }

  pathTo(to) {
    const { state, graph } = this, from = state.picked;
    let way = graph.shortest(from, to), ends = [from, to];
    if (!way) {
      const back = graph.shortest(to, from);
      if (back) [way, ends] = [back, [to, from]];
    }
    state.to = to;
    this.chosen();
    state.onPath = way ? this.litByPath(way.edges, ends.map((node) => graph.name(node))) : null;
    this.details.path(...ends, way);
    this.showOnPath();
    this.save();
  }

  showOnPath() {
    const { state, graph } = this;
    if (!state.onPath) {
      this.light();
      return;
    }
    const datasets = new Set([...state.onPath[0].keys()].map((node) => graph.of[node]).filter((d) => graph.isShown(d)));
    state.lit = state.onPath[0];
    Object.assign(state, { mode: "focus", shown: datasets, lanes: null, expanded: new Set(datasets) });
    this.redraw();
    this.picture.fit(LEGIBLE);
  }

  showFinding(i) {
    const { state, graph } = this, finding = this.report.findings[i];
    if (!finding) return;
    Object.assign(state, { finding: i, picked: -1, to: -1 });
    const edges = [], names = [finding.column, ...(finding.source ? finding.source.split(" + ") : []), ...finding.paths.flat()];
    for (const step of finding.steps) {
      const source = graph.node(step.source), target = graph.node(step.target);
      names.push(step.source, step.target);
      if (source < 0) continue;
      for (const e of graph.outOf(source)) if (graph.target[e] === target) edges.push(e);
    }
    const [lit] = this.litByPath(edges, names.filter((name) => graph.node(name) >= 0));
    const pairs = new Set(finding.paths.flatMap((path) => path.slice(1).map((name, at) => `${path[at]}>${name}`)));
    state.onPath = [lit, (a, b) => pairs.has(`${graph.name(a)}>${graph.name(b)}`)];
    this.details.finding(finding);
    this.showOnPath();
    this.lists.show("findings");
    this.save();
  }

  showErasure() {
    const { state, graph } = this, lanes = new Map();
    for (const task of this.report.erasure.tasks) {
      const node = graph.node(task.dataset);
      if (node >= 0) lanes.set(graph.of[node], task);
    }
    Object.assign(state, { mode: "focus", shown: new Set(lanes.keys()), lanes, expanded: new Set(), onPath: null, picked: -1 });
    this.details.welcome();
    this.redraw();
    this.picture.fit();
  }

  setLevel(level) {
    const { state } = this;
    if (this.scene()) {
      if (state.scene.canZoom) this.rezoom(() => state.scene.setLevel(level));
      return;
    }
    Object.assign(state, { mode: "map", open: new Set(), expanded: new Set(), onPath: null, lit: state.picked >= 0 ? state.lit : null });
    if (level !== "zones") this.openAll();
    if (level === "columns") state.expanded = new Set(this.visible);
    this.redraw();
    this.picture.fit();
  }

  // Edges near a point of the picture: what lies between two boxes.
  wireAt(x, y) {
    const { arrangement, view } = this.picture, px = (x - view.x) / view.k, py = (y - view.y) / view.k;
    let best = null, least = (8 / view.k) ** 2;
    for (const { a, b } of arrangement.edges) {
      const from = arrangement.items[a], to = arrangement.items[b];
      const x1 = from.x + from.w, y1 = from.y + port(from), x2 = to.x, y2 = to.y + port(to);
      if (px < Math.min(x1, x2) - 80 || px > Math.max(x1, x2) + 80) continue;
      const far = distance(route(arrangement, x1, y1, x2, y2), px, py);
      if (far < least) { least = far; best = [from, to]; }
    }
    return best;
  }

  showWire([from, to]) {
    const { graph } = this, members = (item) => (item.d === undefined ? item.members : [item.d]), ends = new Set(members(to));
    const found = new Set();
    for (const d of members(from)) {
      for (let node = graph.base[d]; node < graph.base[d + 1]; node++) {
        for (const [target, , , edges] of throughTemporary(graph, node)) if (ends.has(graph.of[target])) edges.forEach((e) => found.add(e));
      }
    }
    this.details.edges(from, to, [...found]);
  }
}

function evidenceKey(one) { return `${one.fingerprint}\n${one.file}\n${one.line}\n${one.run || ""}`; }
