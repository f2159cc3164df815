// What a state chooses: options of switches, numbers of sliders, and what the tables of its model say then.

/** @param {*} data what Python has worked out @param {ReturnType<typeof createFormulas>} formulas */
function createChoices(data, { valueOf }) {
  const models = new Map(data.models.map((/** @type {*} */ model) => [model.name, model]));

  function modelOf(state) {
    const model = models.get(state.spec);
    if (!model) throw new Error(`no spec ${state.spec}`);
    return model;
  }

  /** The option of a switch. */
  function chosen(state, id) {
    return state.choices[id] ?? modelOf(state).declared[id];
  }

  /** The options of a switch, the declared one first: the order in which tables have them. */
  function optionsOf(model, id) {
    const declared = model.declared[id];
    const labels = data.switches.find((one) => one.id === id).options;
    return [declared, ...Object.keys(labels).filter((option) => option !== declared)];
  }

  /** What a table says of a state. */
  function looked(state, table) {
    let index = 0;
    for (const axis of table.axes) {
      const options = optionsOf(modelOf(state), axis);
      index = index * options.length + options.indexOf(chosen(state, axis));
    }
    return data.entries[table.values[index]];
  }

  /** A section of the spec as it is chosen; numbers that were moved are not in it yet. */
  function sectionOf(state, name) {
    const model = modelOf(state);
    const table = model.sections[name];
    return table ? looked(state, table) : model.spec[name];
  }

  /** Whether all options of a state go together. */
  function possible(state) {
    return Object.values(modelOf(state).sections).every(
      (table) => !table || looked(state, table) !== null || optional(table),
    );
  }

  /** Whether a table has nothing to say, as that of the kinds of layer where there are none. */
  function optional(table) {
    return table.values.every((value) => data.entries[value] === null);
  }

  /** The value of a number that can be moved; undefined where the spec on screen has none. */
  function numberOf(state, id) {
    if (id === "layers") return state.numbers.layers ?? modelOf(state).layers;
    if (id === "context" && !hasTable(state)) return modelOf(state).spec.context;
    const [section, field] = data.numbers[id];
    const declared = field === undefined ? modelOf(state).spec[section] : sectionOf(state, section)?.[field];
    return declared === undefined || declared === null ? undefined : (state.numbers[id] ?? declared);
  }

  /** Whether there is a row of a table for every position, so that the context is a size of the model. */
  function hasTable(state) {
    return looked(state, modelOf(state).ends).table_of_context;
  }

  /** The position beyond which a model cannot go; null where there is none. */
  function wallOf(state) {
    const wall = looked(state, modelOf(state).ends).hard_context;
    return wall === null ? null : valueOf(wall, numbersOf(state));
  }

  /** Tokens in use, as many as the spec says unless it is set otherwise. */
  function lengthOf(state) {
    return state.length ?? numberOf(state, "context");
  }

  /** All numbers of a state, by the names that formulas have for them. */
  function numbersOf(state) {
    const v = {
      batch: BigInt(state.batch),
      length: BigInt(lengthOf(state)),
      layers: BigInt(numberOf(state, "layers")),
    };
    for (const id of Object.keys(data.numbers)) {
      const number = numberOf(state, id);
      if (number !== undefined) v[id] = BigInt(number);
    }
    v.weight_bits = BigInt(data.bits[state.dtype]);
    v.cache_bits = BigInt(data.bits[state.kv_dtype]);
    v.state_bits = BigInt(data.bits[state.state_dtype]);
    return v;
  }

  /** The kind of every layer. */
  function patternOf(state) {
    const model = modelOf(state);
    const names = Object.keys(model.kinds);
    const layers = numberOf(state, "layers");
    if (names.length === 1) return Array(layers).fill(names[0]);
    return [...model.pattern.slice(0, layers)].map((letter) => names[letter.charCodeAt(0) - 65]);
  }

  function layersOfKinds(state) {
    const found = Object.create(null); // a kind may be called `constructor`
    for (const kind of patternOf(state)) found[kind] = (found[kind] ?? 0) + 1;
    return found;
  }

  /** Every piece of a kind of layer: what is around its parts, and the parts. */
  function piecesOf(state, kind) {
    const { norms, branches } = modelOf(state).kinds[kind];
    return [
      looked(state, norms),
      ...branches.flatMap((branch) => branch.parts.map((part) => looked(state, part.table))),
    ];
  }

  function switchesOf(state) {
    const model = modelOf(state);
    return data.switches
      .filter((one) => one.id in model.declared)
      .map((one) => ({
        id: one.id,
        label: one.label,
        chosen: chosen(state, one.id),
        declared: model.declared[one.id],
        options: optionsOf(model, one.id).map((option) => {
          const available = possible({ ...state, choices: { ...state.choices, [one.id]: option } });
          return {
            id: option,
            label: one.options[option] ?? model.labels[one.id],
            available,
            why: available ? "" : "the layers of this spec say what this would change",
          };
        }),
      }));
  }

  const SLIDERS = {
    layers: { label: "Layers", most: 128, step: 1 },
    hidden_size: { label: "Width", most: 16384, step: 8 },
    heads: { label: "Query heads", most: 128, step: 1 },
    kv_heads: { label: "Key/value heads", most: 128, step: 1 },
    head_dim: { label: "Channels of a head", most: 256, step: 2 },
    width: { label: "Feed-forward width", most: 65536, step: 1 },
    experts: { label: "Experts", most: 512, step: 1 },
    top_k: { label: "Experts per token", most: 64, step: 1 },
    context: { label: "Rows of the position table", most: 1048576, step: 1 },
    length: { label: "Context", most: 1048576, step: 1 },
    batch: { label: "Batch", most: 1024, step: 1 },
  };

  function slidersOf(state) {
    const model = modelOf(state);
    const declaredState = { ...state, numbers: {}, choices: {} };
    const inUse = { batch: [state.batch, 1], length: [lengthOf(state), numberOf(state, "context")] };
    const found = [];
    for (const [id, { label, most, step }] of Object.entries(SLIDERS)) {
      const [value, declared] = inUse[id] ?? [
        numberOf(state, id),
        numberOf(declaredState, id) ?? numberOf({ ...state, numbers: {} }, id),
      ];
      if (value === undefined || (id === "context" && !hasTable(state))) continue;
      const range = rangeOf(id, model, declared, most, state);
      found.push({
        id,
        label,
        step,
        value,
        declared,
        scale: ["context", "length", "batch", "width", "hidden_size"].includes(id) ? "log" : "linear",
        ...range,
      });
    }
    return found;
  }

  function rangeOf(id, model, declared, most, state) {
    if (id === "layers") {
      if (model.fixed_layers) return { min: declared, max: declared, values: null };
      const several = Object.keys(model.kinds).length > 1;
      const first = several ? firstWithAllKinds(model) : 1;
      return { min: first, max: several ? model.pattern.length : Math.max(most, 2 * declared), values: null };
    }
    const heads = numberOf(state, "heads");
    if (id === "kv_heads" && heads !== undefined) return { min: 1, max: heads, values: divisors(heads) };
    if (id === "top_k")
      return { min: 1, max: Math.min(Math.max(most, declared), numberOf(state, "experts")), values: null };
    if (id === "length") return { min: 1, max: wallOf(state) ?? Math.max(most, declared), values: null };
    if (id === "head_dim") return { min: 2, max: Math.max(most, declared), values: null };
    if (id === "hidden_size") return { min: 8, max: Math.max(most, declared), values: null };
    return { min: 1, max: Math.max(most, declared), values: null };
  }

  /** The least number of layers that has every kind: with fewer, the spec would name one that it never uses. */
  function firstWithAllKinds(model) {
    return (
      1 +
      Math.max(...Object.keys(model.kinds).map((_, index) => model.pattern.indexOf(String.fromCharCode(65 + index))))
    );
  }

  function divisors(number) {
    return Array.from({ length: number }, (_, index) => index + 1).filter((one) => number % one === 0);
  }

  return {
    modelOf,
    looked,
    sectionOf,
    possible,
    numberOf,
    numbersOf,
    lengthOf,
    wallOf,
    patternOf,
    layersOfKinds,
    piecesOf,
    switchesOf,
    slidersOf,
  };
}
