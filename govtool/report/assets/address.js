// Scenes in the place of the lineage, and the address, which keeps what is shown.

const SAVE_AFTER = 200;

class AddressedPage extends Page {
  // ---- scenes

  showScene(scene) {
    const before = this.scene() ? this.state.before : this.state.mode;
    Object.assign(this.state, { mode: "scene", before, scene, picked: -1, to: -1, finding: -1, onPath: null, lanes: null, key: "" });
    this.details.welcome();
    this.redraw();
    this.picture.fit(LEGIBLE);
    this.lists.show(scene.tab);
  }

  // Back to the lineage as it was before.
  leaveScene() {
    if (!this.scene()) return;
    Object.assign(this.state, { mode: this.state.before, key: "" });
    this.details.welcome();
    this.redraw();
    this.picture.fit();
  }

  pickKey(key) {
    const { state } = this, known = this.picture.arrangement.at.has(key) && key !== state.key;
    state.key = known ? key : "";
    if (known) {
      state.scene.details(key, this.details);
      this.picture.reveal(key);
    } else this.details.welcome();
    this.light();
    this.save();
  }

  // Zooms a module of a workflow; the picked box stays picked if it is still there.
  rezoom(change) {
    const { state } = this, key = state.key;
    change();
    state.key = "";
    this.redraw();
    this.picture.fit(LEGIBLE);
    this.lists.show(state.scene.tab);
    if (key && this.picture.arrangement.at.has(key)) this.pickKey(key);
    else this.details.welcome();
    this.light();
    this.save();
  }

  // ---- the address

  // Browsers refuse more than a few changes of the address at once.
  save() {
    clearTimeout(this.saving);
    if (this.ready) this.saving = setTimeout(() => this.saveNow(), SAVE_AFTER);
  }

  saveNow() {
    const { state, graph } = this, words = new URLSearchParams(), names = (set) => [...set].map((d) => graph.datasets[d].name).join("\n");
    if (this.scene()) {
      words.set("scene", state.scene.name);
      if (state.scene.canZoom) words.set("zoomed", state.scene.folded ? "*" : [...state.scene.zoomed].map((one) => state.scene.data.modules[one]).join("\n"));
      if (state.key) words.set("box", state.key);
    }
    if (state.mode === "focus" && state.shown.size <= 80) words.set("show", names(state.shown));
    if (state.mode === "map" && state.open.size < this.report.drawing.groups.length) {
      words.set("zones", [...state.open].map((group) => this.report.drawing.groups[group]).join("\n"));
    }
    if (state.expanded.size && state.expanded.size <= 80) words.set("open", names(state.expanded));
    if (state.picked >= 0) words.set("pick", graph.isRows(state.picked) ? graph.datasets[graph.of[state.picked]].name : graph.name(state.picked));
    if (state.to >= 0) words.set("to", graph.isRows(state.to) ? graph.datasets[graph.of[state.to]].name : graph.name(state.to));
    if (state.finding >= 0) words.set("finding", this.report.findings[state.finding].fingerprint);
    if (state.tab && state.tab !== "tables") words.set("tab", state.tab);
    try { history.replaceState(null, "", `#${words}`); } catch { /* a frame without an address of its own */ }
  }

  // Restores the state of the address; false if it has none.
  restore() {
    const words = new URLSearchParams(location.hash.slice(1)), { state, graph } = this;
    if (![...words].length) return false;
    const numbers = (key) => (words.get(key) || "").split("\n").map((name) => graph.node(name)).filter((node) => node >= 0).map((node) => graph.of[node]);
    Object.assign(state, { mode: "map", open: new Set(), picked: -1, to: -1, finding: -1, lit: null, onPath: null, lanes: null,
      expanded: new Set(numbers("open")) });
    if (words.has("show")) Object.assign(state, { mode: "focus", shown: new Set(numbers("show")) });
    else if (words.has("zones")) {
      const names = words.get("zones").split("\n");
      this.report.drawing.groups.forEach((name, group) => { if (names.includes(name)) state.open.add(group); });
    } else this.openAll();
    this.lists.show(words.get("tab") || "tables");
    const scene = this.scenes.find((one) => one.name === words.get("scene"));
    if (scene) {
      if (scene.canZoom) scene.setZoomed(words.get("zoomed"));
      this.showScene(scene);
      if (words.has("box")) this.pickKey(words.get("box"));
      return true;
    }
    const picked = graph.node(words.get("pick") || ""), to = graph.node(words.get("to") || "");
    if (picked >= 0) state.lit = this.litBy(picked);
    this.redraw();
    this.picture.fit();
    if (picked >= 0) this.pick(picked, true);
    if (picked >= 0 && to >= 0) this.pathTo(to);
    const finding = (this.report.findings || []).findIndex((one) => one.fingerprint === words.get("finding"));
    if (finding >= 0) this.showFinding(finding);
    return true;
  }
}
