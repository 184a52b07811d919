// The graph as arrays, and the walks of `govtool impact` over it: the same states, hops and entries.

const KIND_ORDER = ["identity", "transformation", "aggregation", "conditional", "window", "join", "filter", "group_by",
  "sort", "distinct", "set_operation", "union_all", "read", "opaque"];
const CONTRIBUTED = new Set(KIND_ORDER.slice(0, 5));
const UNKNOWN = 1, CHANGES = 2, ROWS = 3;
const VERDICTS = ["breaks", "unknown", "changes", "rows", "passes"];
// How an edge is drawn and told apart: LineageX's contributed and referenced, and what is not known.
const VALUE = 1, REFERENCE = 2, OPAQUE = 4;
// How it changed between two versions, in the same number.
const REMOVED = 8, KEPT = 16, ADDED = 32, CHANGED = 64;
// On which side of the picked column a lit node is.
const UP = 128, DOWN = 256;

// States of a walk upstream, as SourceState has them, and the rank of each; downstream a state is its rank.
const SOURCE_VALUE = 0, ANY_COLUMN = 1, SOURCE_UNKNOWN = 2, SOURCE_ROWS = 3;
const SOURCE_RANK = [0, 1, 1, 2], STATE_RANK = [0, 1, 2, 3];

class Graph {
  constructor(data) {
    this.data = data;
    this.datasets = data.datasets;
    this.statements = data.statements;
    this.classes = data.classes;
    const bases = [];
    let count = 0;
    for (const dataset of data.datasets) {
      bases.push(count);
      count += 1 + dataset.columns.length;
    }
    this.count = count;
    this.base = Int32Array.from([...bases, count]);
    this.of = new Int32Array(count);
    this.path = new Array(count);
    this.parent = new Int32Array(count).fill(-1);
    this.unknown = new Uint8Array(count);
    this.gone = new Uint8Array(count);
    this.children = new Map();
    this.nested = new Uint8Array(count); // contains fields, or is one
    data.datasets.forEach((dataset, d) => this.readDataset(dataset, d));
    this.kinds = data.kinds;
    this.role = data.kinds.map((kind) => (kind === "opaque" ? OPAQUE : CONTRIBUTED.has(kind) ? VALUE : REFERENCE));
    this.ignored = data.kinds.map((kind) => kind === "union_all");
    this.readKind = data.kinds.indexOf("read");
    this.opaqueKind = data.kinds.indexOf("opaque");
    this.readEdges(data.edges);
    this.near = this.nearDatasets();
  }

  readDataset(dataset, d) {
    const base = this.base[d];
    this.of.fill(d, base, this.base[d + 1]);
    this.path[base] = "*";
    if (dataset.change === "removed") this.gone[base] = 1;
    dataset.columns.forEach((column, i) => {
      const node = base + 1 + i;
      this.path[node] = column.path;
      if (column.unknown) this.unknown[node] = 1;
      if (column.change === "removed") this.gone[node] = 1;
      if (column.parent !== undefined) {
        const above = base + 1 + column.parent;
        this.parent[node] = above;
        this.nested[node] = this.nested[above] = 1;
        if (!this.children.has(above)) this.children.set(above, []);
        this.children.get(above).push(node);
      }
    });
  }

  readEdges(edges) {
    const m = edges.length;
    this.edges = edges;
    this.source = new Int32Array(m);
    this.target = new Int32Array(m);
    this.kind = new Uint8Array(m);
    this.out = new Int32Array(this.count + 1);
    this.into = new Int32Array(this.count + 1);
    edges.forEach((edge, e) => {
      this.source[e] = edge[0];
      this.target[e] = edge[1];
      this.kind[e] = edge[2];
      this.out[edge[0] + 1]++;
      this.into[edge[1] + 1]++;
    });
    for (let i = 0; i < this.count; i++) {
      this.out[i + 1] += this.out[i];
      this.into[i + 1] += this.into[i];
    }
    this.outEdge = new Int32Array(m);
    this.intoEdge = new Int32Array(m);
    const [nextOut, nextInto] = [this.out.slice(), this.into.slice()];
    for (let e = 0; e < m; e++) {
      this.outEdge[nextOut[this.source[e]]++] = e;
      this.intoEdge[nextInto[this.target[e]]++] = e;
    }
  }

  isRows(node) { return this.base[this.of[node]] === node; }
  isBase(d) { return !this.near.up[d].size && !this.datasets[d].omitted_sources; }
  isShown(d) { return !this.datasets[d].temporary; }
  name(node) { return `${this.datasets[this.of[node]].name}.${this.path[node]}`; }
  column(node) { return this.datasets[this.of[node]].columns[node - this.base[this.of[node]] - 1]; }
  columns(d) { return range(this.base[d] + 1, this.base[d + 1]); }
  statement(e) { return this.statements[this.edges[e][4]]; }
  label(e) { return this.data.labels[this.edges[e][3]]; }
  change(e) { return this.edges[e][6]; }
  isLive(e) { return this.edges[e][6] !== "removed"; }
  outOf(node) { return this.outEdge.subarray(this.out[node], this.out[node + 1]); }
  inTo(node) { return this.intoEdge.subarray(this.into[node], this.into[node + 1]); }

  containers(node) {
    const found = [];
    for (let above = this.parent[node]; above >= 0; above = this.parent[above]) found.push(above);
    return found;
  }

  fields(node) {
    const found = [], stack = [node];
    while (stack.length) {
      for (const child of this.children.get(stack.pop()) || []) {
        found.push(child);
        stack.push(child);
      }
    }
    return found;
  }

  node(name) {
    if (!this.byName) {
      this.byName = new Map();
      const shown = range(0, this.datasets.length).reverse().filter((d) => this.isShown(d));
      for (const d of shown) for (const node of this.columns(d)) this.byName.set(this.name(node), node);
      for (const d of shown) { // a dataset before a column that is called like it
        this.byName.set(`${this.datasets[d].name}.*`, this.base[d]);
        this.byName.set(this.datasets[d].name, this.base[d]);
      }
    }
    return this.byName.has(name) ? this.byName.get(name) : -1;
  }

  // The shown datasets that each one is made of and that are made of it, with the roles and changes of the edges
  // between; what passes through temporary datasets counts as one edge. A list of Map(dataset → marks) each way.
  nearDatasets() {
    const raw = this.datasets.map(() => new Map());
    for (let e = 0; e < this.edges.length; e++) {
      const a = this.of[this.source[e]], b = this.of[this.target[e]];
      if (a === b) continue;
      const role = this.kind[e] === this.readKind ? 0 : this.role[this.kind[e]];
      raw[a].set(b, (raw[a].get(b) || 0) | role | this.changeMark(e));
    }
    const down = this.datasets.map(() => new Map()), up = this.datasets.map(() => new Map());
    raw.forEach((targets, a) => {
      if (!this.isShown(a)) return;
      const seen = new Set(), stack = [...targets];
      while (stack.length) {
        const [b, marks] = stack.pop();
        if (this.isShown(b)) {
          if (b === a) continue;
          down[a].set(b, (down[a].get(b) || 0) | marks);
          up[b].set(a, (up[b].get(a) || 0) | marks);
        } else if (!seen.has(b)) {
          seen.add(b);
          for (const [c, more] of raw[b]) stack.push([c, joined(marks, more)]);
        }
      }
    });
    return { down, up };
  }

  changeMark(e) { return { added: ADDED, removed: REMOVED, changed: CHANGED }[this.edges[e][6]] || KEPT; }

  // A walk downstream from keys (state × count + node), as SmallWalk does it for `--change logic`.
  walk(seeds, backward) {
    const n = this.count, states = 4;
    const hops = new Int32Array(states * n).fill(-1), before = new Int32Array(states * n).fill(-1);
    const edge = new Int32Array(states * n).fill(-1), anyColumn = new Set(), reached = [];
    const expand = backward ? this.backward : this.forward;
    let level = 0, frontier = [...new Set(seeds)], from, following, passed;
    const visit = (goal, e) => {
      if (hops[goal] >= 0) return;
      const shown = this.isShown(this.of[goal % n]);
      hops[goal] = shown ? level + 1 : level;
      before[goal] = from;
      edge[goal] = e;
      reached.push(goal);
      (shown ? following : passed).push(goal);
    };
    for (const key of frontier) { hops[key] = 0; reached.push(key); }
    while (frontier.length) {
      following = [];
      while (frontier.length) {
        passed = [];
        for (from of frontier) expand.call(this, from, anyColumn, visit);
        frontier = passed;
      }
      level++;
      frontier = following;
    }
    return { hops, before, edge, reached, backward };
  }

  forward(key, anyColumn, visit) {
    const n = this.count, state = Math.floor(key / n), node = key % n, rows = this.isRows(node);
    const follow = (from, relation) => {
      for (const e of this.outOf(from)) {
        const reached = this.isLive(e) ? this.goal(state, relation, this.kind[e]) : 0;
        if (reached) visit(reached * n + this.target[e], e);
      }
    };
    follow(node, rows ? "rows" : "self");
    if (this.nested[node]) {
      for (const part of this.fields(node)) follow(part, "part");
      for (const whole of this.containers(node)) follow(whole, "whole");
    }
    const seen = state * this.datasets.length + this.of[node];
    if (!rows && !anyColumn.has(seen)) {
      anyColumn.add(seen);
      follow(this.base[this.of[node]], "any");
    }
  }

  goal(state, relation, kind) {
    if (this.ignored[kind]) return 0;
    if (kind === this.opaqueKind) return relation === "any" && kind === this.readKind ? 0 : UNKNOWN;
    if (relation === "any") return kind === this.readKind ? 0 : UNKNOWN;
    if (state !== CHANGES) return state;
    if (relation === "rows") return UNKNOWN;
    return this.role[kind] === VALUE ? CHANGES : ROWS;
  }

  backward(key, _anyColumn, visit) {
    const n = this.count, state = Math.floor(key / n), node = key % n;
    const around = state === ANY_COLUMN ? range(node, this.base[this.of[node] + 1])
      : this.nested[node] ? [node, ...this.containers(node), ...this.fields(node)] : [node];
    for (const other of around) {
      for (const e of this.inTo(other)) {
        if (this.ignored[this.kind[e]] || !this.isLive(e)) continue;
        const source = this.source[e];
        visit(this.sourceState(state, this.kind[e], this.isRows(source)) * n + source, e);
      }
    }
  }

  sourceState(state, kind, rows) {
    if (rows && kind !== this.readKind) return ANY_COLUMN;
    if (kind === this.opaqueKind || state === ANY_COLUMN) return SOURCE_UNKNOWN;
    return state === SOURCE_VALUE && this.role[kind] !== VALUE ? SOURCE_ROWS : state;
  }

  // The entries of `govtool impact NAME --format json` (`--upstream`): Map of node → {verdict, hops, value, rows}.
  impact(node, backward) {
    const n = this.count, d = this.of[node], rows = this.base[d], whole = node === rows;
    const members = whole ? [rows, ...this.columns(d)] : [node];
    let seeds;
    if (backward) seeds = [...members.filter((one) => one !== rows), SOURCE_ROWS * n + rows];
    else seeds = members.map((one) => (one === rows ? ROWS : CHANGES) * n + one);
    const subjects = new Set(backward ? [rows, ...members] : members);
    const walk = this.walk(seeds, backward);
    const rank = (key) => (backward ? SOURCE_RANK : STATE_RANK)[Math.floor(key / n)];
    const implies = (key) => !backward || Math.floor(key / n) === ANY_COLUMN;
    const best = new Map();
    for (const key of Int32Array.from(walk.reached).sort()) { // by state, which is by rank, then by node: a key is state × n + node
      const one = key % n;
      if (this.isShown(this.of[one]) && !best.has(one)) best.set(one, key);
    }
    const entries = new Map();
    for (const [one, key] of best) {
      if (subjects.has(one)) continue;
      const of = best.get(this.base[this.of[one]]);
      const winner = !this.isRows(one) && of !== undefined && implies(of) && rank(of) < rank(key) ? of : key;
      entries.set(one, { verdict: backward ? null : VERDICTS[rank(winner)], hops: walk.hops[winner], key: winner,
        own: key });
    }
    for (const [one, entry] of [...entries]) {
      if (!this.isRows(one) || !implies(entry.key)) continue;
      for (const column of this.columns(this.of[one])) {
        if (this.parent[column] < 0 && !this.unknown[column] && !this.gone[column] && !entries.has(column)
          && !subjects.has(column)) entries.set(column, { ...entry, implied: true });
      }
    }
    return { entries, walk, backward, node };
  }

  // The roles in which a reached column is reached: by its value, by the rows of its dataset, or by something unknown.
  roles(impact, node) {
    const { walk } = impact, n = this.count, rows = this.base[this.of[node]];
    if (impact.backward) return this.upstreamRoles(impact, node);
    let found = 0;
    if (walk.hops[UNKNOWN * n + node] >= 0 || walk.hops[UNKNOWN * n + rows] >= 0) found |= OPAQUE;
    if (walk.hops[CHANGES * n + node] >= 0) found |= VALUE;
    if (walk.hops[ROWS * n + node] >= 0 || walk.hops[ROWS * n + rows] >= 0) found |= REFERENCE;
    return found;
  }

  upstreamRoles(impact, node) {
    if (!impact.up) impact.up = this.valueSources(impact.node);
    const found = impact.up.has(node) ? VALUE : 0;
    if (!impact.references) impact.references = this.referencedSources(impact);
    return found | (impact.references.get(node) || 0) || REFERENCE;
  }

  // The columns whose values alone reach a column.
  valueSources(node) {
    const found = new Set(), stack = this.isRows(node) ? [...this.columns(this.of[node])] : [node];
    while (stack.length) {
      const at = stack.pop();
      if (found.has(at)) continue;
      found.add(at);
      for (const one of this.nested[at] ? [at, ...this.containers(at), ...this.fields(at)] : [at]) {
        for (const e of this.inTo(one)) {
          if (this.isLive(e) && this.role[this.kind[e]] === VALUE) stack.push(this.source[e]);
        }
      }
    }
    return found;
  }

  // Upstream columns that an edge other than one of value flow leads from into what was reached.
  referencedSources(impact) {
    const { walk } = impact, n = this.count, found = new Map();
    for (const key of walk.reached) {
      const node = key % n;
      for (const e of this.outOf(node)) {
        const target = this.target[e];
        if (!this.isLive(e) || this.ignored[this.kind[e]]) continue;
        if ([0, 1, 2, 3].every((state) => walk.hops[state * n + target] < 0)) continue;
        const role = this.role[this.kind[e]];
        if (role !== VALUE || !impact.up.has(target)) found.set(node, (found.get(node) || 0)
          | (role === OPAQUE ? OPAQUE : REFERENCE));
      }
    }
    return found;
  }

  // The edges of a shortest way that a walk found to a key, in their own direction.
  way(walk, key) {
    const found = [];
    for (let at = key; walk.before[at] >= 0; at = walk.before[at]) found.push(walk.edge[at]);
    return walk.backward ? found : found.reverse();
  }

  // The shortest way from one node to another, a list of edges; null if there is none.
  shortest(from, to) {
    const n = this.count, { walk } = this.impact(from, false);
    const ends = this.isRows(to) ? range(to, this.base[this.of[to] + 1]) : [to, this.base[this.of[to]]];
    let best = -1;
    for (const end of ends) {
      for (const state of [CHANGES, ROWS, UNKNOWN]) {
        const key = state * n + end;
        if (walk.hops[key] > 0 && (best < 0 || walk.hops[key] < walk.hops[best])) best = key;
      }
    }
    return best < 0 ? null : { edges: this.way(walk, best), hops: walk.hops[best] };
  }
}

// The marks of two edges in a row: gone if either is.
function joined(a, b) {
  const live = KEPT | ADDED | CHANGED;
  return ((a | b) & 7) | ((a & live) && (b & live) ? (a | b) & live : REMOVED);
}

function range(start, end) {
  const found = [];
  for (let i = start; i < end; i++) found.push(i);
  return found;
}
