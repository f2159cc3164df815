// What is on screen: the model, the one beside it, and the rope playground. All of it can be written into the page's
// address and read back from there, where anybody may have written anything.

/**
 * @typedef {{spec: string, choices: Object<string, string>, numbers: Object<string, number>, length: number|null,
 *   batch: number, dtype: string, kv_dtype: string, state_dtype: string}} State one model, as far as it is wished
 *   otherwise than declared
 * @typedef {{query: number, key: number, pair: number, length: number, scaling: string|null,
 *   numbers: Object<string, number>}} Turning the playground; a scaling of null is the model's own
 * @typedef {{first: State, second: State|null, turning: Turning}} View
 */

const DTYPES = ["dtype", "kv_dtype", "state_dtype"];
const AT_TOP = ["batch", "length"];
const SECOND = "beside";
const TURNING = { query: 64, key: 48, pair: 8, length: 256, scaling: null, numbers: {} };
const MOST_POSITION = 2 ** 24;
const MOST_FACTOR = 1e9;
const DECIMAL = /^[0-9]{1,12}(\.[0-9]{1,12})?$/;

/** What the page starts with. @param {*} model @param {string} spec @returns {View} */
function firstView(model, spec) {
  return { first: model.start(spec), second: null, turning: { ...TURNING, numbers: {} } };
}

/** @param {State} state @param {string} id @param {string} option @returns {State} */
function withChoice(state, id, option) {
  return { ...state, choices: { ...state.choices, [id]: option } };
}

/** @param {State} state @param {string} id @param {number} value @returns {State} */
function withNumber(state, id, value) {
  if (AT_TOP.includes(id)) return { ...state, [id]: value };
  return { ...state, numbers: { ...state.numbers, [id]: value } };
}

/**
 * A state as it can be: every slider where it may stand. Fewer query heads leave fewer divisors to share; what was
 * wished for is kept, so that key/value heads are back as soon as the query heads are.
 * @param {*} model @param {State} wished @returns {State}
 */
function settled(model, wished) {
  for (const slider of model.sliders(wished)) {
    const value = allowed(slider, slider.value);
    if (value !== slider.value) return settled(model, withNumber(wished, slider.id, value));
  }
  return wished;
}

/** The nearest value that a slider can have. @param {*} slider @param {number} value @returns {number} */
function allowed(slider, value) {
  const within = Math.min(slider.max, Math.max(slider.min, Math.round(value)));
  if (!slider.values) return within;
  return slider.values.reduce((best, next) => (Math.abs(next - within) < Math.abs(best - within) ? next : best));
}

/**
 * The view as it can be, with the model beside at the same context, batch and types: else the figures would compare
 * nothing. One with a table of positions goes no further than that.
 * @param {*} model @param {View} wished @returns {View}
 */
function settledView(model, wished) {
  const first = settled(model, wished.first);
  if (!wished.second) return { ...wished, first };
  const { batch, dtype, kv_dtype, state_dtype } = first;
  const second = { ...wished.second, length: model.lengthOf(first), batch, dtype, kv_dtype, state_dtype };
  return { ...wished, first, second: settled(model, second) };
}

/** What differs from the spec as it is declared. @param {*} model @param {State} state */
function changesOf(model, state) {
  const start = model.start(state.spec);
  const found = [];
  for (const { id, label, options, chosen, declared } of model.switches(state)) {
    const named = (/** @type {string} */ option) =>
      (options.find((known) => known.id === option) || { label: option }).label;
    if (chosen !== declared) {
      found.push({
        id: `switch-${id}`,
        label,
        now: named(chosen),
        was: named(declared),
        undo: (s) => withChoice(s, id, declared),
      });
    }
  }
  for (const { id, label, value, declared } of model.sliders(state)) {
    if (value !== declared) {
      found.push({
        id: `slider-${id}`,
        label,
        now: exact(value),
        was: exact(declared),
        undo: (s) => withNumber(s, id, declared),
      });
    }
  }
  for (const id of DTYPES) {
    if (state[id] !== start[id]) {
      found.push({
        id,
        label: DTYPE_LABELS[id],
        now: state[id],
        was: start[id],
        undo: (s) => ({ ...s, [id]: start[id] }),
      });
    }
  }
  return found;
}

// ---------------------------------------------------------------- the address

/** @param {*} model @param {View} view @param {string} home the spec that needs no mention */
function asHash(model, view, home) {
  const written = new URLSearchParams();
  if (view.first.spec !== home) written.set("spec", view.first.spec);
  writeState(model, view.first, written, "");
  if (view.second) {
    written.set(SECOND, view.second.spec);
    writeState(model, view.second, written, `${SECOND}.`);
  }
  for (const [name, value] of Object.entries(view.turning)) {
    if (name === "numbers") for (const [id, number] of Object.entries(value)) written.set(`rope.${id}`, String(number));
    else if (value !== TURNING[name]) written.set(`rope.${name}`, String(value));
  }
  return written.toString();
}

/** @param {*} model @param {State} state @param {URLSearchParams} written @param {string} prefix */
function writeState(model, state, written, prefix) {
  const start = model.start(state.spec);
  for (const { id, chosen, declared } of model.switches(state)) {
    if (chosen !== declared) written.set(`${prefix}switch.${id}`, chosen);
  }
  for (const { id, value, declared } of model.sliders(state)) {
    if (value !== declared) written.set(prefix + id, String(value));
  }
  for (const id of DTYPES) if (state[id] !== start[id]) written.set(prefix + id, state[id]);
}

/** The view that an address describes; what it says that cannot be is passed over. @param {*} model @param {string} hash @param {string} home @returns {View} */
function fromHash(model, hash, home) {
  const read = new URLSearchParams(hash.slice(0, 4000).replace(/^#/, ""));
  const known = (/** @type {string|null} */ name) => model.specs.some((spec) => spec.name === name);
  const named = read.get("spec");
  const view = firstView(model, known(named) ? named : home);
  view.first = readState(model, view.first, read, "");
  const second = read.get(SECOND);
  if (known(second)) view.second = readState(model, model.start(second), read, `${SECOND}.`);
  view.turning = readTurning(model, read);
  return view;
}

/** @param {*} model @param {State} start @param {URLSearchParams} read @param {string} prefix @returns {State} */
function readState(model, start, read, prefix) {
  let state = start;
  // What may be chosen can hang on what was chosen before, so each is looked up as the state then stands.
  for (const { id } of model.switches(start)) {
    const wanted = read.get(`${prefix}switch.${id}`);
    const now = model.switches(state).find((found) => found.id === id);
    const option = now && now.options.find((found) => found.id === wanted);
    if (option && option.available) state = withChoice(state, id, option.id);
  }
  for (const { id } of model.sliders(state)) {
    const wanted = wholeNumber(read.get(prefix + id));
    if (wanted) state = withNumber(state, id, wanted);
  }
  for (const id of DTYPES) {
    const wanted = read.get(prefix + id);
    if (wanted !== null && model.dtypes.includes(wanted)) state = { ...state, [id]: wanted };
  }
  return state;
}

/** @param {*} model @param {URLSearchParams} read @returns {Turning} */
function readTurning(model, read) {
  const turning = { ...TURNING, numbers: {} };
  for (const name of ["query", "key", "pair", "length"]) {
    const value = wholeNumber(read.get(`rope.${name}`));
    if (value !== null && value <= MOST_POSITION) turning[name] = value;
  }
  if (!ROPE_LENGTHS.includes(turning.length)) turning.length = TURNING.length;
  turning.key = Math.min(turning.key, turning.query);
  const kind = model.ropeKinds.find((known) => known.kind === read.get("rope.scaling"));
  if (kind) {
    turning.scaling = kind.kind;
    for (const field of kind.fields) {
      const text = read.get(`rope.${field.id}`);
      if (text !== null && DECIMAL.test(text)) turning.numbers[field.id] = positive(field, Number(text));
    }
  }
  return turning;
}

/** What a number of a scaling can be: above zero, within its bounds; else its default. @param {*} field @param {number} wanted */
function positive({ min, max, value }, wanted) {
  return wanted > 0 && wanted >= (min ?? 0) && wanted <= (max ?? MOST_FACTOR) ? wanted : value;
}

/** @param {string|null} text @returns {number|null} */
function wholeNumber(text) {
  return text !== null && /^[0-9]{1,15}$/.test(text) ? Number(text) : null;
}
