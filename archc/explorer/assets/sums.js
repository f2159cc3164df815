// Sums over the pieces of a model, as the formulas that follow from them take them.

const RECURRENT = "state";
const PRODUCTS = ["linear", "over_sequence", "behind_context", "all_pairs"];
const CACHED = ["window_growth", "fixed", "held", "reference_held", "reserved"];

/** @param {ReturnType<typeof createFormulas>} formulas @param {ReturnType<typeof createChoices>} choices */
function createSums({ countOf, fractionOf, leafOf }, { modelOf, looked, layersOfKinds, piecesOf }) {
  /** Sums over all pieces, of the whole model and of its layers, and over caches by their kind. */
  function sumsOf(state, v) {
    const all = {};
    const caches = {};
    const shared = new Set();
    const add = (name, value) => (all[name] = (all[name] ?? 0n) + value);
    const leaves = (nodes) => nodes.flatMap((node) => leafOf(node, v));

    for (const [kind, count] of Object.entries(layersOfKinds(state))) {
      const layers = BigInt(count);
      const cached = new Set();
      for (const piece of piecesOf(state, kind)) {
        for (const [name, formula] of leaves(piece.sums)) {
          if (name.startsWith("cache.")) addCache(caches, name, fractionOf(formula, v), layers, cached);
          else addOfLayers(name, countOf(formula, v) * layers);
        }
        if (piece.once && !shared.has(piece.once.name)) {
          shared.add(piece.once.name);
          for (const [name, formula] of leaves(piece.once.sums)) addOfLayers(name, countOf(formula, v));
        }
      }
    }
    for (const [name, formula] of leaves(looked(state, modelOf(state).ends).sums)) {
      add(name.startsWith("ends.") ? `all_${name.slice(5)}` : name, countOf(formula, v));
    }
    return { all, caches };

    function addOfLayers(name, value) {
      for (const to of PRODUCTS.includes(name) ? [name] : [`all_${name}`, `layers_${name}`]) add(to, value);
    }
  }

  /** Add what layers hold of a kind of cache; `cached` are the kinds that these layers have been counted for. */
  function addCache(caches, name, [above, below], layers, cached) {
    const [, kind, what] = name.split(".");
    const found = (caches[kind] ??= { growth: [0n, 1n] });
    if (what === "layers") {
      if (!cached.has(kind)) found.layers = (found.layers ?? 0n) + layers;
      cached.add(kind);
    } else if (what === "growth") {
      const [sum, under] = found.growth;
      found.growth = [sum * below + above * layers * under, under * below];
    } else {
      found[what] = (found[what] ?? 0n) + above * layers;
    }
  }

  /** The sums as numbers of the formulas that follow from them. */
  function boundSums({ all, caches }) {
    const v = { ...all };
    for (const [side, recurrent] of /** @type {[string, boolean][]} */ ([
      ["rows", false],
      ["states", true],
    ])) {
      v[`${side}_growth`] = 0n;
      v[`${side}_growth_below`] = 1n;
      for (const [kind, sums] of Object.entries(caches)) {
        if ((kind === RECURRENT) !== recurrent) continue;
        const below = v[`${side}_growth_below`];
        v[`${side}_growth`] = v[`${side}_growth`] * sums.growth[1] + sums.growth[0] * below;
        v[`${side}_growth_below`] = below * sums.growth[1];
        for (const what of CACHED) v[`${side}_${what}`] = (v[`${side}_${what}`] ?? 0n) + (sums[what] ?? 0n);
      }
    }
    return new Proxy(v, { get: (target, /** @type {string} */ name) => target[name] ?? 0n });
  }

  return { sumsOf, boundSums };
}
