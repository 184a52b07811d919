// The picture: boxes of HTML, wires of SVG, both in one moving plane. Only what is in the window is in the document.

const SVG = "http://www.w3.org/2000/svg";
const FAR = 0.3, MOST_FAR_BOXES = 120, MOST_FAR_ROWS = 500, GRID = 24, REST_AFTER = 250;

class Picture {
  constructor(graph, state) {
    this.graph = graph;
    this.state = state;
    this.stage = byId("stage");
    this.world = byId("world");
    this.boxes = byId("boxes");
    this.near = byId("near");
    this.grid = byId("grid");
    this.lit = byId("lit");
    this.view = { x: 0, y: 0, k: 1 };
    this.drawn = new Map();
  }

  // Draws an arrangement anew; the item `anchor` stays where it is on the screen.
  show(arrangement, anchor) {
    const before = anchor && this.arrangement ? this.find(anchor) : null;
    this.arrangement = arrangement;
    const after = anchor ? this.find(anchor) : null;
    if (before && after) {
      this.view.x += (before.x - after.x) * this.view.k;
      this.view.y += (before.y - after.y) * this.view.k;
    }
    for (const box of this.drawn.values()) box.remove();
    this.drawn.clear();
    this.cull = undefined;
    this.drawNear();
    this.drawHeadings();
    this.move();
    byId("empty").hidden = arrangement.items.length > 0;
  }

  find(key) {
    const at = this.arrangement.at.get(key);
    return at === undefined ? null : this.arrangement.items[at];
  }

  // The window has another size: what was in its middle stays there.
  resized() {
    const { clientWidth: w, clientHeight: h } = this.stage, known = this.size;
    this.size = { w, h };
    this.cull = undefined;
    if (known) this.pan((w - known.w) / 2, (h - known.h) / 2);
    else this.refresh();
  }

  // Shows all of the drawing, or as much of it as is legible at a scale.
  fit(least = 0.04) {
    if (!this.arrangement.items.length) return;
    const box = this.arrangement.bounds, { clientWidth: w, clientHeight } = this.stage, margin = 40;
    const h = clientHeight - byId("legend").offsetHeight;
    this.size = { w, h: clientHeight };
    const k = Math.min(1, (w - 2 * margin) / (box.right - box.left), (h - 2 * margin) / (box.bottom - box.top));
    this.view.k = Math.max(least, k);
    this.view.x = w / 2 - ((box.left + box.right) / 2) * this.view.k;
    this.view.y = h / 2 - ((box.top + box.bottom) / 2) * this.view.k;
    if (this.view.k > k) this.view.x = margin - box.left * this.view.k;
    this.release();
    this.move();
  }

  zoom(factor, x, y) {
    const k = Math.min(2.5, Math.max(0.03, this.view.k * factor));
    this.view.x = x - (x - this.view.x) * (k / this.view.k);
    this.view.y = y - (y - this.view.y) * (k / this.view.k);
    this.view.k = k;
    this.release();
    this.move();
  }

  pan(dx, dy) {
    this.view.x += dx;
    this.view.y += dy;
    this.hold();
    this.move();
  }

  // Brings an item into the window if it is not.
  reveal(key) {
    const item = this.find(key);
    if (!item) return;
    const { x, y, k } = this.view, left = item.x * k + x, top = item.y * k + y;
    const { clientWidth: w, clientHeight: h } = this.stage;
    const bottom = top + Math.min(item.h * k, h / 2);
    if (left < 10 || top < 10 || left + item.w * k > w - 10 || bottom > h - 10) {
      this.pan(w / 2 - (left + (item.w * k) / 2), h / 2 - (top + bottom) / 2);
    }
  }

  move() {
    const { x, y, k } = this.view;
    this.world.style.transform = `translate(${x}px, ${y}px) scale(${k})`;
    const cell = GRID * (k < 0.5 ? 2 : 1) * k;
    if (this.cell !== cell) this.grid.style.backgroundSize = `${cell}px ${cell}px`;
    this.cell = cell;
    this.grid.style.transform = `translate(${x % cell}px, ${y % cell}px)`;
    this.refresh();
  }

  // While the picture moves it is a layer of its own, which is moved and not painted again; at rest it is painted
  // anew, for a layer stays as sharp as it was when it was made.
  hold() {
    clearTimeout(this.resting);
    this.world.classList.add("moving");
    this.resting = setTimeout(() => this.release(), REST_AFTER);
  }

  release() { this.world.classList.remove("moving"); }

  // Adds the boxes that came into the window and takes out those that left it.
  refresh() {
    if (!this.arrangement) return;
    const { x, y, k } = this.view, { clientWidth: w, clientHeight: h } = this.stage, margin = 300;
    const cell = { l: -x / k, t: -y / k, r: (w - x) / k, b: (h - y) / k };
    const known = this.cull;
    if (known && known.k === k && cell.l >= known.l && cell.t >= known.t && cell.r <= known.r && cell.b <= known.b) {
      return;
    }
    const wide = margin / k;
    this.cull = { l: cell.l - wide, t: cell.t - wide, r: cell.r + wide, b: cell.b + wide, k };
    const inside = this.arrangement.items.filter((item) => this.everything || item.x < this.cull.r && item.x + item.w > this.cull.l
      && item.y < this.cull.b && item.y + item.h > this.cull.t);
    const far = k < FAR && inside.length > MOST_FAR_BOXES && !this.everything;
    this.drawFar(far ? inside : []);
    this.chooseDetail(k, inside);
    const wanted = new Set(far ? [] : inside);
    for (const [item, box] of this.drawn) {
      if (!wanted.has(item)) {
        box.remove();
        this.drawn.delete(item);
      }
    }
    const fresh = document.createDocumentFragment();
    for (const item of wanted) {
      if (this.drawn.has(item)) continue;
      const box = item.scene ? item.scene.box(item) : item.d === undefined ? this.groupBox(item) : this.datasetBox(item);
      box.style.transform = `translate(${item.x}px, ${item.y}px)`;
      box.style.width = `${item.w}px`;
      box.style.height = `${item.h}px`;
      this.drawn.set(item, box);
      this.markBox(item, box);
      fresh.append(box);
    }
    this.boxes.append(fresh);
  }

  // From far away, where no column can be read, very many columns are not drawn: their boxes are empty.
  chooseDetail(k, inside) {
    const rows = inside.reduce((sum, item) => sum + (item.rows ? item.rows.length : 0), 0);
    const detail = this.everything || k >= FAR || rows <= MOST_FAR_ROWS;
    if (detail === this.detail) return;
    this.detail = detail;
    for (const box of this.drawn.values()) box.remove();
    this.drawn.clear();
  }

  // The headings of lanes, if the arrangement has lanes.
  drawHeadings() {
    for (const old of this.world.querySelectorAll(".heading")) old.remove();
    for (const { x, words } of this.arrangement.headings || []) {
      const heading = el("div", { class: "heading" }, words);
      heading.style.transform = `translate(${x}px, 0)`;
      this.world.append(heading);
    }
  }

  // From far away a dataset is a plain rectangle, all of them one shape.
  drawFar(items) {
    if (!items.length) {
      if (this.far) this.far.remove();
      this.far = null;
      return;
    }
    if (!this.far) this.far = this.wires(this.near, "far", "");
    this.far.setAttribute("d", items.map((i) => `M${i.x} ${i.y}h${i.w}v${i.h}h${-i.w}z`).join(""));
  }

  groupBox(item) {
    const name = this.arrangement.drawing.groups[item.group], [, above, own] = /^(.*\/)?([^/]+\/)$/.exec(name) || ["", undefined, name];
    const found = this.state.findingsIn(item.members);
    return el("section", { class: `box group${above === undefined ? "" : " folder"}`, "data-group": item.group },
      el("button", { class: "head", "data-act": "open-group", title: `Open ${name}`, "aria-label": `Zone ${name}` },
        el("span", { class: "name" }, own),
        el("span", { class: "sub" }, `${count(item.members.length, "dataset")} · ${count(item.columns, "column")}`),
        above ? el("span", { class: "sub" }, above) : ""),
      this.badges(classesOf(this.graph, item.members), found));
  }

  datasetBox(item) {
    const dataset = this.graph.datasets[item.d], [schema, short] = splitName(dataset.name);
    const change = dataset.change ? ` ${dataset.change}` : "", task = this.arrangement.lanes && this.arrangement.lanes.get(item.d);
    return el("section", { class: `box dataset kind-${safeKind(dataset.kind)}${change}`, "data-d": item.d },
      el("button", { class: "head", "data-act": "toggle", "aria-expanded": item.open, title: `${dataset.name} · ${dataset.kind}` },
        el("span", { class: "sub" }, el("i", { class: "sort" }, kindMark(dataset.kind)), schema || dataset.kind),
        el("span", { class: "name" }, short)),
      task ? el("span", { class: `badges task ${task.action}`, title: task.why }, el("span", { class: "action" }, task.action))
        : this.badges(item.open ? [] : classesOf(this.graph, [item.d]), this.state.findingsIn([item.d])),
      this.hopButton(item, "up"), this.hopButton(item, "down"),
      item.open && this.detail ? el("div", { class: "rows" }, item.rows.map((node) => this.row(node)),
        item.more > 0 ? el("button", { class: "row more", "data-act": "whole" }, `${item.more} more columns`) : "") : "");
  }

  row(node) {
    const column = this.graph.column(node), depth = this.graph.containers(node).length;
    const row = el("button", { class: this.rowClass(node), "data-node": node,
      title: `${this.graph.name(node)}${column.type ? ` · ${column.type}` : ""}` },
    el("span", { class: "name" }, column.unknown ? "other columns, not known" : shortPath(column.path)),
    chips(this.graph, column), el("span", { class: "type" }, column.type || ""));
    if (depth) row.style.paddingLeft = `${10 + 10 * Math.min(depth, 5)}px`;
    return row;
  }

  badges(classes, findings) {
    if (!classes.length && !findings) return "";
    return el("span", { class: "badges" }, classes.slice(0, 4).map((c) => chip(this.graph, c)),
      findings ? el("span", { class: "flag", title: count(findings, "finding") }, findings) : "");
  }

  // One more hop: the sources or readers of a dataset that are not shown; the same again folds them away.
  hopButton(item, side) {
    const others = [...this.graph.near[side][item.d].keys()], dataset = this.graph.datasets[item.d];
    const omitted = side === "up" ? dataset.omitted_sources : dataset.omitted_readers;
    if (!others.length && !omitted) return "";
    const hidden = others.filter((d) => this.arrangement.at.get(`d${d}`) === undefined).length;
    if (this.state.mode === "map" && !hidden && !omitted) return "";
    const what = side === "up" ? "source" : "reader";
    const words = hidden ? `Show ${count(hidden, what)}` : `Fold ${count(others.length, what)} away`;
    const note = omitted ? ` (${omitted} not in this report)` : "";
    return el("button", { class: `hop ${side}`, "data-act": side, title: words + note, "aria-label": words + note },
      hidden ? `+${hidden}` : omitted && !others.length ? "…" : "−");
  }

  // Wires between boxes, all of one style in one shape.
  drawNear() {
    this.near.replaceChildren();
    this.far = null;
    const shapes = new Map();
    const add = (style, d) => shapes.set(style, (shapes.get(style) || "") + d);
    const { items, edges } = this.arrangement;
    const columns = items.filter((item) => item.open).length <= 60;
    for (const { a, b, roles } of edges) {
      const [from, to] = [items[a], items[b]];
      if (columns && from.open && to.open && this.columnWires(from, to, add)) continue;
      add(wireStyle(roles, this.state.isDiff), this.wire(from.x + from.w, from.y + port(from), to.x, to.y + port(to)));
    }
    for (const [style, d] of shapes) this.wires(this.near, style, d);
  }

  wire(x1, y1, x2, y2) { return drawn(route(this.arrangement, x1, y1, x2, y2)); }

  wires(parent, style, d) {
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("class", `wire ${style}`);
    path.setAttribute("d", d);
    parent.append(path);
    return path;
  }

  columnWires(from, to, add) {
    const seen = new Map(), base = this.graph.base[from.d];
    for (const node of [base, ...this.graph.columns(from.d)]) {
      for (const [target, role, change] of throughTemporary(this.graph, node)) {
        if (this.graph.of[target] !== to.d || (node === base && role === REFERENCE && change === KEPT)) continue;
        const key = `${this.portOf(from, node)} ${this.portOf(to, target)}`;
        seen.set(key, (seen.get(key) || 0) | role | change);
      }
    }
    for (const [key, roles] of seen) {
      const [y1, y2] = key.split(" ").map(Number);
      add(wireStyle(roles, this.state.isDiff), this.wire(from.x + from.w, from.y + y1, to.x, to.y + y2));
    }
    return seen.size > 0;
  }

  portOf(item, node) {
    const row = item.row && item.row.get(node);
    return row === undefined ? port(item) : SIZE.header + row * SIZE.row + SIZE.row / 2;
  }

  // Lights ways: `lit` is a Map of node → roles, `ends` says whether an edge between two of its nodes is on a way.
  light(lit, onWay) {
    this.lighting = lit;
    this.stage.classList.toggle("lighting", Boolean(lit));
    for (const [item, box] of this.drawn) this.markBox(item, box);
    this.lit.replaceChildren();
    if (!lit) return;
    const { items } = this.arrangement, segments = new Map(), graph = this.graph;
    for (const node of lit.keys()) {
      const from = items[this.arrangement.itemOf(graph.of[node])];
      if (!from) continue;
      for (const [target, role, change, edges] of throughTemporary(graph, node)) {
        if (change === REMOVED || !lit.has(target) || !onWay(node, target, edges)) continue;
        const to = items[this.arrangement.itemOf(graph.of[target])];
        if (!to || to === from) continue;
        const key = `${from.x + from.w} ${from.y + this.portOf(from, node)} ${to.x} ${to.y + this.portOf(to, target)}`;
        segments.set(key, (segments.get(key) || 0) | role);
      }
    }
    const shapes = new Map();
    for (const [key, roles] of segments) {
      const style = wireStyle(roles, false);
      shapes.set(style, (shapes.get(style) || "") + this.wire(...key.split(" ").map(Number)));
    }
    for (const [style, d] of shapes) this.wires(this.lit, style, d);
  }

  // Lights boxes of a scene: a Map of key → UP, DOWN or both; wires between two boxes of one side are on a way.
  lightItems(reached) {
    this.lighting = reached;
    this.stage.classList.toggle("lighting", Boolean(reached));
    for (const [item, box] of this.drawn) this.markBox(item, box);
    this.lit.replaceChildren();
    if (!reached) return;
    const { items, edges } = this.arrangement, shapes = new Map();
    for (const { a, b, roles } of edges) {
      const [from, to] = [items[a], items[b]], style = wireStyle(roles, false);
      if (!(reached.get(from.key) & reached.get(to.key))) continue;
      shapes.set(style, (shapes.get(style) || "") + this.wire(from.x + from.w, from.y + port(from), to.x, to.y + port(to)));
    }
    for (const [style, d] of shapes) this.wires(this.lit, style, d);
  }

  markBox(item, box) {
    const lit = this.lighting;
    if (item.scene) {
      box.classList.toggle("on", Boolean(lit && lit.has(item.key)));
      box.classList.toggle("picked", this.state.key === item.key);
      return;
    }
    const members = item.d === undefined ? item.members : [item.d];
    let inside = 0;
    if (lit) {
      for (const d of members) {
        for (let node = this.graph.base[d]; node < this.graph.base[d + 1]; node++) if (lit.has(node)) inside++;
      }
    }
    box.classList.toggle("on", inside > 0);
    box.classList.toggle("picked", item.d !== undefined && this.state.picked === this.graph.base[item.d]);
    for (const row of box.querySelectorAll(".row[data-node]")) {
      const node = Number(row.dataset.node), classes = `${this.rowClass(node)}${this.litClass(node)}`;
      if (row.className !== classes) row.className = classes;
    }
  }

  rowClass(node) {
    const { change } = this.graph.column(node);
    return change ? `row ${change}` : "row";
  }

  // The marks of a row that is picked, or lit: by its value, by a reference, by both, or by something unknown.
  litClass(node) {
    const { state, lighting } = this, roles = lighting ? lighting.get(node) : undefined;
    const picked = state.picked === node || state.to === node ? " picked" : "";
    if (roles === undefined) return picked;
    const style = { [VALUE]: " value", [REFERENCE]: " reference", [OPAQUE]: " opaque" }[roles & 7] || "";
    return ` on${picked}${style}${(roles & 3) === 3 ? " both" : ""}`;
  }
}

// The shown nodes that a node leads to, with the role of the way; through temporary datasets as if they were not there.
function throughTemporary(graph, node) {
  const found = [], seen = new Set();
  const follow = (from, before, edges) => {
    for (const e of graph.outOf(from)) {
      if (graph.ignored[graph.kind[e]]) continue;
      const target = graph.target[e], own = graph.role[graph.kind[e]] | graph.changeMark(e);
      const marks = before ? joined(before, own) : own;
      const role = marks & OPAQUE ? OPAQUE : marks & REFERENCE ? REFERENCE : VALUE;
      if (graph.isShown(graph.of[target])) found.push([target, role, marks & ~7, [...edges, e]]);
      else if (!seen.has(target) && edges.length < 12) {
        seen.add(target);
        const inside = graph.isRows(target) ? [target, ...graph.columns(graph.of[target])] : [target];
        for (const one of inside) follow(one, marks, [...edges, e]);
      }
    }
  };
  follow(node, 0, []);
  return found;
}

function wireStyle(marks, isDiff) {
  const change = marks & (REMOVED | KEPT | ADDED | CHANGED);
  if (isDiff && change && change !== KEPT) return change === ADDED ? "added" : change === REMOVED ? "removed" : "changed";
  if ((marks & 3) === 3) return "both";
  if (marks & VALUE) return "value";
  return marks & OPAQUE ? "opaque" : "reference";
}
