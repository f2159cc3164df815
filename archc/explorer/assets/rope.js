// The playground of rotary positions: which positions, which pair, which scaling.

const ROPE_LENGTHS = [64, 256, 1024, 4096, 16384, 65536];
const PLAIN_BASE = 10000;
const PLAIN_CHANNELS = 64;

/** @param {*} app @returns {{show: (shown: Shown[], view: View) => void, idle: (view: View) => void}} */
function createRope(app) {
  const parts = ropeFrame(app);
  let drawn = "";
  return {
    show(shown, view) {
      const found = settingOf(app.model, view, shown[0].report);
      parts.notice.textContent = found.notice;
      updatePositions(parts, view.turning, found);
      updateScaling(app, parts, view.turning, found);
      showTurning(parts, view.turning, found);
      const key = JSON.stringify([found.speeds, found.unscaled]);
      if (key !== drawn) {
        drawn = key;
        fill(parts.table, speedTable(app, found));
      }
      for (const line of parts.table.querySelectorAll("tr[data-pair]")) {
        if (line.dataset.pair === String(found.pair)) line.setAttribute("aria-current", "true");
        else line.removeAttribute("aria-current");
      }
      fill(parts.figures, ...ropeFigures(shown));
    },
    idle(view) {
      const found = settingOf(app.model, view, null);
      fill(
        parts.speeds,
        speedChart({
          width: widthOf(parts.speeds),
          speeds: found.speeds,
          unscaled: found.unscaled,
          pair: found.pair,
          context: found.context,
        }),
      );
    },
  };
}

/**
 * What turns how fast: the rope on screen, or a plain one where the model has none.
 * @param {*} model @param {View} view @param {*} report
 */
function settingOf(model, view, report) {
  const context = model.lengthOf(view.first);
  const found = model.rope(view.first);
  const own = found && found.rotary_dim >= 2 ? found : null;
  const channels = (report && report.attention && report.attention.head_dim) || PLAIN_CHANNELS;
  const rope = own || {
    base: PLAIN_BASE,
    head_dim: channels - (channels % 2),
    rotary_dim: channels - (channels % 2),
    pairing: "half",
    scaling: null,
  };
  const { turning } = view;
  const kind = model.ropeKinds.find((known) => known.kind === turning.scaling);
  const chosen =
    kind && kind.fields.length
      ? {
          kind: kind.kind,
          ...Object.fromEntries(kind.fields.map(({ id, value }) => [id, turning.numbers[id] ?? value])),
        }
      : null;
  const scaling = kind ? chosen : rope.scaling;
  const { base, rotary_dim, head_dim } = rope;
  // A scaling whose numbers contradict each other (a band that ends before it begins) has no speed for some pairs.
  const speedsOf = (/** @type {*} */ by) =>
    model
      .ropeFrequencies({ base, rotary_dim, head_dim, scaling: by }, context)
      .map((/** @type {number} */ speed) => (Number.isFinite(speed) ? speed : 0));
  const speeds = speedsOf(scaling);
  const unscaled = speedsOf(null);
  return {
    own,
    context,
    scaling,
    speeds,
    unscaled,
    scaled: speeds.some((speed, at) => speed !== unscaled[at]),
    pair: Math.min(turning.pair, speeds.length - 1),
    notice: own
      ? `${view.first.spec} turns ${several(speeds.length, "pair")} of the ${exact(head_dim)} channels of a head, base ${exact(base)}, pairing ${own.pairing}${among(model.ropes(view.first), own)}.`
      : `What is on screen has no rotary positions. This is what they would do to a head of ${exact(head_dim)} channels, base ${exact(base)}.`,
  };
}

/** In which kinds of layers that is so, where others turn otherwise. @param {Object<string, *>|null} ropes @param {*} own */
function among(ropes, own) {
  if (ropes === null) return "";
  const same = Object.keys(ropes).filter((kind) => JSON.stringify(ropes[kind]) === JSON.stringify(own));
  return `, in ${same.join(" and ")} layers; the table below has the others`;
}

// ---------------------------------------------------------------- the frame

/** @param {*} app */
function ropeFrame(app) {
  const turn = (/** @type {(turning: Turning) => Partial<Turning>} */ next) =>
    app.change((view) => ({ ...view, turning: { ...view.turning, ...next(view.turning) } }));
  const place = (/** @type {string} */ name) => h("div", { class: `slot ${name}` });
  const parts = {
    notice: h("p", { class: "hint" }),
    query: ropeSlider("rope-query", "Query's position", (value) =>
      turn(({ key }) => ({ query: value, key: Math.min(key, value) })),
    ),
    key: ropeSlider("rope-key", "Key's position", (value) =>
      turn(({ query }) => ({ key: value, query: Math.max(query, value) })),
    ),
    shift: ropeSlider("rope-shift", "Shift both: the key to", (value) =>
      turn(({ query, key }) => ({ key: value, query: value + query - key })),
    ),
    pair: ropeSlider("rope-pair", "Pair, from the fastest", (value) => turn(() => ({ pair: value }))),
    length: select(
      "rope-length",
      ROPE_LENGTHS.map((length) => [String(length), exact(length)]),
      (value) => turn(() => ({ length: Number(value) })),
    ),
    scaling: select(
      "rope-scaling",
      [["", "as on screen"], ...app.model.ropeKinds.map(({ kind, label }) => [kind, label])],
      (value) => turn(() => ({ scaling: value || null, numbers: {} })),
    ),
    arrows: place("turn"),
    told: place("told"),
    chart: place("scores"),
    numbers: place("numbers"),
    speeds: place("speeds"),
    table: h("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Speeds of the pairs" }),
    figures: place("rope-figures"),
    turn,
  };
  dragged(parts.chart, app);
  bodyOf("rope").append(
    parts.notice,
    h(
      "div",
      { class: "playground" },
      h(
        "div",
        { class: "levers" },
        parts.query.node,
        parts.key.node,
        parts.shift.node,
        parts.pair.node,
        h("div", { class: "field" }, h("label", { for: "rope-length" }, "Distances shown"), parts.length),
      ),
      h("div", { class: "dial-and-words" }, parts.arrows, parts.told),
    ),
    h("h3", {}, "Score against distance"),
    h(
      "p",
      { class: "hint" },
      "Of a query and a key that are alike: 1 where they meet, less where they have turned apart. Drag in the picture to move the key.",
    ),
    parts.chart,
    h(
      "ul",
      { class: "legend" },
      h("li", {}, h("i", { class: "stroke pair" }), "the chosen pair"),
      h("li", {}, h("i", { class: "stroke head" }), "the head, mean of its pairs"),
      h("li", { id: "unscaled-legend" }, h("i", { class: "stroke head unscaled" }), "the head without scaling"),
    ),
    h("h3", {}, "Speeds, and what scaling does to them"),
    h(
      "div",
      { class: "scaling" },
      h("div", { class: "field" }, h("label", { for: "rope-scaling" }, "Scaling"), parts.scaling),
      parts.numbers,
    ),
    parts.speeds,
    more("The speeds as a table", parts.table),
    parts.figures,
  );
  return parts;
}

/** @param {string} id @param {string} label @param {(value: number) => void} onValue */
function ropeSlider(id, label, onValue) {
  const range = h("input", { type: "range", id, min: "0", step: "1" });
  const typed = numberField({ id: `${id}-number`, "aria-label": `${label}, typed`, min: "0" }, (text) => {
    const wanted = Math.min(MOST_POSITION, Math.max(0, Math.round(Number(text) || 0)));
    onValue(Math.min(wanted, Number(typed.max)));
  });
  range.addEventListener("input", () => onValue(Number(range.value)));
  return {
    node: h("div", { class: "slider" }, h("label", { for: id }, label), typed, range),
    /** @param {number} value @param {number} most @param {number} [mostTyped] */
    update(value, most, mostTyped = most) {
      range.max = String(most);
      range.value = String(value);
      range.setAttribute("aria-valuetext", exact(value));
      range.style.setProperty("--at", String(share(value, 0, most)));
      typed.max = String(mostTyped);
      showNumber(typed, value);
    },
  };
}

/** Let a pointer in the chart of scores move the key. @param {HTMLElement} place @param {*} app */
function dragged(place, app) {
  const move = (/** @type {PointerEvent} */ event) => {
    const box = place.getBoundingClientRect();
    const at = share(event.clientX, box.left + 34, box.right - 10);
    app.change((view) => {
      const distance = Math.round(Math.min(1, Math.max(0, at)) * view.turning.length);
      const query = Math.max(view.turning.query, distance);
      return { ...view, turning: { ...view.turning, query, key: query - distance } };
    });
  };
  place.addEventListener("pointerdown", (event) => {
    place.setPointerCapture(event.pointerId);
    move(event);
  });
  place.addEventListener("pointermove", (event) => {
    if (place.hasPointerCapture(event.pointerId)) move(event);
  });
}

// ---------------------------------------------------------------- what is shown

/** @param {*} parts @param {Turning} turning @param {*} found */
function updatePositions(parts, { query, key, length }, { speeds, pair }) {
  const most = Math.max(2 * length - 1, query);
  parts.query.update(query, most, MOST_POSITION);
  parts.key.update(key, most, MOST_POSITION);
  parts.shift.update(key, most - (query - key), MOST_POSITION - (query - key));
  parts.pair.update(pair, speeds.length - 1);
  parts.length.value = String(length);
}

/** @param {*} parts @param {Turning} turning @param {*} found */
function showTurning(parts, { query, key, length }, { speeds, unscaled, scaled, pair }) {
  const speed = speeds[pair];
  const score = { pair: pairScore(speed, query, key), head: headScore(speeds, query, key) };
  const told = (/** @type {string} */ label, /** @type {string} */ id, /** @type {string} */ text) =>
    h("div", {}, h("dt", {}, label), h("dd", { id }, text));
  fill(parts.arrows, arrows(speed, query, key));
  fill(
    parts.told,
    h(
      "dl",
      {},
      told("Distance", "rope-distance", exact(query - key)),
      told("Angle between", "rope-angle", turnsOf(speed * (query - key))),
      told("The pair's score", "rope-pair-score", fixed(score.pair, 4)),
      told("The head's score", "rope-head-score", fixed(score.head, 4)),
      told("Pair turns once in", "rope-period", speed === 0 ? "never" : `${periodOf(speed)} positions`),
    ),
  );
  fill(
    parts.chart,
    scoreChart({
      width: widthOf(parts.chart),
      length,
      distance: query - key,
      pair,
      speeds,
      unscaled: scaled ? unscaled : null,
    }),
  );
  byId("unscaled-legend").hidden = !scaled;
}

/** @param {*} app @param {*} parts @param {Turning} turning @param {*} found */
function updateScaling(app, parts, turning, { own }) {
  parts.scaling.value = turning.scaling || "";
  parts.scaling.options[0].textContent = `as on screen: ${(own && own.scaling && own.scaling.kind) || "none"}`;
  const kind = app.model.ropeKinds.find((known) => known.kind === turning.scaling);
  const fields = kind ? kind.fields : [];
  const shape = `${turning.scaling}`;
  if (parts.numbers.dataset.shape !== shape) {
    parts.numbers.dataset.shape = shape;
    fill(
      parts.numbers,
      ...fields.map((field) => {
        const { id, label, min, max } = field;
        const input = h("input", {
          type: "number",
          id: `rope-${id}`,
          min,
          max,
          step: "any",
          inputmode: "decimal",
        });
        input.addEventListener("change", () =>
          parts.turn(({ numbers }) => ({
            numbers: { ...numbers, [id]: positive(field, Number(input.value)) },
          })),
        );
        return h("div", { class: "field" }, h("label", { for: `rope-${id}` }, label), input);
      }),
    );
  }
  for (const { id, value } of fields) {
    const input = /** @type {HTMLInputElement} */ (byId(`rope-${id}`));
    input.value = String(turning.numbers[id] ?? value);
  }
}

/** @param {*} app @param {*} found */
function speedTable(app, { speeds, unscaled, scaled }) {
  const pick = (/** @type {number} */ pair) => () =>
    app.change((view) => ({ ...view, turning: { ...view.turning, pair } }));
  return h(
    "table",
    { class: "figures speeds" },
    h("caption", { class: "unseen" }, "Positions a turn of every pair"),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ...["Pair", "Positions a turn", ...(scaled ? ["scaled", "slower by"] : [])].map((text) =>
          h("th", { scope: "col" }, text),
        ),
      ),
    ),
    h(
      "tbody",
      {},
      ...speeds.map((speed, at) =>
        h(
          "tr",
          { "data-pair": at, onclick: pick(at) },
          h("th", { scope: "row" }, String(at)),
          h("td", {}, periodOf(unscaled[at])),
          scaled ? h("td", {}, periodOf(speed)) : null,
          scaled
            ? h(
                "td",
                {},
                unscaled[at] === speed
                  ? "unchanged"
                  : speed === 0
                    ? "stopped"
                    : `× ${significant(unscaled[at] / speed, 4)}`,
              )
            : null,
        ),
      ),
    ),
  );
}

/** What the report says of rope, for each kind of layer where they differ. @param {Shown[]} shown */
function ropeFigures(shown) {
  if (!shown.some(({ report }) => report && report.rope)) return [];
  const named = shown.flatMap(({ report }) => Object.entries((report && report.rope && report.rope.by_kind) || {}));
  const kinds = new Set(named.filter(([, rope]) => rope).map(([kind]) => kind));
  const still = named.map(([kind]) => kind).filter((kind) => !kinds.has(kind));
  return [
    h("h3", {}, "As the report has it"),
    figureTable("Rotary positions", ROPE_ROWS("rope"), shown),
    ...[...kinds].flatMap((kind) => [
      h("h4", {}, `Layers of the kind ${kind}`),
      figureTable(`Rotary positions of ${kind}`, ROPE_ROWS(`rope.by_kind.${kind}`), shown),
    ]),
    ...still.map((kind) => h("p", { class: "hint" }, `Layers of the kind ${kind} do not turn.`)),
  ];
}
