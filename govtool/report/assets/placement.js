// Places for boxes: layers from left to right by the layout that was computed ahead, heights as they are now.

const SIZE = { width: 236, header: 46, row: 23, gap: 18, between: 88, group: 84, lane: 34, rows: 14, tall: 1800, aspect: 1.5 };
const SPACING = 0.4; // of the width of a layer, between it and the next

class Placement {
  // Items have a key, a layer, a rank, a width and a height.
  take(items) {
    this.items = items;
    this.at = new Map(items.map((item, i) => [item.key, i]));
  }

  // Gives each item its x and y. Edges are numbers of items; lanes, where there are any, are a column each.
  place() {
    const linked = new Set(this.edges.flatMap(({ a, b }) => [a, b]));
    let layers = this.lanes ? this.laned() : this.layered(linked);
    if (!this.lanes) {
      this.order(layers);
      layers = this.folded(layers);
    }
    let x = 0;
    for (const layer of layers) {
      for (const item of layer) item.x = x;
      x += widest(layer) + Math.min(SIZE.between, widest(layer) * SPACING) + Math.min(120, layer.length * 3);
      stack(layer);
    }
    if (this.lanes) this.head(layers);
    else {
      for (let pass = 0; pass < 6; pass++) this.align(layers, pass % 2 === 0);
      this.grid(this.items.filter((_, i) => !linked.has(i)), layers.length);
    }
    this.passed = this.items.length > 400 ? [] : layers.map((layer) => ({ items: layer.slice().sort((a, b) => a.y - b.y),
      left: layer[0].x, right: layer[0].x + widest(layer) }));
    this.bounds = bounds(this.items);
  }

  // One layer a lane, all from the top; the headings are items of their own kind.
  laned() {
    const found = new Map();
    for (const item of this.items) {
      const lane = this.lanes.get(item.d).order || Infinity;
      if (!found.has(lane)) found.set(lane, []);
      found.get(lane).push(item);
    }
    return [...found].sort((a, b) => a[0] - b[0]).map(([lane, items]) => Object.assign(items, { lane }));
  }

  head(layers) {
    for (const layer of layers) {
      let y = SIZE.lane;
      for (const item of layer) {
        item.y = y;
        y += item.h + SIZE.gap;
      }
    }
    this.headings = layers.map((layer) => ({ x: layer[0].x, words: layer.lane === Infinity ? "Nothing to do" : `Step ${layer.lane}` }));
  }

  // Layers by the longest way among what is shown; edges against the order that was computed ahead do not count.
  layered(linked) {
    const { items } = this, layer = new Int32Array(items.length), into = items.map(() => []), out = items.map(() => []);
    for (const { a, b } of this.edges) {
      if (items[a].layer < items[b].layer) {
        into[b].push(a);
        out[a].push(b);
      }
    }
    const order = [...linked].sort((a, b) => items[a].layer - items[b].layer);
    for (const i of order) for (const j of into[i]) layer[i] = Math.max(layer[i], layer[j] + 1);
    for (const i of order) {
      if (!into[i].length && out[i].length) layer[i] = Math.min(...out[i].map((j) => layer[j])) - 1;
    }
    const found = [];
    for (const i of order) (found[layer[i]] = found[layer[i]] || []).push(items[i]);
    this.into = into;
    this.out = out;
    return found.filter(Boolean).map((one) => one.sort((a, b) => a.rank - b.rank || a.key.localeCompare(b.key)));
  }

  // Layers that are far taller than the picture is wide stand in several columns, in their order.
  folded(layers) {
    const room = layers.flat().reduce((sum, item) => sum + (item.w + SIZE.between) * (item.h + SIZE.gap), 0);
    const most = Math.max(SIZE.tall, Math.sqrt(room / SIZE.aspect));
    return layers.flatMap((layer) => {
      const columns = Math.ceil(tall(layer) / most), size = Math.ceil(layer.length / columns);
      return Array.from({ length: columns }, (_, i) => layer.slice(i * size, (i + 1) * size)).filter((column) => column.length);
    });
  }

  // Two sweeps by barycentre: what is shown may be a small part of what the order was computed for.
  order(layers) {
    if (this.items.length > 400) return;
    const rank = new Map();
    const note = (layer) => layer.forEach((item, i) => rank.set(item, layer.length > 1 ? i / (layer.length - 1) : 0.5));
    layers.forEach(note);
    for (const [near, rows] of [[this.into, layers], [this.out, layers.slice().reverse()], [this.into, layers]]) {
      for (const layer of rows) {
        const mean = new Map(layer.map((item) => {
          const others = near[this.at.get(item.key)].map((j) => rank.get(this.items[j]));
          return [item, others.length ? others.reduce((a, b) => a + b, 0) / others.length : rank.get(item)];
        }));
        layer.sort((a, b) => mean.get(a) - mean.get(b));
        note(layer);
      }
    }
  }

  // Moves each layer towards its neighbours without changing its order.
  align(layers, toRight) {
    const near = toRight ? this.into : this.out;
    for (const layer of toRight ? layers : layers.slice().reverse()) {
      const wanted = layer.map((item) => {
        const others = near[this.at.get(item.key)].map((j) => this.items[j]);
        if (!others.length) return item.y;
        return others.reduce((sum, one) => sum + one.y + port(one), 0) / others.length - port(item);
      });
      settle(layer, wanted);
    }
  }

  // What nothing shown depends on, below the rest.
  grid(items, layers) {
    const columns = Math.max(3, Math.min(8, layers || 4)), step = SIZE.width + SIZE.between / 2;
    const below = bounds(this.items.filter((item) => item.y !== undefined)).bottom;
    const heights = new Array(columns).fill(below ? below + 48 : 0);
    items.sort((a, b) => a.key.localeCompare(b.key, undefined, { numeric: true }));
    items.forEach((item) => {
      const at = heights.indexOf(Math.min(...heights));
      item.x = at * step;
      item.y = heights[at];
      heights[at] += item.h + SIZE.gap;
    });
  }
}

function port(item) { return item.port !== undefined ? item.port : item.d === undefined ? item.h / 2 : SIZE.header / 2; }

function widest(layer) { return layer.reduce((most, item) => Math.max(most, item.w), 0); }

function tall(layer) { return layer.reduce((sum, item) => sum + item.h + SIZE.gap, -SIZE.gap); }

function stack(layer) {
  let y = -tall(layer) / 2;
  for (const item of layer) {
    item.y = y;
    y += item.h + SIZE.gap;
  }
}

// The least squares fit to wanted places that keeps order and distance (pool adjacent violators).
function settle(layer, wanted) {
  const blocks = [];
  layer.forEach((item, i) => {
    let block = { items: [item], sum: wanted[i], size: 1, height: item.h + SIZE.gap };
    for (;;) {
      const above = blocks[blocks.length - 1];
      if (!above || above.sum / above.size + above.height <= block.sum / block.size) break;
      blocks.pop();
      block = { items: [...above.items, ...block.items], size: above.size + block.size,
        sum: above.sum + block.sum - above.height * block.size, height: above.height + block.height };
    }
    blocks.push(block);
  });
  for (const block of blocks) {
    let y = block.sum / block.size;
    for (const item of block.items) {
      item.y = y;
      y += item.h + SIZE.gap;
    }
  }
}

function bounds(items) {
  const found = { left: 0, top: 0, right: 0, bottom: 0 };
  if (!items.length) return found;
  found.left = found.top = Infinity;
  found.right = found.bottom = -Infinity;
  for (const item of items) {
    found.left = Math.min(found.left, item.x);
    found.top = Math.min(found.top, item.y);
    found.right = Math.max(found.right, item.x + item.w);
    found.bottom = Math.max(found.bottom, item.y + item.h);
  }
  return found;
}
