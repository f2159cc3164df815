/**
 * The models of the page. Nothing here knows a formula: all of them come from Python, printed as JavaScript, and are
 * evaluated for the state of the controls. Counts are BigInts, so they are exact.
 *
 * @typedef {{spec: string, choices: Object<string, string>, numbers: Object<string, number>, batch: number,
 *   dtype: string, kv_dtype: string, state_dtype: string}} State
 * `formulas` holds functions that make the lists of formulas from a way to round down.
 * `choices` and `numbers` hold what was changed; all else is as the spec declares it.
 */
function createModel(data, formulas) {
  const counts = formulas.counts(floor);
  const doubles = formulas.doubles(Math.floor);
  const models = new Map(data.models.map((model) => [model.name, model]));
  const RECURRENT = "state";

  /** The whole number at or below a / b, for a positive b. */
  function floor(a, b) {
    const quotient = a / b;
    return a % b < 0n ? quotient - 1n : quotient;
  }

  /** A formula's value: a number where it can be one exactly, a BigInt beyond. */
  function valueOf(formula, v) {
    if (!Array.isArray(formula)) return plain(counts[formula](v));
    const [above, below] = formula.map((index) => counts[index](v));
    return above % below === 0n ? plain(above / below) : Number(above) / Number(below);
  }

  function plain(count) {
    return count <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(count) : count;
  }

  /** The leaf that a tree of conditions leads to. */
  function leafOf(node, v, conditions = counts) {
    let found = data.nodes[node];
    while (Array.isArray(found)) found = data.nodes[conditions[found[0]](v) ? found[1] : found[2]];
    return found.leaf;
  }

  /** A text with its numbers. */
  function textOf(text, v) {
    if (typeof text === "string") return text;
    return text.map((part) => (Array.isArray(part) ? formatted(valueOf(part[0], v), part[1]) : part)).join("");
  }

  /** As Python's format() has it, for the formats that texts use. */
  function formatted(number, form) {
    if (form === "") return String(number);
    if (form === ",") return number.toLocaleString("en-US");
    if (form === "g") return String(Number(Number(number).toPrecision(6)));
    throw new Error(`no format ${form}`);
  }

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
    return Object.values(modelOf(state).sections).every((table) => !table || looked(state, table) !== null || optional(table));
  }

  /** Whether a table has nothing to say, as that of the kinds of layer where there are none. */
  function optional(table) {
    return table.values.every((value) => data.entries[value] === null);
  }

  /** The value of a number that can be moved; undefined where the spec on screen has none. */
  function numberOf(state, id) {
    if (id === "layers") return state.numbers.layers ?? modelOf(state).layers;
    const [section, field] = data.numbers[id];
    const declared = field === undefined ? modelOf(state).spec[section] : sectionOf(state, section)?.[field];
    return declared === undefined || declared === null ? undefined : (state.numbers[id] ?? declared);
  }

  /** All numbers of a state, by the names that formulas have for them. */
  function numbersOf(state) {
    const v = { batch: BigInt(state.batch), layers: BigInt(numberOf(state, "layers")) };
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
    const found = {};
    for (const kind of patternOf(state)) found[kind] = (found[kind] ?? 0) + 1;
    return found;
  }

  /** Every piece of a kind of layer: what is around its parts, and the parts. */
  function piecesOf(state, kind) {
    const { norms, branches } = modelOf(state).kinds[kind];
    return [looked(state, norms), ...branches.flatMap((branch) => branch.parts.map((part) => looked(state, part.table)))];
  }

  // ------------------------------------------------------------------ sums

  /** Sums over all pieces, of the whole model and of its layers, and over caches by their kind. */
  function sumsOf(state, v) {
    const all = {};
    const caches = {};
    const shared = new Set();
    const add = (sums, name, value) => (sums[name] = (sums[name] ?? 0n) + value);

    for (const [kind, count] of Object.entries(layersOfKinds(state))) {
      const layers = BigInt(count);
      const cached = new Set();
      for (const piece of piecesOf(state, kind)) {
        for (const [name, formula] of piece.sums.flatMap((node) => leafOf(node, v))) {
          if (name.startsWith("cache.")) addCache(caches, name, formula, layers, v, cached);
          else addCount(all, name, counts[formula](v) * layers);
        }
        if (piece.once && !shared.has(piece.once.name)) {
          shared.add(piece.once.name);
          for (const [name, formula] of piece.once.sums.flatMap((node) => leafOf(node, v))) addCount(all, name, counts[formula](v));
        }
      }
    }
    for (const [name, formula] of looked(state, modelOf(state).ends).sums.flatMap((node) => leafOf(node, v))) {
      const value = counts[formula](v);
      add(all, name.startsWith("ends.") ? `all_${name.slice(5)}` : name, value);
    }
    return { all, caches };

    function addCount(sums, name, value) {
      if (["linear", "over_sequence", "behind_context", "all_pairs"].includes(name)) return add(sums, name, value);
      add(sums, `all_${name}`, value);
      return add(sums, `layers_${name}`, value);
    }
  }

  /** Add what layers hold of a kind of cache; growth is a fraction, [above, below]. */
  function addCache(caches, name, formula, layers, v, cached) {
    const [, kind, what] = name.split(".");
    const found = (caches[kind] ??= { growth: [0n, 1n] });
    if (what === "layers") {
      if (!cached.has(kind)) found.layers = (found.layers ?? 0n) + layers;
      cached.add(kind);
    } else if (what === "growth") {
      const [above, below] = Array.isArray(formula) ? formula.map((one) => counts[one](v)) : [counts[formula](v), 1n];
      const [sum, under] = found.growth;
      found.growth = [sum * below + above * layers * under, under * below];
    } else {
      found[what] = (found[what] ?? 0n) + counts[formula](v) * layers;
    }
  }

  /** The sums as numbers of the formulas that follow from them. */
  function boundSums({ all, caches }) {
    const zero = { get: (target, name) => target[name] ?? 0n };
    const v = { ...all };
    for (const [side, recurrent] of [["rows", false], ["states", true]]) {
      v[`${side}_growth`] = 0n;
      v[`${side}_growth_below`] = 1n;
      for (const [kind, sums] of Object.entries(caches)) {
        if ((kind === RECURRENT) !== recurrent) continue;
        const below = v[`${side}_growth_below`];
        v[`${side}_growth`] = v[`${side}_growth`] * sums.growth[1] + sums.growth[0] * below;
        v[`${side}_growth_below`] = below * sums.growth[1];
        for (const what of ["window_growth", "fixed", "held", "reference_held", "reserved"]) {
          v[`${side}_${what}`] = (v[`${side}_${what}`] ?? 0n) + (sums[what] ?? 0n);
        }
      }
    }
    return new Proxy(v, zero);
  }

  // ------------------------------------------------------------------ report

  /** The piece that speaks for a model: of the most common kind of layer that has one, the first of equally common ones. */
  function typical(state, find) {
    const kinds = Object.entries(layersOfKinds(state))
      .map(([kind, count]) => [find(piecesOf(state, kind)), count])
      .filter(([piece]) => piece);
    return kinds.reduce((best, one) => (best === null || one[1] > best[1] ? one : best), null)?.[0] ?? null;
  }

  /** The widest feed-forward among pieces; experts before others. */
  function feedForward(pieces, v) {
    const rank = (piece) => [piece.routed ? 1 : 0, counts[piece.ffn.width](v)];
    return pieces
      .filter((piece) => piece.ffn)
      .reduce((best, one) => {
        if (best === null) return one;
        const [a, b] = [rank(best), rank(one)];
        return b[0] > a[0] || (b[0] === a[0] && b[1] > a[1]) ? one : best;
      }, null);
  }

  function reportOf(state) {
    if (!possible(state) || findingsOf(state).some((finding) => finding.level === "error")) return null;
    const v = numbersOf(state);
    const model = modelOf(state);
    const sums = sumsOf(state, v);
    const ends = looked(state, model.ends);
    const experts = typical(state, (pieces) => feedForward(pieces, v)?.routed ? feedForward(pieces, v) : null);
    const bound = boundSums(sums);
    const routed = experts ? experts.routed.map((formula) => counts[formula](v)) : null;
    const known = new Proxy(bound, {
      get: (target, name) => {
        if (routed && ["experts", "top_k", "expert_params"].includes(name)) return routed[["experts", "top_k", "expert_params"].indexOf(name)];
        return name in v ? v[name] : target[name];
      },
    });
    const report = {
      layers: numberOf(state, "layers"),
      hidden_size: Number(v.hidden_size),
      vocab_size: model.spec.vocab_size,
      context: Number(v.context),
      dtype: model.spec.dtype,
      tied: sectionOf(state, "embedding").tied,
    };
    for (const [key, formula] of Object.entries(data.figures)) {
      if (key.startsWith("moe.") && !experts) continue;
      put(report, key, valueOf(formula, known));
    }
    report.weights.dtype = state.dtype;
    Object.assign(report.kv_cache, {
      dtype: state.kv_dtype,
      state_dtype: state.state_dtype,
      context: Number(v.context),
      batch: state.batch,
      by_kind: Object.fromEntries(Object.entries(sums.caches).map(([kind, found]) => [kind, kindOf(found)])),
    });
    report.flops.context = Number(v.context);
    report.limits = {
      hard_context: ends.hard_context === null ? null : valueOf(ends.hard_context, v),
      trained_context: ends.trained_context === null ? Number(v.context) : valueOf(ends.trained_context, v),
    };
    const kinds = layersOfKinds(state);
    if (Object.keys(kinds).length > 1) report.layer_kinds = kinds;
    addShapes(report, state, v);
    return report;
  }

  function kindOf(found) {
    const [above, below] = found.growth;
    return {
      layers: plain(found.layers ?? 0n),
      elements_per_token: above % below === 0n ? plain(above / below) : Number(above) / Number(below),
      window_elements_per_token: plain(found.window_growth ?? 0n),
      fixed_elements: plain(found.fixed ?? 0n),
      elements_at_context: plain(found.held ?? 0n),
    };
  }

  function addShapes(report, state, v) {
    const attending = typical(state, (pieces) => pieces.find((piece) => piece.heads) ?? null);
    if (attending) {
      const [heads, kv_heads, head_dim] = attending.heads.map((formula) => valueOf(formula, v));
      report.attention = { heads, kv_heads, head_dim, group_size: Math.floor(heads / kv_heads) };
    }
    const rope = ropeOf(state);
    if (rope) {
      const periods = ofPairs("speed", rope, Number(v.context)).filter((speed) => speed !== 0).map((speed) => (2 * Math.PI) / speed);
      report.rope = { pairs: periods.length, base: rope.base, pairing: rope.pairing, fastest_period: Math.min(...periods), slowest_period: Math.max(...periods) };
    }
    const feeding = typical(state, (pieces) => feedForward(pieces, v));
    if (feeding) report.ffn = { kind: feeding.kind, width: valueOf(feeding.ffn.width, v), gated: feeding.ffn.gated, activation: feeding.ffn.activation };
  }

  function put(report, key, value) {
    const path = key.split(".");
    const last = path.pop();
    const holder = path.reduce((found, name) => (found[name] ??= {}), report);
    holder[last] = value;
  }

  // ------------------------------------------------------------------ findings

  const LEVELS = { E: "error", W: "warning", N: "note" };

  function findingsOf(state) {
    if (!possible(state)) {
      return [{ code: "", level: "error", message: "these choices do not go together in this spec", mend: "take one of them back" }];
    }
    const v = numbersOf(state);
    const pieces = [looked(state, modelOf(state).ends), ...Object.keys(layersOfKinds(state)).flatMap((kind) => piecesOf(state, kind))];
    const asked = (name) => pieces.flatMap((piece) => piece[name].flatMap((node) => leafOf(node, v)));
    const checks = asked("checks").map((finding) => worded(finding, v));
    const wrong = checks.some((finding) => finding.level === "error");
    return unique(wrong ? checks : [...checks, ...asked("advice").map((finding) => worded(finding, v))]);
  }

  function worded(finding, v) {
    return { code: finding.code, level: LEVELS[finding.code[0]], message: textOf(finding.message, v), mend: textOf(finding.mend, v) };
  }

  function unique(findings) {
    return [...new Map(findings.map((finding) => [`${finding.code} ${finding.message}`, finding])).values()];
  }

  // ------------------------------------------------------------------ controls

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
    context: { label: "Context", most: 1048576, step: 1 },
    batch: { label: "Batch", most: 1024, step: 1 },
  };

  function slidersOf(state) {
    const model = modelOf(state);
    const declaredState = { ...state, numbers: {}, choices: {} };
    const found = [];
    for (const [id, { label, most, step }] of Object.entries(SLIDERS)) {
      const value = id === "batch" ? state.batch : numberOf(state, id);
      if (value === undefined) continue;
      const declared = id === "batch" ? 1 : (numberOf(declaredState, id) ?? numberOf({ ...state, numbers: {} }, id));
      const range = rangeOf(id, model, declared, most, state);
      found.push({ id, label, step, value, declared, scale: ["context", "batch", "width", "hidden_size"].includes(id) ? "log" : "linear", ...range });
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
    if (id === "top_k") return { min: 1, max: Math.min(Math.max(most, declared), numberOf(state, "experts")), values: null };
    if (id === "head_dim") return { min: 2, max: Math.max(most, declared), values: null };
    if (id === "hidden_size") return { min: 8, max: Math.max(most, declared), values: null };
    return { min: 1, max: Math.max(most, declared), values: null };
  }

  /** The least number of layers that has every kind: with fewer, the spec would name one that it never uses. */
  function firstWithAllKinds(model) {
    return 1 + Math.max(...Object.keys(model.kinds).map((_, index) => model.pattern.indexOf(String.fromCharCode(65 + index))));
  }

  function divisors(number) {
    return Array.from({ length: number }, (_, index) => index + 1).filter((one) => number % one === 0);
  }

  // ------------------------------------------------------------------ the spec

  function changed(state) {
    const model = modelOf(state);
    const switched = Object.entries(state.choices).some(([id, option]) => id in model.declared && option !== model.declared[id]);
    const moved = Object.keys(state.numbers).some((id) => {
      const value = numberOf(state, id);
      return value !== undefined && value !== numberOf({ ...state, numbers: {} }, id);
    });
    return switched || moved;
  }

  const OF_A_PUBLISHED_MODEL = ["family", "source", "published"];

  function specOf(state) {
    const model = modelOf(state);
    if (!changed(state)) return model.spec;
    const spec = {};
    for (const [key, value] of Object.entries(model.spec)) {
      if (OF_A_PUBLISHED_MODEL.includes(key)) continue;
      spec[key] = structuredClone(model.sections[key] && key !== "layers" ? sectionOf(state, key) : value);
    }
    spec.name = `${spec.name}-changed`.slice(-100);
    for (const [id, path] of Object.entries(data.numbers)) {
      const number = numberOf(state, id);
      if (number !== undefined && path.length === 1) spec[path[0]] = number;
      else if (number !== undefined) spec[path[0]][path[1]] = number;
    }
    spec.layers = layersOf(state);
    return spec;
  }

  function layersOf(state) {
    const declared = modelOf(state).spec.layers;
    const count = numberOf(state, "layers");
    if (typeof declared === "number") return count;
    const kinds = looked(state, modelOf(state).sections.layers) ?? declared.kinds;
    return { ...declared, count, kinds, pattern: count === declared.count ? declared.pattern : written(patternOf(state)) };
  }

  /** A pattern in words: runs as `5*local`, and what repeats from its start on as `4*(...)`. */
  function written(pattern) {
    const runs = [];
    for (const kind of pattern) {
      if (runs.length && runs.at(-1)[1] === kind) runs.at(-1)[0] += 1;
      else runs.push([1, kind]);
    }
    const words = runs.map(([count, kind]) => (count === 1 ? kind : `${count}*${kind}`));
    const found = [];
    for (let at = 0; at < words.length; ) {
      const [times, length] = repetition(words, at);
      found.push(times > 1 ? `${times}*(${words.slice(at, at + length).join(", ")})` : words[at]);
      at += times > 1 ? times * length : 1;
    }
    return found.join(", ");
  }

  /** How often which length of words repeats from a place on, where that covers most. */
  function repetition(words, at) {
    let best = [1, 1];
    for (let length = 2; at + 2 * length <= words.length; length += 1) {
      const unit = words.slice(at, at + length).join();
      let times = 1;
      while (words.slice(at + times * length, at + (times + 1) * length).join() === unit) times += 1;
      if (times > 1 && times * length > best[0] * best[1]) best = [times, length];
    }
    return best;
  }

  /** YAML as a person writes it: a line for every key, with mappings in braces where they fit into one. */
  function yamlOf(spec) {
    return `${Object.entries(spec).map(([key, value]) => block(key, value, 0)).join("\n")}\n`;
  }

  function block(key, value, depth) {
    const indent = "  ".repeat(depth);
    const line = `${indent}${key}: ${flow(value)}`;
    const isMapping = value !== null && typeof value === "object" && !Array.isArray(value);
    if (line.length <= 100 || typeof value !== "object" || value === null) return line;
    if (isMapping) return [`${indent}${key}:`, ...Object.entries(value).map(([name, one]) => block(name, one, depth + 1))].join("\n");
    return [`${indent}${key}:`, ...value.map((one) => `${indent}  - ${flow(one)}`)].join("\n");
  }

  function flow(value) {
    if (Array.isArray(value)) return `[${value.map(flow).join(", ")}]`;
    if (value !== null && typeof value === "object") {
      return `{${Object.entries(value).map(([key, one]) => `${key}: ${flow(one)}`).join(", ")}}`;
    }
    if (typeof value === "string") return /^[A-Za-z][A-Za-z0-9_.\/-]*$/.test(value) && !/^(true|false|null|yes|no|on|off)$/i.test(value) ? value : JSON.stringify(value);
    return value === null ? "null" : String(value);
  }

  function commandOf(state) {
    return changed(state) ? "archc generate my-model.yaml -o model.py" : `archc generate ${state.spec} -o model.py`;
  }

  // ------------------------------------------------------------------ drawing

  function drawingOf(state) {
    const v = numbersOf(state);
    const model = modelOf(state);
    const kinds = {};
    for (const kind of Object.keys(layersOfKinds(state))) {
      const { parallel, norms, branches } = model.kinds[kind];
      const around = looked(state, norms);
      kinds[kind] = {
        parallel,
        shared_norm: around.shared,
        branches: branches.map((branch, index) => ({
          before: around.before[index],
          after: around.after[index],
          on_sum: branch.on_sum,
          parts: branch.parts.map((part) => {
            const piece = looked(state, part.table);
            return { section: part.section, kind: piece.kind, words: leafOf(piece.words, v).map((text) => textOf(text, v)) };
          }),
        })),
      };
    }
    const ends = looked(state, model.ends);
    const position = sectionOf(state, "position");
    const added = position && { learned: `table of ${Number(v.context).toLocaleString("en-US")}`, sinusoidal: "sinusoids" }[position.kind];
    const norm = sectionOf(state, "norm");
    return {
      pattern: patternOf(state),
      kinds,
      embedding: { words: [`${model.spec.vocab_size.toLocaleString("en-US")} tokens`], position: added ?? (ends.hard_context === null ? null : "table") },
      final_norm: model.spec.final_norm === false ? null : { rmsnorm: "RMSNorm", layernorm: "LayerNorm" }[norm.kind] ?? "L2 norm",
      head: { tied: sectionOf(state, "embedding").tied, words: [] },
    };
  }

  // ------------------------------------------------------------------ rotation

  function ropeOf(state) {
    const v = numbersOf(state);
    const piece = typical(state, (pieces) => pieces.find((one) => one.rope) ?? null);
    if (!piece) return null;
    const { base, pairing, head_dim, rotary_dim, scaling } = piece.rope;
    return { base, pairing, head_dim: valueOf(head_dim, v), rotary_dim: valueOf(rotary_dim, v), scaling };
  }

  /** What a kind of scaling says of every pair: `what` is "speed", radians per position, or "kept", from 0 to 1. */
  function ofPairs(what, { base, rotary_dim, head_dim, scaling }, length) {
    const kind = data.rotation.find((one) => one.kind === (scaling?.kind ?? "none"));
    const stated = Object.fromEntries(Object.entries(scaling ?? {}).filter(([, value]) => typeof value === "number"));
    const v = { base, rotary_dim, head_dim, length, ...kind.numbers, ...stated };
    return Array.from({ length: Math.floor(rotary_dim / 2) }, (_, pair) => {
      const tables = Object.fromEntries(kind.tables.map((name) => [name, scaling[name]?.[pair] ?? 1]));
      const numbers = { ...v, ...tables, pair };
      return doubles[leafOf(kind[what], numbers, doubles)](numbers);
    });
  }

  return {
    specs: data.models.map((model) => ({ name: model.name, title: model.spec.name, hidden_size: model.spec.hidden_size, layers: model.layers })),
    dtypes: Object.keys(data.bits),
    start: (name) => {
      const { dtype } = modelOf({ spec: name }).spec;
      return { spec: name, choices: {}, numbers: {}, batch: 1, dtype, kv_dtype: dtype, state_dtype: dtype };
    },
    switches: switchesOf,
    sliders: slidersOf,
    report: reportOf,
    findings: findingsOf,
    drawing: drawingOf,
    specText: (state) => yamlOf(specOf(state)),
    command: commandOf,
    rope: ropeOf,
    ropeKinds: data.rotation.map(({ kind, label, numbers }) => ({
      kind,
      label,
      fields: Object.entries(numbers).map(([id, value]) => ({ id, label: id.replaceAll("_", " "), value, min: 0, max: null })),
    })),
    ropeFrequencies: (rope, length) => ofPairs("speed", rope, length),
    ropeKept: (rope) => ofPairs("kept", rope, 1),
  };
}
