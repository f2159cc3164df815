// The form: which model, its switches, its sizes. Controls are made once and then kept up to date, so that one which
// is being dragged or typed into is never taken away.

const DTYPE_LABELS = { dtype: "Weights in", kv_dtype: "Cache in", state_dtype: "States in" };
/** Changes that a model beside has from the first one. */
const SHARED = [...DTYPES, "slider-length", "slider-batch"];
const IN_USE = ["length", "batch"];

/** @param {*} app @returns {(view: View, all: Shown[]) => void} brings every control up to date */
function createControls(app) {
  byId("design").addEventListener("submit", (event) => event.preventDefault());
  const updates = [createModels(app), createChanges(app), createSwitches(app), createSliders(app), createTypes(app)];
  return (view, all) => updates.forEach((update) => update(view, all));
}

// ---------------------------------------------------------------- which models

/** @param {*} app */
function createModels(app) {
  const first = select(
    "spec",
    app.model.specs.map((spec) => [spec.name, titleOf(spec)]),
    (name) => app.change((view) => ({ ...view, first: app.model.start(name) })),
  );
  const second = select(
    "second",
    [["", "nothing"], ["=", "this one, as it is now"], ...app.model.specs.map((spec) => [spec.name, titleOf(spec)])],
    (name) =>
      app.change((view) => ({
        ...view,
        second: name === "=" ? view.first : name ? app.model.start(name) : null,
      })),
  );
  byId("models").append(
    h("div", { class: "field" }, h("label", { for: "spec" }, "Start from"), first),
    h("div", { class: "field" }, h("label", { for: "second" }, "Beside it"), second),
    h("p", { class: "hint", id: "second-hint", hidden: true }),
  );
  second.setAttribute("aria-describedby", "second-hint");
  return (/** @type {View} */ view, /** @type {Shown[]} */ all) => {
    first.value = view.first.spec;
    const kept = view.second !== null && changesOf(app.model, view.second).some(({ id }) => !SHARED.includes(id));
    second.value = view.second ? view.second.spec : "";
    const hint = byId("second-hint");
    hint.hidden = view.second === null;
    const wrong = all.length > 1 && all[1].findings.find(({ level }) => level === "error");
    const shorter = view.second !== null && app.model.lengthOf(view.second) < app.model.lengthOf(view.first);
    const context = shorter ? "as long a context as its table of positions allows, the same" : "the same context,";
    hint.textContent = wrong
      ? `No figures beside: ${wrong.message}.`
      : `${kept ? "As it was when you chose it, but at" : "At"} ${context} batch and types.`;
  };
}

/** @param {{name: string, title: string}} spec */
function titleOf(spec) {
  return spec.title && spec.title !== spec.name ? `${spec.name} · ${spec.title}` : spec.name;
}

/** @param {string} id @param {Array<Array<string>>} options @param {(value: string) => void} onChoice */
function select(id, options, onChoice) {
  const made = h("select", { id }, ...options.map(([value, label]) => h("option", { value }, label)));
  made.addEventListener("change", () => onChoice(made.value));
  return made;
}

// ---------------------------------------------------------------- what was changed

/** @param {*} app */
function createChanges(app) {
  const place = byId("changes");
  return (view) => {
    const changes = changesOf(app.model, view.first);
    place.replaceChildren(
      ...(changes.length === 0
        ? [h("p", { class: "hint" }, `As ${view.first.spec} is declared.`)]
        : [
            h("h3", { class: "unseen" }, "Changed from the declared spec"),
            h("ul", { class: "chips" }, ...changes.map((change) => h("li", {}, chip(app, change)))),
            h(
              "button",
              { type: "button", class: "plain", id: "reset-all", onclick: () => resetAll(app) },
              `Back to ${view.first.spec} as declared`,
            ),
          ]),
    );
  };
}

/** @param {*} app @param {*} change */
function chip(app, { label, now, was, undo }) {
  const back = () => {
    app.change((view) => ({ ...view, first: undo(view.first) }));
    byId("spec").focus();
  };
  return h(
    "button",
    { type: "button", onclick: back, "aria-label": `${label}: ${now}, declared ${was}. Take back` },
    h("span", {}, label),
    h("s", {}, was),
    h("b", {}, now),
    h("i", { "aria-hidden": "true" }, "×"),
  );
}

/** @param {*} app */
function resetAll(app) {
  app.change((view) => ({ ...view, first: app.model.start(view.first.spec) }));
  byId("spec").focus();
}

// ---------------------------------------------------------------- switches

/** @param {*} app */
function createSwitches(app) {
  const place = byId("switches");
  let shown = "";
  return (view) => {
    const found = app.model.switches(view.first);
    const shape = JSON.stringify(
      found.map(({ id, label, options }) => [id, label, options.map((option) => [option.id, option.label])]),
    );
    if (shape !== shown) {
      place.replaceChildren(...found.map((one) => switchOf(app, one)));
      shown = shape;
    }
    for (const one of found) updateSwitch(one);
  };
}

/** @param {*} app @param {*} one */
function switchOf(app, { id, label, options }) {
  return h(
    "fieldset",
    { class: "switch", id: `switch-${id}` },
    h("legend", {}, label),
    h(
      "div",
      { class: "options" },
      ...options.map((option) => {
        const input = h("input", {
          type: "radio",
          name: `switch-${id}`,
          value: option.id,
          id: `switch-${id}-${option.id}`,
        });
        input.addEventListener("change", () =>
          app.change((view) => ({ ...view, first: withChoice(view.first, id, option.id) })),
        );
        return h("label", {}, input, h("span", {}, option.label));
      }),
    ),
    h("p", { class: "hint", id: `switch-${id}-why`, hidden: true }),
  );
}

/** @param {*} one */
function updateSwitch({ id, options, chosen, declared }) {
  const reasons = [];
  for (const option of options) {
    const input = /** @type {HTMLInputElement} */ (byId(`switch-${id}-${option.id}`));
    input.checked = option.id === chosen;
    input.disabled = !option.available;
    const label = /** @type {HTMLElement} */ (input.parentElement);
    label.classList.toggle("declared", option.id === declared);
    label.title = option.available ? (option.id === declared ? "as declared" : "") : option.why;
    if (!option.available && option.why) reasons.push(`${option.label}: ${option.why}`);
  }
  const why = byId(`switch-${id}-why`);
  why.textContent = reasons.join("; ");
  why.hidden = reasons.length === 0;
  byId(`switch-${id}`).toggleAttribute("aria-describedby", false);
  if (reasons.length) byId(`switch-${id}`).setAttribute("aria-describedby", why.id);
}

// ---------------------------------------------------------------- sliders

/** @param {*} app */
function createSliders(app) {
  /** @type {Map<string, ReturnType<typeof sliderOf>>} */
  const made = new Map();
  let shown = "";
  return (view) => {
    const found = app.model.sliders(view.first);
    for (const slider of found) if (!made.has(slider.id)) made.set(slider.id, sliderOf(app, slider));
    const ids = found.map((slider) => slider.id).join();
    if (ids !== shown) {
      const nodes = (/** @type {boolean} */ use) =>
        found.filter(({ id }) => IN_USE.includes(id) === use).map(({ id }) => made.get(id).node);
      byId("sizes").replaceChildren(...nodes(false));
      byId("use").prepend(...nodes(true));
      shown = ids;
    }
    for (const slider of found) made.get(slider.id).update(slider);
  };
}

/**
 * A slider, the same number to type, and the way back. The range itself runs over steps: whole numbers, or the stops
 * of a scale that is no straight line.
 * @param {*} app @param {*} first
 */
function sliderOf(app, first) {
  const { id, label } = first;
  const name = `slider-${id}`;
  /** @type {*} */
  let now = first;
  /** @type {number[]|null} */
  let stops = null;
  const range = h("input", { type: "range", id: name });
  const typed = numberField({ id: `${name}-number`, "aria-label": `${label}, typed` }, (text) => {
    const wanted = text.trim() === "" ? now.value : allowed(now, Number(text));
    if (String(wanted) !== text) say(`${label}: ${exact(wanted)} is the nearest that can be`);
    set(wanted);
    showNumber(typed, wanted);
  });
  const back = h("button", { type: "button", class: "back", id: `${name}-back` });
  const set = (/** @type {number} */ value) =>
    app.change((view) => ({ ...view, first: withNumber(view.first, id, value) }));
  range.addEventListener("input", () => set(stops ? stops[Number(range.value)] : Number(range.value)));
  back.addEventListener("click", () => {
    set(now.declared);
    range.focus();
  });
  const node = h("div", { class: "slider" }, h("label", { for: name }, label), back, typed, range);
  return {
    node,
    update(/** @type {*} */ slider) {
      now = slider;
      stops = stopsOf(slider);
      range.min = stops ? "0" : String(slider.min);
      range.max = stops ? String(stops.length - 1) : String(slider.max);
      range.step = stops ? "1" : String(slider.step);
      range.value = String(stops ? nearestStop(stops, slider.value) : slider.value);
      range.setAttribute("aria-valuetext", exact(slider.value));
      range.style.setProperty("--at", String(share(Number(range.value), Number(range.min), Number(range.max))));
      typed.min = String(slider.min);
      typed.max = String(slider.max);
      showNumber(typed, slider.value);
      back.hidden = slider.value === slider.declared;
      back.textContent = `↺ ${exact(slider.declared)}`;
      back.setAttribute("aria-label", `${label}: back to ${exact(slider.declared)}, as declared`);
      node.classList.toggle("changed", !back.hidden);
    },
  };
}

/** @param {number} value @param {number} low @param {number} high */
function share(value, low, high) {
  return high > low ? (value - low) / (high - low) : 0;
}

/** The values that the range stops at; null where it runs evenly over whole numbers. @param {*} slider @returns {number[]|null} */
function stopsOf({ min, max, step, value, declared, scale, values }) {
  if (values) return values;
  if (scale !== "log") return null;
  const found = new Set([min, max, value, declared]);
  for (let power = 1; power <= max; power *= 2) {
    for (const quarter of [1, 1.25, 1.5, 1.75]) {
      const stop = Math.round((power * quarter) / step) * step;
      if (stop >= min && stop <= max) found.add(stop);
    }
  }
  return [...found].sort((a, b) => a - b);
}

/** @param {number[]} stops @param {number} value */
function nearestStop(stops, value) {
  let best = 0;
  for (let at = 1; at < stops.length; at++) if (Math.abs(stops[at] - value) < Math.abs(stops[best] - value)) best = at;
  return best;
}

// ---------------------------------------------------------------- types

/** @param {*} app */
function createTypes(app) {
  const made = DTYPES.map((id) => {
    const made = select(
      id,
      app.model.dtypes.map((dtype) => [dtype, dtype]),
      (dtype) => app.change((view) => ({ ...view, first: { ...view.first, [id]: dtype } })),
    );
    return made;
  });
  byId("use").append(
    h(
      "div",
      { class: "types" },
      ...DTYPES.map((id, at) => h("div", { class: "field" }, h("label", { for: id }, DTYPE_LABELS[id]), made[at])),
    ),
  );
  return (view) => DTYPES.forEach((id, at) => (made[at].value = view.first[id]));
}
