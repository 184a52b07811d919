// What keys, clicks and the mouse do to the page; printing and downloading.

class Controls extends AddressedPage {
  listen() {
    const { stage, boxes } = this.picture;
    document.addEventListener("click", (event) => this.click(event));
    document.addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("hashchange", () => this.restore());
    new ResizeObserver(() => this.picture.resized()).observe(stage);
    boxes.addEventListener("pointerover", (event) => (this.scene() ? this.hoverKey(event.target.closest("[data-key]")) : this.hover(event.target.closest("[data-node]"))));
    boxes.addEventListener("pointerleave", () => (this.scene() ? this.hoverKey(null) : this.hover(null)));
    stage.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = stage.getBoundingClientRect(), unit = event.deltaMode ? 30 : 1;
      if (event.shiftKey) this.picture.pan(-(event.deltaX || event.deltaY) * unit, 0);
      else this.picture.zoom(Math.exp(-event.deltaY * unit * (event.ctrlKey ? 0.01 : 0.0016)), event.clientX - box.left, event.clientY - box.top);
    }, { passive: false });
    this.drag(stage);
    byId("query").addEventListener("input", () => this.searched());
    byId("left").addEventListener("change", (event) => {
      if (event.target.id !== "bases") return;
      this.state.basesOnly = event.target.checked;
      this.lists.show("tables");
    });
    window.addEventListener("beforeprint", () => this.beforePrint());
    window.addEventListener("afterprint", () => this.afterPrint());
  }

  drag(stage) {
    let from = null;
    stage.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || event.target.closest(".box, #legend")) return;
      from = { x: event.clientX, y: event.clientY, moved: false };
      stage.setPointerCapture(event.pointerId);
    });
    stage.addEventListener("pointermove", (event) => {
      if (!from) return;
      const dx = event.clientX - from.x, dy = event.clientY - from.y;
      if (!from.moved && Math.hypot(dx, dy) < 4) return;
      stage.classList.add("dragging");
      Object.assign(from, { x: event.clientX, y: event.clientY, moved: true });
      this.picture.pan(dx, dy);
    });
    stage.addEventListener("pointerup", (event) => {
      stage.classList.remove("dragging");
      if (from && !from.moved) {
        const box = stage.getBoundingClientRect(), wire = this.wireAt(event.clientX - box.left, event.clientY - box.top);
        if (wire && !this.scene()) this.showWire(wire);
        else if (this.state.picked >= 0 || this.state.onPath || this.state.key) this.clear();
      }
      from = null;
    });
    stage.addEventListener("pointercancel", () => { from = null; stage.classList.remove("dragging"); });
  }

  hover(row) {
    const node = row ? Number(row.dataset.node) : -1;
    if (node === this.hovered) return;
    this.hovered = node;
    this.light(node);
  }

  hoverKey(box) {
    const key = box ? box.dataset.key : "";
    if (key === this.hovered) return;
    this.hovered = key;
    this.light(key || undefined);
  }

  click(event) {
    const target = event.target.closest("[data-act], button[data-key], a[data-key], [data-node], [data-go], [data-focus], [data-finding], [data-tab], [data-scene], [data-level], #fit, #json, #theme, #help");
    if (!event.target.closest("#search")) this.closeSearch();
    if (!target) return;
    if (target.tagName === "A") event.preventDefault();
    const data = target.dataset;
    if (data.node !== undefined) this.chose(Number(data.node), event.shiftKey);
    else if (data.go !== undefined) (this.state.choosing ? this.pathTo(Number(data.go)) : this.go(Number(data.go)));
    else if (data.focus !== undefined) this.focus(Number(data.focus));
    else if (data.finding !== undefined) this.showFinding(Number(data.finding));
    else if (data.tab !== undefined) this.chooseTab(data.tab);
    else if (data.scene !== undefined) this.showScene(this.scenes[Number(data.scene)]);
    else if (data.key !== undefined) this.pickKey(data.key);
    else if (data.level !== undefined) this.setLevel(data.level);
    else if (data.act) this.act(data.act, target);
    else ({ fit: () => this.picture.fit(), json: () => this.download(), theme: () => this.theme(), help: () => this.help() })[target.id]();
  }

  // The tabs of traces and workflows show these in the picture, the others the lineage.
  chooseTab(tab) {
    const own = this.scenes.find((one) => one.tab === tab);
    if (own && !(this.scene() && this.state.scene.tab === tab)) this.showScene(own);
    else {
      if (!own) this.leaveScene();
      this.lists.show(tab);
    }
    this.save();
  }

  chose(node, path) {
    if ((path || this.state.choosing) && this.state.picked >= 0 && node !== this.state.picked) this.pathTo(node);
    else if (node === this.state.picked && !this.state.onPath) this.clear();
    else this.pick(node);
  }

  act(act, target) {
    const box = target.closest(".box"), d = box && box.dataset.d !== undefined ? Number(box.dataset.d) : -1;
    const actions = {
      toggle: () => { if (this.state.choosing) this.pathTo(this.graph.base[d]);
        else { this.toggle(d); this.pick(this.graph.base[d]); } },
      up: () => this.hop(d, "up"), down: () => this.hop(d, "down"),
      whole: () => { this.state.whole.add(d); this.redraw(`d${d}`); },
      "open-group": () => { this.state.open.add(Number(box.dataset.group)); this.redraw(); this.picture.fit(); },
      close: () => { this.chosen(); this.clear(); }, ways: () => this.ways(), "path-to": () => this.choose(),
      focus: () => this.focus(this.graph.of[this.state.picked]),
      "show-erasure": () => this.showErasure(),
      zoom: () => this.zoomModule(Number(target.dataset.module)),
    };
    if (actions[act]) actions[act]();
  }

  zoomModule(module) {
    if (this.scene() && this.state.scene.canZoom && module >= 0) this.rezoom(() => this.state.scene.zoom(module));
  }

  choose() {
    if (this.state.picked < 0) return;
    this.state.choosing = true;
    document.body.classList.add("choosing");
    byId("query").placeholder = "… to another column: search, or click one";
    byId("query").focus();
  }

  // The other end of a path is chosen, or not wanted any more.
  chosen() {
    this.state.choosing = false;
    document.body.classList.remove("choosing");
    byId("query").placeholder = byId("query").ariaLabel;
  }

  // ---- the search

  searched() {
    const found = this.lists.search(byId("query").value), results = byId("results");
    results.replaceChildren(...found.map((node, i) => el("li", { role: "option", "data-result": node, "aria-selected": i === 0 },
      this.graph.isRows(node) ? el("i", { class: "sort" }, kindMark(this.graph.datasets[this.graph.of[node]].kind)) : el("i", { class: "sort" }, "·"),
      this.graph.isRows(node) ? this.graph.datasets[this.graph.of[node]].name : this.graph.name(node))));
    if (!found.length && byId("query").value.trim()) results.append(el("li", { class: "none" }, "nothing found"));
    results.hidden = !byId("query").value.trim();
    byId("query").setAttribute("aria-expanded", !results.hidden);
    results.onclick = (event) => {
      const chosen = event.target.closest("[data-result]");
      if (chosen) this.found(Number(chosen.dataset.result));
    };
  }

  found(node) {
    const { state, graph } = this;
    this.closeSearch();
    byId("query").value = "";
    byId("query").blur();
    if (state.choosing) {
      this.pathTo(node);
      return;
    }
    this.focus(graph.of[node]);
    if (graph.isRows(node)) return;
    state.lit = this.litBy(node);
    this.redraw();
    this.pick(node);
    this.picture.fit();
    this.picture.reveal(`d${graph.of[node]}`);
  }

  closeSearch() {
    byId("results").hidden = true;
    byId("query").setAttribute("aria-expanded", "false");
  }

  searchKey(event) {
    const options = [...byId("results").querySelectorAll("[data-result]")], at = options.findIndex((one) => one.ariaSelected === "true");
    if (event.key === "Escape") { this.closeSearch(); byId("query").blur(); this.chosen(); }
    if (event.key === "Enter" && options[at]) this.found(Number(options[at].dataset.result));
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !options.length) return;
    event.preventDefault();
    options.forEach((one) => { one.ariaSelected = "false"; });
    const next = options[(at + step + options.length) % options.length];
    next.ariaSelected = "true";
    next.scrollIntoView({ block: "nearest" });
  }

  // ---- keys

  key(event) {
    if (event.target.id === "query") { this.searchKey(event); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, dialog")) return;
    const { clientWidth: w, clientHeight: h } = this.picture.stage, step = 60;
    const keys = {
      "/": () => byId("query").focus(), f: () => this.picture.fit(), d: () => this.theme(), w: () => this.ways(), p: () => this.choose(),
      1: () => this.setLevel("zones"), 2: () => this.setLevel("datasets"), 3: () => this.setLevel("columns"), "?": () => this.help(),
      Escape: () => this.clear(), "+": () => this.picture.zoom(1.25, w / 2, h / 2), "=": () => this.picture.zoom(1.25, w / 2, h / 2),
      "-": () => this.picture.zoom(0.8, w / 2, h / 2),
      z: () => { const item = this.picture.find(this.state.key); if (item && item.module !== undefined) this.zoomModule(item.module); },
    };
    const arrows = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    if (arrows[event.key] && event.target.id === "stage") this.picture.pan(...arrows[event.key]);
    else if (arrows[event.key] && event.target.matches(".row, .head")) this.walkFocus(event.target, event.key);
    else if (keys[event.key]) keys[event.key]();
    else return;
    event.preventDefault();
  }

  // Arrows on a box: up and down through its rows, left and right to the nearest box.
  walkFocus(from, key) {
    const box = from.closest(".box"), stops = [...box.querySelectorAll(".head, .row")];
    if (key === "ArrowUp" || key === "ArrowDown") {
      const next = stops[stops.indexOf(from) + (key === "ArrowDown" ? 1 : -1)];
      if (next) next.focus({ preventScroll: true });
      return;
    }
    const own = [...this.picture.drawn].find(([, one]) => one === box)[0], sign = key === "ArrowRight" ? 1 : -1;
    const others = [...this.picture.drawn].filter(([item]) => (item.x - own.x) * sign > 0);
    others.sort((a, b) => Math.abs(a[0].x - own.x) + Math.abs(a[0].y - own.y) - Math.abs(b[0].x - own.x) - Math.abs(b[0].y - own.y));
    if (!others.length) return;
    this.picture.reveal(others[0][0].key);
    others[0][1].querySelector(".head").focus({ preventScroll: true });
  }

  help() {
    const keys = [["/", "search"], ["1 2 3", "zones, datasets, columns"], ["f", "fit to the window"], ["+ −", "zoom"], ["Tab, arrows", "move between boxes and rows"],
      ["Enter", "open, pick"], ["w", "show all ways of what is picked"], ["p, Shift+click", "path to another column"], ["z", "zoom the picked module of a workflow in or out"], ["d", "light or dark"], ["Esc", "clear"]];
    const dialog = byId("keys");
    dialog.replaceChildren(el("h2", {}, "Keys"), el("dl", {}, keys.map(([key, words]) => [el("dt", {}, key), el("dd", {}, words)])),
      el("form", { method: "dialog" }, el("button", {}, "Close")));
    dialog.querySelector("button").addEventListener("click", (event) => { event.preventDefault(); dialog.close(); });
    dialog.showModal();
  }

  theme() {
    const root = document.documentElement, dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  }

  // ---- out of the page

  download() {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(this.report)], { type: "application/json" }));
    link.download = "lineage.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // On paper the whole drawing is one picture on one page.
  beforePrint() {
    this.printed = { ...this.picture.view };
    const box = this.picture.arrangement.bounds, k = Math.min(1, 1000 / Math.max(1, box.right - box.left), 640 / Math.max(1, box.bottom - box.top));
    this.picture.view = { k, x: 10 - box.left * k, y: 10 - box.top * k };
    this.picture.everything = true;
    this.picture.cull = undefined;
    this.picture.move();
  }

  afterPrint() {
    this.picture.everything = false;
    this.picture.view = this.printed;
    this.picture.cull = undefined;
    this.picture.move();
  }
}

const page = new Controls(JSON.parse(byId("data").textContent));
document.documentElement.dataset.ready = "yes";
window.govtool = { page, Graph, WorkflowScene };
