// The sections of figures: what stands where. The frame is made once, so that what a reader has opened stays open.

/** @param {*} app @returns {{show: (shown: Shown[]) => void, idle: (shown: Shown[], view: View) => void}} */
function createPanels(app) {
  const slots = makeFrames();
  return {
    show(shown) {
      showHeadline(shown);
      fill(
        slots.parameters,
        parameterBars(shown),
        activeBars(shown),
        figureTable("Parameters by part", parameterRows(shown), shown),
      );
      fill(slots.shares, figureTable("Shares of the blocks, and experts", BLOCK_ROWS, shown));
      fill(slots.shape, figureTable("Shape", SHAPE_ROWS, shown));
      fill(slots.memory, memoryBars(shown), ...memoryLegend(shown));
      fill(slots.cache, figureTable("Cache", CACHE_ROWS, shown));
      fill(slots.kinds, figureTable("Cache by kind", cacheKindRows(shown), shown));
      fill(slots.weights, figureTable("Weights", WEIGHT_ROWS, shown), conventions(shown, "weights.conventions"));
      fill(slots.flops, figureTable("Operations", FLOP_ROWS, shown));
      fill(slots.counted, conventions(shown, "flops.conventions"));
      slots.counted.parentElement.hidden = slots.counted.querySelector("li") === null;
      fill(slots.limits, figureTable("Reach", LIMIT_ROWS, shown), reachOf(shown));
    },
    idle(shown, view) {
      const most = app.model.lengthOf(view.first);
      const curves = shown
        .filter(({ report }) => report)
        .map(({ name, report, state }) => ({
          name,
          weights: Number(report.weights.bytes),
          points: cacheCurve(app.model, state, most),
        }));
      if (curves.length === 0) return;
      drawCurves(slots.curve, curves, most);
      fill(slots.curveTable, curveTable(curves));
    },
  };
}

/** @param {HTMLElement} slot @param {...(Node|null)} children */
function fill(slot, ...children) {
  slot.replaceChildren(...children.filter((child) => child));
}

/** @returns {Object<string, HTMLElement>} */
function makeFrames() {
  /** @type {Object<string, HTMLElement>} */
  const slots = {};
  const slot = (/** @type {string} */ name) => (slots[name] = h("div", { class: `slot ${name}` }));
  bodyOf("parameters").append(
    slot("parameters"),
    h("h3", {}, "Of a block"),
    slot("shares"),
    more("Shape in figures", slot("shape")),
  );
  bodyOf("memory").append(
    slot("memory"),
    h("h3", {}, "Cache against context"),
    slot("curve"),
    more("The curve as a table", slot("curveTable")),
    h(
      "div",
      { class: "pair" },
      h("div", {}, h("h3", {}, "Cache"), slot("cache"), more("By kind of cache", slot("kinds"))),
      h("div", {}, h("h3", {}, "Weights"), slot("weights")),
    ),
  );
  bodyOf("arithmetic").append(
    h(
      "div",
      { class: "pair" },
      h("div", {}, h("h3", {}, "Operations"), slot("flops"), more("What is counted", slot("counted"))),
      h("div", {}, h("h3", {}, "Usable context"), slot("limits")),
    ),
  );
  return slots;
}

/** The bars of memory in figures. @param {Shown[]} shown */
function memoryLegend(shown) {
  const item = (
    /** @type {number} */ at,
    /** @type {string} */ colour,
    /** @type {string} */ label,
    /** @type {string} */ key,
  ) => {
    const bytes = valueAt(shown[at].report, key);
    return h(
      "li",
      {},
      h("i", { class: `swatch ${colour}` }),
      `${label} `,
      figure(at ? 2 : 1, key, bytes, decimalBytes(bytes)),
    );
  };
  return shown.map(
    ({ name, report }, at) =>
      report &&
      h(
        "ul",
        { class: "legend" },
        shown.length > 1 ? h("li", {}, name) : null,
        item(at, "weights", "Weights", "weights.bytes"),
        item(at, "cache", `Cache at ${exact(report.kv_cache.context)}`, "kv_cache.bytes_at_context"),
      ),
  );
}

/** How the context on screen stands to what the models reach. @param {Shown[]} shown */
function reachOf(shown) {
  const lines = shown.flatMap(({ name, report }) => {
    if (!report) return [];
    const { hard_context: wall, trained_context: trained } = report.limits;
    const { context } = report.kv_cache;
    if (wall !== null) return [`${name} has a table of ${exact(wall)} positions: there is none beyond.`];
    if (context > trained) return [`${name} was trained for ${exact(trained)}: ${exact(context)} is beyond.`];
    return [`${name} has no table to run out of, and was trained for ${exact(trained)}.`];
  });
  return h("div", { class: "reach" }, ...lines.map((line) => h("p", { class: "hint" }, line)));
}
