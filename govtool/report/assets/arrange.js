// What is shown of the lineage: closed groups, datasets with their columns, and what leads from one to another.

class Arrangement extends Placement {
  constructor(graph, drawing, state) {
    super();
    this.graph = graph;
    this.drawing = drawing;
    this.lanes = state.mode === "focus" ? state.lanes : null;
    this.take(this.chosen(state));
    this.item = Int32Array.from(graph.datasets, (_, d) => this.placeOf(d));
    this.edges = this.between();
    this.place();
  }

  // Closed groups and single datasets.
  chosen(state) {
    const { graph, drawing } = this;
    const shown = (d) => graph.isShown(d) && (state.mode !== "focus" || state.shown.has(d));
    const closed = new Map(), found = [];
    graph.datasets.forEach((_, d) => {
      if (!shown(d)) return;
      const group = drawing.group[d];
      if (state.mode === "map" && !state.open.has(group)) {
        if (!closed.has(group)) closed.set(group, []);
        closed.get(group).push(d);
      } else found.push(this.dataset(d, state));
    });
    for (const [group, members] of closed) found.push(this.group(group, members, closed.size));
    return found;
  }

  group(group, members) {
    const { drawing, graph } = this, mean = (list) => members.reduce((sum, d) => sum + list[d], 0) / members.length;
    const columns = members.reduce((sum, d) => sum + graph.datasets[d].columns.length, 0);
    return { key: `g${group}`, group, members, columns, layer: mean(drawing.layer), rank: mean(drawing.rank),
      w: SIZE.width, h: SIZE.group };
  }

  dataset(d, state) {
    const open = state.expanded.has(d), rows = open ? this.rows(d, state) : [];
    const more = open ? this.columnCount(d) - rows.length : 0;
    return { key: `d${d}`, d, rows, more, open, layer: this.drawing.layer[d], rank: this.drawing.rank[d],
      w: SIZE.width, h: SIZE.header + (rows.length + (more > 0 ? 1 : 0)) * SIZE.row + (open ? 6 : 0),
      row: new Map(rows.map((node, i) => [node, i])) };
  }

  columnCount(d) { return this.graph.datasets[d].columns.length; }

  // The columns that an open dataset shows: all if they are few or all are wanted, else those on the picked ways first.
  rows(d, state) {
    const all = this.graph.columns(d);
    if (all.length <= SIZE.rows || state.whole.has(d)) return all;
    const lit = state.lit ? all.filter((node) => state.lit.has(node)) : [];
    const chosen = new Set([...lit, ...all].slice(0, Math.max(SIZE.rows, Math.min(lit.length, 40))));
    return all.filter((node) => chosen.has(node));
  }

  // The number of the item that a dataset is, or that it is in; -1: it is not shown.
  itemOf(d) { return this.item[d]; }

  placeOf(d) {
    const own = this.at.get(`d${d}`), group = this.at.get(`g${this.drawing.group[d]}`);
    return own !== undefined ? own : group !== undefined ? group : -1;
  }

  // One edge for each pair of items, with the roles of all that it stands for.
  between() {
    const found = new Map(), n = this.items.length, visible = this.item;
    this.graph.near.down.forEach((targets, a) => {
      const from = visible[a];
      if (from < 0) return;
      for (const [b, roles] of targets) {
        const to = visible[b];
        if (to < 0 || to === from) continue;
        const key = from * n + to;
        found.set(key, (found.get(key) || 0) | roles);
      }
    });
    return [...found].map(([key, roles]) => ({ a: Math.floor(key / n), b: key % n, roles }));
  }
}
