// Small things that all parts use, and the panel on the right: a column, a dataset, a way, a finding.

const HIDDEN_MARKS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
// Okabe and Ito's colours, which readers with any kind of colour vision can tell apart; a letter says the same.
const CLASS_COLOURS = 8;
const LIST_LIMIT = 200;

function byId(id) { return document.getElementById(id); }

// Text as it is shown: what would be invisible, or turn the direction of what follows, is written out.
function visible(text) {
  return String(text).replace(HIDDEN_MARKS, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

// A path that a line may break behind each folder of.
const breakable = (path) => path.split(/(?<=\/)/).flatMap((part) => [part, el("wbr", {})]);

function el(tag, attributes, ...children) {
  const found = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === false) continue;
    if (name === "class") found.className = value;
    else found.setAttribute(name, value === true && !name.startsWith("aria") ? "" : visible(value));
  }
  for (const child of children.flat(3)) {
    if (child === undefined || child === null || child === "") continue;
    found.append(child instanceof Node ? child : visible(child));
  }
  return found;
}

function count(number, noun) {
  const several = /[sx]$/.test(noun) ? `${noun}es` : `${noun}s`;
  return `${number.toLocaleString("en")} ${number === 1 ? noun : several}`;
}

function unquoted(part) { return /^".*"$/s.test(part) ? part.slice(1, -1).replaceAll('""', '"') : part; }

// Schema and own name of a dataset; a path is its folder and its file.
function splitName(name) {
  if (/^query:[0-9a-f]{9,}$/.test(name)) return ["", `query ${name.slice(6, 14)}`];
  const parts = name.match(/"(?:[^"]|"")*"|[^."]+/g) || [name];
  const last = unquoted(parts[parts.length - 1]);
  const schema = parts.slice(0, -1).map(unquoted).join(".");
  if (!schema && last.includes("/")) {
    const at = last.replace(/\/+$/, "").lastIndexOf("/");
    return [last.slice(0, at + 1), last.slice(at + 1) || last];
  }
  return [schema, last];
}

function shortPath(path) { return unquoted(path); }
function safeKind(kind) { return kind.replace(/[^a-z_]/g, ""); }
function kindMark(kind) { return { table: "T", view: "V", materialized_view: "M", query: "Q", file: "F", external: "E" }[kind] || "•"; }

// Letters of classes: the initial of the last part, lengthened until no two are alike.
function classLetters(names) {
  const own = names.map((name) => name.split(".").pop().replace(/[^A-Za-z0-9]/g, "") || "?"), taken = new Set();
  return own.map((word) => {
    for (const letters of [word[0], ...[...word.slice(1)].map((c) => word[0] + c)]) {
      const found = letters[0].toUpperCase() + letters.slice(1).toLowerCase();
      if (!taken.has(found)) {
        taken.add(found);
        return found;
      }
    }
    return word.slice(0, 3);
  });
}

function chip(graph, c, possible) {
  if (!graph.letters) graph.letters = classLetters(graph.classes);
  return el("abbr", { class: `chip c${c % CLASS_COLOURS}${possible ? " possible" : ""}`,
    title: graph.classes[c] + (possible ? " (possible)" : "") }, graph.letters[c] + (possible ? "?" : ""));
}

function chips(graph, column) {
  const own = column.classes || [], maybe = column.possible_classes || [];
  if (!own.length && !maybe.length) return "";
  return el("span", { class: "chips" }, own.map((c) => chip(graph, c)), maybe.map((c) => chip(graph, c, true)));
}

function classesOf(graph, datasets) {
  const found = new Set();
  for (const d of datasets) for (const column of graph.datasets[d].columns) for (const c of column.classes || []) found.add(c);
  return [...found].sort((a, b) => a - b);
}

function role(roles) {
  const mark = roles & OPAQUE ? "U" : (roles & 3) === 3 ? "B" : roles & VALUE ? "C" : "R";
  const words = { U: "unknown", B: "contributed and referenced", C: "contributed", R: "referenced" }[mark];
  return el("abbr", { class: `role r${mark}`, title: words }, mark);
}

const SQL_TOKEN = /(--[^\n]*|\/\*[\s\S]*?\*\/)|('(?:[^'\\]|\\.|'')*'?)|\b(select|from|where|join|left|right|full|outer|inner|cross|on|using|group|order|by|having|limit|union|all|distinct|with|as|create|or|replace|view|table|materialized|insert|into|values|update|set|delete|merge|when|matched|then|else|end|case|and|not|in|is|null|over|partition|exists|between|like|temporary|if|recursive|qualify|lateral|unnest)\b/gi;

function sql(statement) {
  const pre = el("pre", { class: "sql", tabindex: 0 });
  const text = statement.text || "(its text is not stored)";
  let at = 0;
  for (const found of text.matchAll(SQL_TOKEN)) {
    pre.append(visible(text.slice(at, found.index)));
    pre.append(el(found[3] ? "b" : found[2] ? "q" : "i", {}, found[0]));
    at = found.index + found[0].length;
  }
  pre.append(visible(text.slice(at)));
  return el("figure", { class: "statement" },
    el("figcaption", {}, place(statement), el("span", { class: "dim" }, ` ${statement.kind.replaceAll("_", " ")}`),
      statement.status ? el("span", { class: "bad" }, ` ${statement.status}`) : ""), pre);
}

function place(statement) {
  return `${statement.file || statement.run || statement.how}${statement.line ? `:${statement.line}` : ""}`;
}

class Details {
  constructor(graph, state, act) {
    Object.assign(this, { graph, state, act, panel: byId("right") });
  }

  show(...content) {
    this.panel.replaceChildren(...content.flat(3).filter(Boolean));
    this.panel.scrollTop = 0;
    document.body.classList.toggle("with-details", content.length > 0);
  }

  head(title, sub, ...more) {
    return el("header", {}, el("button", { class: "close", "data-act": "close", "aria-label": "Close" }, "×"),
      el("h2", {}, title), el("p", { class: "dim" }, sub), ...more);
  }

  welcome() { this.show(); }

  column(node, down, up) {
    const { graph } = this, dataset = graph.datasets[graph.of[node]], column = graph.column(node);
    this.show(
      this.head(shortPath(column.path), [this.link(graph.base[graph.of[node]], dataset.name), column.type ? ` · ${column.type}` : ""]),
      this.facts(dataset, column.classes || [], column.possible_classes || []),
      el("div", { class: "buttons" },
        el("button", { "data-act": "ways", title: "Show every dataset on its ways (w)" }, "Show its ways"),
        el("button", { "data-act": "path-to", title: "Find the way to another column (p)" }, "Path to …")),
      this.reach("Downstream", down, "down"), this.reach("Upstream", up, "up"), this.makers(node));
  }

  dataset(d, down, up) {
    const { graph } = this, dataset = graph.datasets[d];
    this.show(
      this.head(splitName(dataset.name)[1], `${dataset.name} · ${dataset.kind.replaceAll("_", " ")}`),
      this.facts(dataset, classesOf(graph, [d]), []),
      el("div", { class: "buttons" }, el("button", { "data-act": "focus" }, "Focus"),
        el("button", { "data-act": "ways" }, "Show its ways")),
      el("details", { open: true }, el("summary", {}, count(dataset.columns.length, "column")),
        el("ul", { class: "plain" }, graph.columns(d).slice(0, LIST_LIMIT).map((node) =>
          el("li", {}, this.link(node, shortPath(graph.path[node])), chips(graph, graph.column(node)),
            el("span", { class: "dim" }, ` ${graph.column(node).type || ""}`))))),
      this.reach("Downstream", down, "down"), this.reach("Upstream", up, "up"), this.makers(graph.base[d]));
  }

  facts(dataset, classes, possible) {
    const { graph } = this, found = [];
    if (classes.length || possible.length) {
      found.push(["classes", [...classes.map((c) => [chip(graph, c), ` ${graph.classes[c]} `]),
        ...possible.map((c) => [chip(graph, c, true), ` ${graph.classes[c]}? `])]]);
    }
    if (dataset.owner) found.push(["owner", dataset.owner]);
    if (dataset.zone) found.push(["zone", dataset.zone]);
    if (dataset.change) found.push(["change", dataset.change]);
    const omitted = (dataset.omitted_sources || 0) + (dataset.omitted_readers || 0);
    if (omitted) found.push(["not here", `${count(omitted, "neighbour")} that this report leaves out: its ways are incomplete`]);
    return found.length ? el("dl", {}, found.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])) : "";
  }

  link(node, text) { return el("a", { href: "#", "data-go": node }, text || this.graph.name(node)); }

  // The entries of an impact, by dataset; each column with its verdict, its hops and its role.
  reach(title, impact, side) {
    const { graph } = this, by = new Map();
    for (const [node, entry] of impact.entries) {
      const d = graph.of[node];
      if (!by.has(d)) by.set(d, []);
      by.get(d).push([node, entry]);
    }
    let columns = 0;
    for (const [node] of impact.entries) if (!graph.isRows(node) && graph.parent[node] < 0 && !graph.unknown[node]) columns++;
    const order = [...by].sort((a, b) => nearest(a[1]) - nearest(b[1]) || (graph.datasets[a[0]].name < graph.datasets[b[0]].name ? -1 : 1));
    const words = columns || by.size ? `${count(columns, "column")} in ${count(by.size, "dataset")}` : "nothing";
    const list = el("div", { class: "reach", "data-side": side });
    const fill = (most) => list.replaceChildren(...order.slice(0, most).map(([d, entries]) => el("div", { class: "of" },
      el("h4", {}, this.link(graph.base[d], graph.datasets[d].name)),
      el("ul", { class: "plain" }, entries.sort((a, b) => a[0] - b[0]).map(([node, entry]) => this.entry(impact, node, entry))))),
    order.length > most ? el("button", { "data-act": "all", class: "wide" }, `${count(order.length - most, "more dataset")}`) : "");
    fill(40);
    list.addEventListener("click", (event) => { if (event.target.dataset.act === "all") fill(Infinity); });
    return el("details", { open: true, class: "side" }, el("summary", {}, `${title} `, el("span", { class: "dim" }, words)), list);
  }

  entry(impact, node, entry) {
    const { graph } = this, hops = el("span", { class: "hops", title: count(entry.hops, "hop") }, entry.hops);
    return el("li", { "data-column": graph.name(node), "data-verdict": entry.verdict || undefined, "data-hops": entry.hops },
      role(graph.roles(impact, node)), this.link(node, graph.isRows(node) ? "rows" : shortPath(graph.path[node])),
      entry.verdict === "unknown" ? el("span", { class: "bad" }, " unknown") : "", hops);
  }

  // The statements that make a column, and those that read it.
  makers(node) {
    const { graph } = this, d = graph.of[node], whole = graph.isRows(node);
    const nodes = whole ? [node, ...graph.columns(d)] : [node, graph.base[d]];
    const made = unique(nodes.flatMap((one) => [...graph.inTo(one)]).map((e) => graph.edges[e][4]));
    const read = unique((whole ? nodes : [node]).flatMap((one) => [...graph.outOf(one)]).map((e) => graph.edges[e][4]))
      .filter((one) => !made.includes(one));
    const part = (title, found) => (found.length ? el("details", { class: "sqls", open: title === "Made by" && found.length < 3 },
      el("summary", {}, `${title} `, el("span", { class: "dim" }, count(found.length, "statement"))),
      found.slice(0, 20).map((one) => sql(graph.statements[one]))) : "");
    return [part("Made by", made), part("Read by", read)];
  }

  // A way hop by hop: a list of edges of the graph.
  path(from, to, way) {
    const { graph } = this, title = `${shortPath(graph.path[from])} → ${shortPath(graph.path[to])}`;
    if (!way) {
      this.show(this.head(title, [this.link(from), " → ", this.link(to)]), el("p", { class: "none" }, "No path."));
      return;
    }
    const steps = way.edges.map((e) => ({ source: graph.name(graph.source[e]), target: graph.name(graph.target[e]),
      label: graph.label(e), kind: graph.kinds[graph.kind[e]], statement: graph.statement(e) }));
    this.show(this.head(title, [this.link(from), " → ", this.link(to)], el("p", { class: "hops-line", "data-hops": way.hops },
      count(way.hops, "hop"))), this.steps(steps));
  }

  steps(steps) {
    const { graph } = this;
    const end = (name) => { const node = graph.node(name); return node < 0 ? name : this.link(node, name); };
    let before = null;
    return el("ol", { class: "steps" }, steps.map((step) => {
      const repeated = step.statement && step.statement === before;
      before = step.statement;
      return el("li", { class: step.kind === "opaque" ? "opaque" : "" }, el("p", {}, end(step.source), el("span", { class: "via" }, ` ${step.label} → `), end(step.target)),
        step.statement && !repeated ? sql(step.statement) : "");
    }));
  }

  edges(from, to, edges) {
    const { graph } = this, d = (item) => (item.d === undefined ? item.members : [item.d]);
    const names = [from, to].map((item) => (item.d === undefined ? this.state.drawing.groups[item.group] : graph.datasets[item.d].name));
    const statements = unique(edges.map((e) => graph.edges[e][4])), kinds = unique(edges.map((e) => graph.kinds[graph.kind[e]]));
    this.show(this.head(`${splitName(names[0])[1]} → ${splitName(names[1])[1]}`, `${names[0]} → ${names[1]}`),
      el("p", { class: "dim" }, kinds.join(", ")), statements.slice(0, 20).map((one) => sql(graph.statements[one])),
      d(from).length && !statements.length ? el("p", {}, "Through temporary tables.") : "");
  }

  finding(finding) {
    const known = this.state.statementOf, about = finding.verdict === "violated" ? finding.severity : finding.verdict;
    const steps = finding.steps.map((step) => ({ source: step.source, target: step.target, kind: step.kind,
      label: [step.kind, ...step.functions.map((name) => `${name}()`)].join(" "), statement: known(step.evidence) }));
    this.show(this.head(finding.rule, finding.title, el("p", {}, el("span", { class: `level ${about}` }, about), ` ${finding.why}`),
      finding.fix ? el("p", { class: "dim" }, `Fix: ${finding.fix}`) : "", el("p", { class: "dim" }, finding.place)),
    steps.length ? this.steps(steps) : el("p", {}, this.named(finding.column)));
  }

  named(name) {
    const node = this.graph.node(name);
    return node < 0 ? name : this.link(node, name);
  }
}

function nearest(entries) { return Math.min(...entries.map(([, entry]) => entry.hops)); }
function unique(list) { return [...new Set(list)]; }
