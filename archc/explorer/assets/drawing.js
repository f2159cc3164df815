// The drawing of a model: the strip of its layers, the block of one of them, and both in words.

/** @param {*} app @returns {(shown: Shown[], view: View) => void} */
function createDrawing(app) {
  const place = {
    strip: h("div", { class: "strip" }),
    kinds: h("div", { class: "kinds" }),
    block: h("div", { class: "drawing" }),
    words: h("div", {}),
  };
  bodyOf("block").append(place.strip, place.kinds, place.block, more("The block in words", place.words));
  /** @type {string|null} */
  let picked = null;
  const show = (/** @type {Shown[]} */ shown, /** @type {View} */ view) => {
    const [{ report }] = shown;
    if (report === null) return;
    const drawing = app.model.drawing(view.first);
    const kinds = Object.keys(drawing.kinds);
    if (picked === null || !kinds.includes(picked)) picked = mostCommon(drawing.pattern);
    fill(place.strip, strip(drawing, kinds, widthOf(place.strip)));
    keepLegend(place.kinds, drawing, kinds, picked, (kind) => {
      picked = kind;
      show(shown, view);
    });
    fill(place.block, block(drawing, picked, widthOf(place.block)));
    fill(place.words, inWords(drawing));
  };
  return show;
}

// ---------------------------------------------------------------- in words

/** @param {*} layer */
function layerInWords(layer) {
  const branches = layer.branches.map(branchInWords);
  if (!layer.parallel) return `One after the other, each added to the residual stream: ${branches.join("; then ")}.`;
  return `Side by side${layer.shared_norm ? ` behind one ${layer.shared_norm}` : ""}, added to the residual stream together: ${branches.join("; and ")}.`;
}

/** @param {*} branch */
function branchInWords({ before, after, on_sum: onSum, parts }) {
  const told = parts
    .map(
      (/** @type {*} */ { section, kind, words }) =>
        `${section === "ffn" ? "feed-forward" : section} ${kind}${words.length ? ` (${words.join(", ")})` : ""}`,
    )
    .join(" plus ");
  return `${before ? `${before}, ` : ""}${told}${after ? `, ${after}${onSum ? " on the sum" : ""}` : ""}`;
}

/** @param {*} drawing */
function inWords({ kinds, embedding, final_norm: norm, head }) {
  return h(
    "dl",
    { class: "words" },
    h("dt", {}, "Embedding"),
    h(
      "dd",
      {},
      [...embedding.words, embedding.position ? `and a position ${embedding.position}` : ""]
        .filter((word) => word)
        .join(", "),
    ),
    ...Object.entries(kinds).flatMap(([kind, layer]) => [h("dt", {}, kind), h("dd", {}, layerInWords(layer))]),
    h("dt", {}, "Behind the layers"),
    h(
      "dd",
      {},
      `${norm ? `${norm}, then ` : ""}${head.tied ? "the embedding again as the head" : "a head of its own"}`,
    ),
  );
}
