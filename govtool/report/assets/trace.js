// A trace of rows as a scene: datasets with counts of rows, runs with their steps. Rows only where they are included.

const PAGE_ROWS = 50, PARTS = { selected: "selected", input: "input", output: "output", against: "stand against", between: "at a step" };

class TraceScene extends Scene {
  arrange() {
    const { boxes, edges, rank } = this.data;
    const items = boxes.map((box, i) => {
      const lines = box.kind === "run" ? box.steps : box.groups, shown = Math.min(lines.length, SIZE.rows);
      const more = lines.length > shown ? 1 : 0;
      return { key: `t${i}`, box, lines: lines.slice(0, shown), more: lines.length - shown, rank: rank[i], w: SIZE.width, scene: this,
        port: SIZE.header / 2, h: SIZE.header + (shown + more) * SIZE.row + (lines.length ? 6 : 0) };
    });
    this.arrangement = new SceneArrangement(items, edges.map(([a, b, style]) => [`t${a}`, `t${b}`, style === "reference" ? REFERENCE : VALUE]));
    return this.arrangement;
  }

  words(key) { return this.data.boxes[Number(key.slice(1))].name; }

  box(item) {
    const { box } = item, [folder, name] = box.kind === "run" ? ["run", box.name] : sceneName(box.name);
    const line = (one) => el("div", { class: "row plain" }, el("span", { class: "name" }, one.operator || PARTS[one.part]),
      one.exactness === "exact" ? "" : el("span", { class: "bad" }, one.exactness), el("span", { class: "type" }, count(one.rowCount, "row")));
    const lines = item.lines.map((one) => line({ ...one, rowCount: one.part ? one.count : one.rows }));
    return this.frame(item, `trace-${safeKind(box.kind)}${box.lost ? " lost" : ""}`, this.headButton(item, box.name, name, folder || "dataset"),
      lines.length ? el("div", { class: "rows" }, lines, item.more ? el("div", { class: "row plain more" }, `${item.more} more`) : "") : "");
  }

  title() { return `${this.data.direction === "back" ? "Back from" : "Forward from"} ${sceneName(this.data.output)[1]}`; }

  legend() { return [["value", "rows"], ["reference", "rows that stand against"]]; }

  // The list on the left: the condition, the steps in their order, and the datasets.
  list() {
    const { data } = this, boxes = data.boxes.map((box, i) => [box, `t${i}`]);
    const of = (kind) => boxes.filter(([box]) => box.kind === kind);
    return [el("h4", {}, this.title()), el("p", {}, data.where ? el("code", {}, `where ${data.where}`) : ""),
      el("p", { class: "dim" }, `${count(data.selected, "row")} selected · ${data.engine}`,
        data.verified === null ? "" : data.verified ? " · verified" : el("span", { class: "bad" }, " · not verified")),
      el("p", { class: "dim" }, data.include_rows ? "" : "Rows are not in this file; --include-rows puts them there."),
      of("run").map(([box, key]) => el("details", { open: true }, el("summary", {}, this.link(key, box.name)),
        el("ol", { class: "steps" }, box.steps.map((step) => el("li", {}, `${step.operator} `, el("span", { class: "dim" }, count(step.rows, "row")), this.exactness(step)))))),
      el("h4", {}, "Datasets"), el("ul", { class: "plain" }, of("dataset").map(([box, key]) => el("li", {}, this.link(key, sceneName(box.name)[1]),
        el("span", { class: "dim" }, ` ${box.groups.map((group) => `${group.count.toLocaleString("en")} ${PARTS[group.part]}`).join(", ")}`))))];
  }

  exactness(one) {
    return one.exactness === "exact" ? "" : el("p", { class: "bad" }, `${one.exactness}${one.why ? `: ${one.why}` : ""}`);
  }

  details(key, panel) {
    const box = this.data.boxes[Number(key.slice(1))], near = this.near(key), node = this.graph.node(box.name);
    panel.show(panel.head(box.kind === "run" ? box.name : sceneName(box.name)[1], box.kind === "run" ? "run" : box.name), node >= 0 ? el("p", {}, panel.link(node, "Show it in the lineage")) : "",
      box.notes.map((note) => el("p", { class: box.lost ? "bad" : "dim" }, note)),
      box.steps.length ? el("ol", { class: "steps" }, box.steps.map((step) => el("li", {}, `${step.operator} `,
        el("span", { class: "dim" }, count(step.rows, "row")), this.exactness(step)))) : "",
      box.groups.map((group) => this.group(group)), this.links("Comes from", near.up), this.links("Leads to", near.down));
  }

  group(group) {
    const { rows } = group, part = el("div", { class: "group-rows" });
    const turn = (start) => {
      const pages = rows.length > PAGE_ROWS ? el("p", { class: "pages" },
        el("button", { class: "turn", disabled: start === 0 }, "←"), ` ${start + 1}–${Math.min(start + PAGE_ROWS, rows.length)} of ${count(rows.length, "row")} here `,
        el("button", { class: "turn", disabled: start + PAGE_ROWS >= rows.length }, "→")) : "";
      part.replaceChildren(...[rows.length ? el("div", { class: "scroll" }, rowTable(rows.slice(start, start + PAGE_ROWS))) : "", pages].filter(Boolean));
      const [back, on] = part.querySelectorAll(".turn");
      if (back) back.addEventListener("click", () => turn(start - PAGE_ROWS));
      if (on) on.addEventListener("click", () => turn(start + PAGE_ROWS));
    };
    turn(0);
    const left = this.data.include_rows && group.part !== "selected" && group.count > rows.length;
    return el("details", { open: true, class: "side" }, el("summary", {}, `${PARTS[group.part]} `, el("span", { class: "dim" }, count(group.count, "row"))),
      group.version ? el("p", { class: "dim" }, `version ${group.version}`) : "", this.exactness(group),
      left ? el("p", { class: "dim" }, `${rows.length.toLocaleString("en")} of ${count(group.count, "row")} are in this file`) : "", part);
  }
}

function rowTable(rows) {
  const place = (row) => (row._row === undefined ? row._id : `${String(row._file ?? "").split("/").pop()} ${row._row}`);
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((name) => !["_id", "_file", "_row"].includes(name));
  const cell = (value) => (value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value));
  return el("table", { class: "data" }, el("tr", {}, el("th", {}, "record"), names.map((name) => el("th", {}, name))),
    rows.map((row) => el("tr", {}, el("td", { class: "dim" }, place(row) ?? ""), names.map((name) => el("td", {}, cell(row[name]))))));
}
