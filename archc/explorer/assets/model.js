/**
 * The models of the page. Nothing here knows a formula: all of them come from Python, printed as JavaScript, and are
 * evaluated for the state of the controls.
 *
 * @typedef {{spec: string, choices: Object<string, string>, numbers: Object<string, number>, length: number|null,
 *   batch: number, dtype: string, kv_dtype: string, state_dtype: string}} State
 * `choices` and `numbers` hold what was changed; all else is as the spec declares it. A length of null is its context.
 */
function createModel(data, functions) {
  const formulas = createFormulas(data, functions);
  const choices = createChoices(data, formulas);
  const { valueOf, countOf, doubleOf, leafOf, textOf } = formulas;
  const { modelOf, looked, sectionOf, possible, numberOf, numbersOf, lengthOf, wallOf, patternOf } = choices;
  const { layersOfKinds, piecesOf } = choices;
  const { sumsOf, boundSums } = createSums(formulas, choices);

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
    const rank = (piece) => [piece.routed ? 1 : 0, countOf(piece.ffn.width, v)];
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
    const experts = typical(state, (pieces) => (feedForward(pieces, v)?.routed ? feedForward(pieces, v) : null));
    const bound = boundSums(sums);
    const routed = experts ? experts.routed.map((formula) => countOf(formula, v)) : null;
    const known = new Proxy(bound, {
      get: (target, name) => {
        if (routed && ["experts", "top_k", "expert_params"].includes(name))
          return routed[["experts", "top_k", "expert_params"].indexOf(name)];
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
    report.weights.conventions = data.conventions.weights;
    Object.assign(report.kv_cache, {
      dtype: state.kv_dtype,
      state_dtype: state.state_dtype,
      context: lengthOf(state),
      batch: state.batch,
      by_kind: Object.fromEntries(Object.entries(sums.caches).map(([kind, found]) => [kind, kindOf(found)])),
    });
    report.flops.context = lengthOf(state);
    report.flops.conventions = conventionsOf(state);
    report.limits = {
      hard_context: wallOf(state),
      trained_context: ends.trained_context === null ? Number(v.context) : valueOf(ends.trained_context, v),
    };
    const kinds = layersOfKinds(state);
    if (Object.keys(kinds).length > 1) report.layer_kinds = kinds;
    addShapes(report, state, v);
    return report;
  }

  /** What the arithmetic counts. */
  function conventionsOf(state) {
    const pieces = Object.keys(layersOfKinds(state)).flatMap((kind) => piecesOf(state, kind));
    const experts = pieces.some((piece) => piece.routed) ? [data.conventions.experts] : [];
    return [...data.conventions.flops, ...experts, ...new Set(pieces.flatMap((piece) => piece.conventions ?? []))];
  }

  function kindOf(found) {
    return {
      layers: plain(found.layers ?? 0n),
      elements_per_token: quotient(found.growth),
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
      const figures = (one) => one && ropeFiguresOf(one, Number(v.context));
      report.rope = figures(rope);
      const kinds = ropesOf(state);
      if (kinds)
        report.rope.by_kind = Object.fromEntries(Object.entries(kinds).map(([kind, one]) => [kind, figures(one)]));
    }
    const feeding = typical(state, (pieces) => feedForward(pieces, v));
    if (feeding)
      report.ffn = {
        kind: feeding.kind,
        width: valueOf(feeding.ffn.width, v),
        gated: feeding.ffn.gated,
        activation: feeding.ffn.activation,
      };
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
      return [
        {
          code: "",
          level: "error",
          message: "these choices do not go together in this spec",
          mend: "take one of them back",
        },
      ];
    }
    const v = numbersOf(state);
    const pieces = [
      looked(state, modelOf(state).ends),
      ...Object.keys(layersOfKinds(state)).flatMap((kind) => piecesOf(state, kind)),
    ];
    const asked = (name) => pieces.flatMap((piece) => piece[name].flatMap((node) => leafOf(node, v)));
    const checks = asked("checks").map((finding) => worded(finding, v));
    const wrong = checks.some((finding) => finding.level === "error");
    return unique(wrong ? checks : [...checks, ...asked("advice").map((finding) => worded(finding, v))]);
  }

  function worded(finding, v) {
    return {
      code: finding.code,
      level: LEVELS[finding.code[0]],
      message: textOf(finding.message, v),
      mend: textOf(finding.mend, v),
    };
  }

  function unique(findings) {
    return [...new Map(findings.map((finding) => [`${finding.code} ${finding.message}`, finding])).values()];
  }

  // ------------------------------------------------------------------ the spec

  function changed(state) {
    const model = modelOf(state);
    const switched = Object.entries(state.choices).some(
      ([id, option]) => id in model.declared && option !== model.declared[id],
    );
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
    return {
      ...declared,
      count,
      kinds,
      pattern: count === declared.count ? declared.pattern : patternText(patternOf(state)),
    };
  }

  /** What the spec of a state is called in a shell. */
  function nameOf(state) {
    if (changed(state)) return "my-model.yaml";
    return /^[\w@%+=:,./-]+$/.test(state.spec) ? state.spec : `'${state.spec.replaceAll("'", "'\\''")}'`;
  }

  /** The commands that make a module of a state, and its figures. */
  function commandsOf(state) {
    const { dtype } = modelOf(state).spec;
    const options = {
      context: [lengthOf(state), numberOf(state, "context")],
      batch: [state.batch, 1],
      dtype: [state.dtype, dtype],
      "kv-dtype": [state.kv_dtype, dtype],
      "state-dtype": [state.state_dtype, state.kv_dtype],
    };
    const set = Object.entries(options).filter(([, [value, usual]]) => value !== usual);
    const asked = set.map(([name, [value]]) => ` --${name} ${value}`).join("");
    return {
      generate: `archc generate ${nameOf(state)} -o model.py`,
      report: `archc report ${nameOf(state)}${asked}`,
    };
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
            return {
              section: part.section,
              kind: piece.kind,
              words: leafOf(piece.words, v).map((text) => textOf(text, v)),
              heads: piece.heads && headsOf(piece.heads, v),
            };
          }),
        })),
      };
    }
    const ends = looked(state, model.ends);
    const position = sectionOf(state, "position");
    const added =
      position &&
      { learned: `table of ${Number(v.context).toLocaleString("en-US")}`, sinusoidal: "sinusoids" }[position.kind];
    return {
      pattern: patternOf(state),
      kinds,
      embedding: {
        words: [`${model.spec.vocab_size.toLocaleString("en-US")} tokens`],
        position: added ?? (ends.hard_context === null ? null : "table"),
      },
      final_norm: ends.final_norm,
      head: { tied: sectionOf(state, "embedding").tied },
    };
  }

  function headsOf(formulas, v) {
    const [queries, shared] = formulas.map((formula) => valueOf(formula, v));
    return { queries, shared };
  }

  // ------------------------------------------------------------------ rotation

  /** How the most common kind of layer that turns does it. */
  function ropeOf(state) {
    const piece = typical(state, turning);
    return piece && turnOf(piece, numbersOf(state));
  }

  /** The same of each kind of layer, null for one that does not turn; null altogether where kinds do not differ. */
  function ropesOf(state) {
    const v = numbersOf(state);
    const found = Object.keys(layersOfKinds(state)).map((kind) => {
      const piece = turning(piecesOf(state, kind));
      return [kind, piece && turnOf(piece, v)];
    });
    const different = new Set(found.map(([, rope]) => JSON.stringify(rope)));
    return different.size > 1 ? Object.fromEntries(found) : null;
  }

  function turning(pieces) {
    return pieces.find((one) => one.rope) ?? null;
  }

  function turnOf(piece, v) {
    const { base, pairing, head_dim, rotary_dim, scaling } = piece.rope;
    return { base, pairing, head_dim: valueOf(head_dim, v), rotary_dim: valueOf(rotary_dim, v), scaling };
  }

  function ropeFiguresOf(rope, context) {
    const periods = ofPairs("speed", rope, context)
      .filter((speed) => speed !== 0)
      .map((speed) => (2 * Math.PI) / speed);
    return {
      pairs: periods.length,
      base: rope.base,
      pairing: rope.pairing,
      scaling: scalingOf(rope),
      fastest_period: Math.min(...periods),
      slowest_period: Math.max(...periods),
    };
  }

  /** How many pairs a scaling leaves alone, blends and slows down fully. */
  function scalingOf(rope) {
    if (!rope.scaling) return null;
    const kept = ofPairs("kept", rope, 1);
    const unchanged = kept.filter((share) => share === 1).length;
    const stretched = kept.filter((share) => share === 0).length;
    return { kind: rope.scaling.name, unchanged, blended: kept.length - unchanged - stretched, stretched };
  }

  /** What a kind of scaling says of every pair: `what` is "speed", radians per position, or "kept", from 0 to 1. */
  function ofPairs(what, { base, rotary_dim, head_dim, scaling }, length) {
    const kind = data.rotation.find((one) => one.kind === (scaling?.kind ?? "none"));
    const stated = Object.fromEntries(Object.entries(scaling ?? {}).filter(([, value]) => typeof value === "number"));
    const v = { base, rotary_dim, head_dim, length, ...kind.numbers, ...stated };
    return Array.from({ length: Math.floor(rotary_dim / 2) }, (_, pair) => {
      const tables = Object.fromEntries(kind.tables.map((name) => [name, scaling[name]?.[pair] ?? 1]));
      const numbers = { ...v, ...tables, pair };
      return doubleOf(kind[what], numbers);
    });
  }

  return {
    specs: data.models.map((model) => ({
      name: model.name,
      title: model.spec.name,
      hidden_size: model.spec.hidden_size,
      layers: model.layers,
    })),
    dtypes: Object.keys(data.bits),
    start: (name) => {
      const { dtype } = modelOf({ spec: name }).spec;
      return {
        spec: name,
        choices: {},
        numbers: {},
        length: null,
        batch: 1,
        dtype,
        kv_dtype: dtype,
        state_dtype: dtype,
      };
    },
    switches: choices.switchesOf,
    sliders: choices.slidersOf,
    report: reportOf,
    findings: findingsOf,
    drawing: drawingOf,
    specText: (state) => yamlOf(specOf(state)),
    commands: commandsOf,
    lengthOf,
    wallOf,
    rope: ropeOf,
    ropes: ropesOf,
    ropeKinds: data.rotation.map(({ kind, label, numbers }) => ({
      kind,
      label,
      fields: Object.entries(numbers).map(([id, value]) => ({
        id,
        label: id.replaceAll("_", " "),
        value,
        min: 0,
        max: null,
      })),
    })),
    ropeFrequencies: (rope, length) => ofPairs("speed", rope, length),
  };
}
