// Scenes: pictures beside the lineage, of a trace and of a workflow, with the boxes, wires and keys of the one picture.

const SCENE_LIST = 50;

// Boxes and wires of a scene in their places. Directions follow the edges; one that closes a cycle does not count.
class SceneArrangement extends Placement {
  constructor(items, links) {
    super();
    this.take(items);
    this.edges = links.map(([a, b, roles]) => ({ a: this.at.get(a), b: this.at.get(b), roles }))
      .filter(({ a, b }) => a !== undefined && b !== undefined && a !== b);
    orderedBy(items.length, this.edges).forEach((layer, i) => { items[i].layer = layer; });
    this.place();
  }

  itemOf() { return -1; }
}

// A number for each node that is larger than those of all that lead to it; what is left in a cycle comes last.
function orderedBy(count, edges) {
  const out = Array.from({ length: count }, () => []), waiting = new Int32Array(count), found = new Int32Array(count).fill(-1);
  for (const { a, b } of edges) { out[a].push(b); waiting[b]++; }
  const ready = [...range(0, count)].filter((i) => !waiting[i]);
  let next = 0;
  for (let i = 0; i < ready.length; i++) {
    found[ready[i]] = next++;
    for (const b of out[ready[i]]) if (!--waiting[b]) ready.push(b);
  }
  return found.map((one) => (one < 0 ? next++ : one));
}

// The folder and the own name of a dataset that may be a path.
function sceneName(name) {
  const at = name.replace(/\/+$/, "").lastIndexOf("/");
  return at < 0 ? splitName(name) : [name.slice(0, at + 1), name.slice(at + 1)];
}

class Scene {
  constructor(tab, index, data, graph) { Object.assign(this, { tab, index, data, graph }); }

  get canZoom() { return false; }
  get name() { return `${this.tab} ${this.index + 1}`; }

  // The boxes that lead to one and those that it leads to: a Map of key → UP, DOWN or both.
  reach(key) {
    const { items, edges, at } = this.arrangement, start = at.get(key), found = new Map();
    if (start === undefined) return found;
    for (const [side, from, to] of [[DOWN, "a", "b"], [UP, "b", "a"]]) {
      const near = items.map(() => []), seen = new Set([start]), stack = [start];
      for (const edge of edges) near[edge[from]].push(edge[to]);
      while (stack.length) {
        for (const other of near[stack.pop()]) if (!seen.has(other)) { seen.add(other); stack.push(other); }
      }
      for (const one of seen) found.set(items[one].key, (found.get(items[one].key) || 0) | side);
    }
    return found;
  }

  frame(item, classes, ...content) {
    return el("section", { class: `box scene ${classes}`, "data-key": item.key }, ...content);
  }

  headButton(item, name, words, sub) {
    return el("button", { class: "head", "data-key": item.key, title: name }, el("span", { class: "sub" }, sub), el("span", { class: "name" }, words));
  }

  link(key, words) { return el("a", { href: "#", "data-key": key }, words); }

  // A list of links to other boxes, of which the first are shown.
  links(title, keys) {
    if (!keys.length) return "";
    return el("details", { open: true }, el("summary", {}, `${title} `, el("span", { class: "dim" }, keys.length.toLocaleString("en"))),
      el("ul", { class: "plain" }, keys.slice(0, SCENE_LIST).map((key) => el("li", {}, this.link(key, this.words(key))))),
      keys.length > SCENE_LIST ? el("p", { class: "dim" }, `and ${(keys.length - SCENE_LIST).toLocaleString("en")} more`) : "");
  }

  near(key) {
    const { items, edges, at } = this.arrangement, own = at.get(key);
    return { up: edges.filter(({ b }) => b === own).map(({ a }) => items[a].key),
      down: edges.filter(({ a }) => a === own).map(({ b }) => items[b].key) };
  }
}
