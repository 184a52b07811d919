// A workflow as a scene: invocations of modules as boxes, or zoomed in, with every tuple, operator and value.

const INNER = { m: "invocation", i: "tuple in", o: "tuple out", s: "state tuple", op: "operator", val: "value", wi: "input record", st: "state record", zoom: "invocation, zoomed out" };
const NODE = { width: 132, height: 30 };

// The nodes of a provenance graph as arrays, and its views: ZoomOut and ZoomIn of Lipstick (Def. 4.1), as
// govtool.workflow.zoom has them. A view is the fine graph and a set of modules; the graph itself never changes.
class FineGraph {
  constructor(fine) {
    Object.assign(this, fine);
    this.count = fine.type.length;
    this.out = Array.from({ length: this.count }, () => []);
    this.into = Array.from({ length: this.count }, () => []);
    fine.source.forEach((a, e) => { this.out[a].push(fine.target[e]); this.into[fine.target[e]].push(a); });
  }

  // Per node whether a view leaves it out.
  hidden(zoomed) {
    const mine = this.module.map((module) => zoomed.has(module)), inside = this.inside(mine);
    if (!mine.includes(true)) return inside;
    const hidden = inside.map((one, n) => one || (mine[n] && this.type[n] === "s"));
    const states = range(0, this.count).filter((n) => this.type[n] === "st" && this.onlyFor(n, hidden));
    for (const n of states) hidden[n] = true;
    return hidden;
  }

  // Nodes behind the inputs and states of modules, up to their outputs; and constants that only these use.
  inside(mine) {
    const found = new Array(this.count).fill(false), enters = this.type.map((type) => type === "i" || type === "s");
    const closed = (n) => this.type[n] === "o" || (enters[n] && !mine[n]);
    const stack = range(0, this.count).filter((n) => enters[n] && mine[n]);
    for (const n of stack) found[n] = true;
    while (stack.length) {
      for (const n of this.out[stack.pop()]) if (!found[n] && !closed(n)) { found[n] = true; stack.push(n); }
    }
    for (let n = 0; n < this.count; n++) if (enters[n] || this.type[n] === "m") found[n] = false;
    if (!mine.includes(true)) return found;
    const free = this.fromConstants();
    for (let n = 0; n < this.count; n++) if (free[n] && mine[n] && !this.out[n].length) found[n] = true;
    for (let more = true; more;) {
      const next = range(0, this.count).filter((n) => free[n] && !found[n] && this.onlyFor(n, found));
      for (const n of next) found[n] = true;
      more = next.length > 0;
    }
    return found;
  }

  // Operators and values that no tuple leads to: made of constants, or of the invocation alone.
  fromConstants() {
    if (this.free) return this.free;
    const inner = (n) => this.type[n] === "op" || this.type[n] === "val", without = (one) => this.type[one] === "m";
    const free = range(0, this.count).map((n) => inner(n) && this.into[n].every(without));
    const stack = range(0, this.count).filter((n) => free[n]);
    while (stack.length) {
      for (const n of this.out[stack.pop()]) {
        if (inner(n) && !free[n] && this.into[n].every((one) => free[one] || without(one))) { free[n] = true; stack.push(n); }
      }
    }
    this.free = free;
    return free;
  }

  onlyFor(n, consumers) { return this.out[n].length > 0 && this.out[n].every((one) => consumers[one]); }

  // The view without the inside of some modules: its nodes, zoom nodes, and edges between keys.
  view(zoomed) {
    const hidden = this.hidden(zoomed), nodes = range(0, this.count).filter((n) => !hidden[n]), zooms = new Map(), edges = [];
    const zoomKey = (n) => `z${this.module[n]}#${this.invocation[n]}`;
    for (let n = 0; n < this.count; n++) {
      if (zoomed.has(this.module[n]) && this.invocation[n] > 0) zooms.set(zoomKey(n), { module: this.module[n], invocation: this.invocation[n] });
    }
    this.source.forEach((a, e) => { if (!hidden[a] && !hidden[this.target[e]]) edges.push([`n${a}`, `n${this.target[e]}`]); });
    for (let n = 0; n < this.count; n++) {
      if (!zoomed.has(this.module[n])) continue;
      if (this.type[n] === "i") edges.push([`n${n}`, zoomKey(n)]);
      if (this.type[n] === "o") edges.push([zoomKey(n), `n${n}`]);
    }
    return { nodes, zooms, edges };
  }
}

class WorkflowScene extends Scene {
  constructor(...given) {
    super(...given);
    this.fine = this.data.fine && new FineGraph(this.data.fine);
    this.setZoomed(this.data.zoomed ? this.data.zoomed.join("\n") : null);
  }

  get canZoom() { return Boolean(this.fine); }
  modules() { return this.data.modules.map((_, module) => module).filter((module) => !this.data.locked.includes(this.data.modules[module])); }
  level() { return this.folded ? "zones" : this.zoomed.size === this.modules().length ? "datasets" : this.zoomed.size ? "" : "columns"; }

  setLevel(level) {
    this.folded = level === "zones" || !this.canZoom;
    this.zoomed = new Set(level === "datasets" ? this.modules() : []);
  }

  // The state of an address: modules that are zoomed out, by name; a star is the folded picture.
  setZoomed(words) {
    const names = (words || "").split("\n");
    this.folded = words === "*" || words === null || !this.canZoom;
    this.zoomed = new Set(this.modules().filter((module) => names.includes(this.data.modules[module])));
  }

  // Shows the inside of a module, or its invocations as one node each; out of the folded picture others stay whole.
  zoom(module) {
    if (!this.canZoom || !this.modules().includes(module)) return;
    if (this.folded) { this.folded = false; this.zoomed = new Set(this.modules().filter((one) => one !== module)); }
    else if (this.zoomed.has(module)) this.zoomed.delete(module);
    else this.zoomed.add(module);
  }

  arrange() {
    this.arrangement = this.folded ? this.foldedArrangement() : this.fineArrangement();
    return this.arrangement;
  }

  foldedArrangement() {
    const { groups, group_edges: edges, group_rank: rank } = this.data;
    const items = groups.map((group, g) => ({ key: `g${g}`, group, module: group.module, rank: rank[g], w: SIZE.width, h: SIZE.group, scene: this }));
    return new SceneArrangement(items, edges.map(([a, b]) => [`g${a}`, `g${b}`, VALUE]));
  }

  fineArrangement() {
    const { fine } = this, { nodes, zooms, edges } = fine.view(this.zoomed);
    const items = nodes.map((n) => ({ key: `n${n}`, node: n, module: fine.module[n], rank: fine.rank[n], w: NODE.width, h: NODE.height, scene: this }));
    for (const [key, { module, invocation }] of zooms) items.push({ key, module, invocation, rank: 0, w: NODE.width + 40, h: SIZE.header, scene: this });
    return new SceneArrangement(items, edges.map(([a, b]) => [a, b, VALUE]));
  }

  invocationName({ module, invocation }) { return `${this.data.modules[module]}#${invocation}`; }

  words(key) {
    const number = Number(key.slice(1));
    if (key[0] === "g") return this.data.groups[number].name;
    if (key[0] === "z") return this.invocationName(this.arrangement.items[this.arrangement.at.get(key)]);
    return `${this.label(number)} · ${INNER[this.fine.type[number]]}`;
  }

  label(n) {
    const value = this.fine.value && this.fine.value[n];
    return this.fine.labels[this.fine.label[n]] + (value === null || value === undefined ? "" : ` = ${value}`);
  }

  // The own name of a record's dataset, with its place in it where that is known.
  record(n) { return ["wi", "st"].includes(this.fine.type[n]) ? sceneName(this.label(n).replace(/@[0-9a-f]+:(\d+)\/(\d+)$/, " $2"))[1] : ""; }

  zoomButton(item) {
    if (!this.canZoom || item.module < 0 || this.data.locked.includes(this.data.modules[item.module])) return "";
    const isOut = this.folded || this.zoomed.has(item.module), words = `Zoom ${isOut ? "into" : "out of"} ${this.data.modules[item.module]}`;
    return el("button", { class: "hop zoom", "data-act": "zoom", "data-module": item.module, title: words, "aria-label": words }, isOut ? "+" : "−");
  }

  box(item) {
    const tone = item.module < 0 ? "" : ` tone t${item.module % CLASS_COLOURS}`;
    if (item.group) {
      const { counts, kind, name } = item.group, inner = Object.values(counts).reduce((a, b) => a + b, 0);
      return this.frame(item, `group${tone}`, this.headButton(item, name, kind === "records" ? sceneName(name)[1] : name, kind), el("span", { class: "badges counts" }, count(inner, "node")), this.zoomButton(item));
    }
    if (item.node === undefined) return this.frame(item, `zoomed${tone}`, this.headButton(item, this.invocationName(item), this.invocationName(item), "zoomed out"), this.zoomButton(item));
    const type = this.fine.type[item.node];
    return this.frame(item, `node n-${safeKind(type)}${tone}`, el("button", { class: "head", "data-key": item.key, title: `${this.label(item.node)} · ${INNER[type]}` },
      el("span", { class: "sub" }, type), el("span", { class: "name" }, this.record(item.node) || this.label(item.node))), type === "m" ? this.zoomButton(item) : "");
  }

  title() { return this.data.graph; }
  legend() { return [["value", this.folded ? "reads" : Object.entries(INNER).filter(([type]) => this.data.fine.type.includes(type)).map(([type, words]) => `${type} ${words}`).join(" · ")]]; }

  list() {
    const { data } = this, shown = this.arrangement;
    const groups = data.groups.map((group, g) => [group, g]);
    return [el("h4", {}, data.graph), el("p", { class: "dim" }, `${count(data.nodes, "node")}, ${count(data.edges, "edge")}; shown ${count(shown.items.length, "box")}, ${count(shown.edges.length, "wire")}`),
      data.left_out ? el("p", { class: "bad" }, data.left_out) : "",
      el("ul", { class: "plain modules" }, data.modules.map((name, module) => {
        const isOut = this.folded || this.zoomed.has(module), locked = data.locked.includes(name);
        return el("li", {}, el("i", { class: `swatch c${module % CLASS_COLOURS}` }, ""), el("span", { class: "name" }, name),
          this.canZoom && !locked ? el("button", { class: "turn", "data-act": "zoom", "data-module": module, "aria-pressed": String(!isOut) }, isOut ? "zoom in" : "zoom out")
            : locked ? el("span", { class: "dim" }, "zoomed out in the file") : "");
      })),
      this.folded ? [el("h4", {}, "Invocations and inputs"), el("ul", { class: "plain" }, groups.slice(0, LIST_LIMIT).map(([group, g]) => el("li", {}, this.link(`g${g}`, group.kind === "records" ? sceneName(group.name)[1] : group.name),
        el("span", { class: "dim" }, ` ${Object.entries(group.counts).map(([type, many]) => `${many.toLocaleString("en")} ${type}`).join(", ")}`))))] : ""];
  }

  details(key, panel) {
    const item = this.arrangement.items[this.arrangement.at.get(key)], near = this.near(key), reach = this.reach(key);
    const side = (mark) => [...reach.values()].filter((one) => one & mark).length - 1, facts = [];
    if (item.node !== undefined) {
      facts.push(["type", INNER[this.fine.type[item.node]]]);
      if (this.fine.id) facts.push(["id", this.fine.id[item.node]]);
      if (this.fine.invocation[item.node]) facts.push(["invocation", this.invocationName({ module: item.module, invocation: this.fine.invocation[item.node] })]);
    }
    if (item.group) for (const [type, many] of Object.entries(item.group.counts)) facts.push([INNER[type] || type, many.toLocaleString("en")]);
    facts.push(["comes from", count(side(UP), "box")], ["leads to", count(side(DOWN), "box")]);
    const words = item.node === undefined ? this.words(key) : this.label(item.node);
    const isOut = this.folded || this.zoomed.has(item.module), can = this.canZoom && this.modules().includes(item.module);
    panel.show(panel.head(words, this.data.graph), can ? el("div", { class: "buttons" }, el("button", { "data-act": "zoom", "data-module": item.module },
      `Zoom ${isOut ? "into" : "out of"} ${this.data.modules[item.module]} (z)`)) : "",
    el("dl", {}, facts.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])), this.links("Read from", near.up), this.links("Read by", near.down));
  }
}
