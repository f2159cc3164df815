// The drawing of a block, and the strip of the layers.

const KIND_COLOURS = 8;
const HEAD_STEP = 4.6;
const NARROWEST = 104;
/** Where the residual stream runs, and how far from it the branches begin. */
const STREAM = 26;
const BESIDE = 34;
const BOX = { width: 196, gap: 26, line: 17, pad: 12, norm: 28 };

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
    fill(place.block, block(drawing, picked, report, widthOf(place.block)));
    fill(place.words, inWords(drawing));
  };
  return show;
}

/** @param {string[]} pattern */
function mostCommon(pattern) {
  const counts = new Map();
  for (const kind of pattern) counts.set(kind, (counts.get(kind) || 0) + 1);
  return [...counts].reduce((best, next) => (next[1] > best[1] ? next : best), [pattern[0], 0])[0];
}

// ---------------------------------------------------------------- the strip of layers

/** Kinds differ in colour and in height. @param {*} drawing @param {string[]} kinds @param {number} width */
function strip({ pattern }, kinds, width) {
  const height = 30;
  const cell = width / pattern.length;
  const gap = cell > 5 ? 1.5 : cell > 3 ? 0.75 : 0;
  const cells = pattern.map((/** @type {string} */ kind, /** @type {number} */ at) => {
    const index = kinds.indexOf(kind);
    const tall = height * (1 - 0.55 * (kinds.length > 1 ? index / (kinds.length - 1) : 0));
    return svg("rect", {
      class: `kind-${index % KIND_COLOURS}`,
      x: (at * cell).toFixed(2),
      y: (height - tall).toFixed(2),
      width: (cell - gap).toFixed(2),
      height: tall.toFixed(2),
      rx: Math.min(2, cell / 4),
    });
  });
  return h(
    "figure",
    {},
    picture({ width, height, title: "The layers, first to last", description: runs(pattern) }, ...cells),
    h("figcaption", {}, runs(pattern)),
  );
}

/** The layers in words, a repeated sequence told once. @param {string[]} pattern */
function runs(pattern) {
  const told = [];
  for (const kind of pattern) {
    const last = told[told.length - 1];
    if (last && last.kind === kind) last.count += 1;
    else told.push({ kind, count: 1 });
  }
  const words = told.map(({ kind, count }) => (count === 1 ? kind : `${count} ${kind}`));
  return words.length === 1
    ? `${several(pattern.length, "layer")}, all alike`
    : `${several(pattern.length, "layer")}: ${repeats(words)}`;
}

/** @param {string[]} words */
function repeats(words) {
  for (let size = 2; size <= words.length / 2; size++) {
    let times = 1;
    while (
      words.slice(times * size, (times + 1) * size).join() === words.slice(0, size).join() &&
      (times + 1) * size <= words.length
    )
      times += 1;
    if (times > 1) {
      const rest = words.slice(times * size);
      return `${times} times (${words.slice(0, size).join(", ")})${rest.length ? `, ${rest.join(", ")}` : ""}`;
    }
  }
  const shown = words.slice(0, 24);
  return shown.join(", ") + (words.length > shown.length ? `, and ${words.length - shown.length} more` : "");
}

/**
 * The legend, which also chooses the kind that is drawn.
 * @param {HTMLElement} place @param {*} drawing @param {string[]} kinds @param {string} picked @param {(kind: string) => void} onPick
 */
function keepLegend(place, { pattern }, kinds, picked, onPick) {
  const counts = kinds.map((kind) => pattern.filter((/** @type {string} */ one) => one === kind).length);
  const shape = JSON.stringify([kinds, counts]);
  place.hidden = kinds.length < 2;
  if (place.dataset.shape !== shape) {
    place.dataset.shape = shape;
    place.replaceChildren(
      h(
        "fieldset",
        { class: "switch" },
        h("legend", {}, "Draw the kind"),
        h(
          "div",
          { class: "options" },
          ...kinds.map((kind, at) => {
            const input = h("input", { type: "radio", name: "kind", value: kind });
            return h(
              "label",
              {},
              input,
              h("span", {}, h("i", { class: `swatch kind-${at % KIND_COLOURS}` }), `${kind} × ${counts[at]}`),
            );
          }),
        ),
      ),
    );
  }
  for (const input of place.querySelectorAll("input")) {
    input.checked = input.value === picked;
    input.onchange = () => onPick(input.value);
  }
}

// ---------------------------------------------------------------- the block

/** How many parts stand side by side in a branch. @param {*} branch */
function partsOf(branch) {
  return branch.parts.length;
}

/** A box that was drawn: what to show, and how large it is. @typedef {{node: SVGElement, width: number, height: number}} Piece */

/** @param {*} drawing @param {string} kind @param {*} report @param {number} room the width there is */
function block(drawing, kind, report, room) {
  const layer = drawing.kinds[kind];
  const widest = Math.max(...(layer.parallel ? [sum(layer.branches.map(partsOf))] : layer.branches.map(partsOf)));
  const each = Math.max(
    NARROWEST,
    Math.min(BOX.width, Math.floor((Math.min(room, 560) - STREAM - BESIDE - 22 * widest) / widest)),
  );
  const stages = layer.parallel
    ? [parallelStage(layer, report, each)]
    : layer.branches.map((branch) => stage(branch, report, each));
  const stream = STREAM;
  const inner = Math.max(...stages.map(({ width }) => width), BOX.width);
  const width = stream + BESIDE + inner + 14;
  const parts = [];
  let y = 8;
  const end = (/** @type {string} */ title, /** @type {string[]} */ words, /** @type {string} */ colour) => {
    const piece = box(title, words, colour, Math.min(width - 16, 250));
    parts.push(svg("g", { transform: `translate(8 ${y})` }, piece.node));
    y += piece.height;
  };
  const along = (/** @type {number} */ length) => {
    parts.push(svg("path", { class: "stream", d: `M${stream} ${y}v${length}` }));
    y += length;
  };
  end(
    "Embedding",
    [...drawing.embedding.words, ...(drawing.embedding.position ? [`+ ${drawing.embedding.position}`] : [])],
    "embedding",
  );
  along(18);
  const top = y;
  for (const one of stages) {
    along(14);
    parts.push(svg("g", { transform: `translate(0 ${y})` }, one.draw(stream, stream + BESIDE)));
    y += one.height;
  }
  along(12);
  parts.unshift(svg("rect", { class: "frame", x: 1, y: top, width: width - 2, height: y - top, rx: 10 }));
  parts.push(
    svg(
      "text",
      { class: "times", x: width - 12, y: top + 20, "text-anchor": "end" },
      `× ${drawing.pattern.filter((/** @type {string} */ one) => one === kind).length}`,
    ),
  );
  along(18);
  if (drawing.final_norm) {
    end(drawing.final_norm, [], "norm");
    along(14);
  }
  end(
    "Head",
    [...drawing.head.words, ...(drawing.head.tied ? ["the embedding again"] : [])],
    drawing.head.tied ? "embedding" : "head",
  );
  return picture(
    {
      width,
      height: y + 8,
      title: `A layer of the kind ${kind}`,
      description: layerInWords(layer),
      class: "block",
    },
    svg(
      "defs",
      {},
      svg(
        "marker",
        {
          id: "arrow",
          viewBox: "0 0 8 8",
          refX: 7,
          refY: 4,
          markerWidth: 7,
          markerHeight: 7,
          orient: "auto-start-reverse",
        },
        svg("path", { d: "M0 0L8 4L0 8z" }),
      ),
    ),
    ...parts,
  );
}

/** A branch after the other: out of the stream, through norms and parts, and back into it. @param {*} branch @param {*} report @param {number} each */
function stage(branch, report, each) {
  const pieces = branchPieces(branch, report, each, branch.on_sum ? null : branch.after);
  const width = Math.max(...pieces.map((piece) => piece.width));
  const inside = sum(pieces.map(({ height }) => height)) + 14 * (pieces.length - 1);
  const behind = branch.on_sum && branch.after ? box(branch.after, [], "norm", 150) : null;
  const height = 12 + inside + 26 + (behind ? 14 + behind.height : 0);
  return {
    width,
    height,
    draw(/** @type {number} */ stream, /** @type {number} */ left) {
      const join = 12 + inside + 14;
      const middle = left + width / 2;
      return svg(
        "g",
        {},
        svg("path", { class: "stream", d: `M${stream} 0V${height}` }),
        svg("path", { class: "flow", d: `M${stream} 0H${middle}V12`, "marker-end": "url(#arrow)" }),
        ...columnAt(pieces, left, width, 12),
        svg("path", {
          class: "flow",
          d: `M${middle} ${12 + inside}V${join}H${stream + 9}`,
          "marker-end": "url(#arrow)",
        }),
        plus(stream, join),
        behind ? svg("g", { transform: `translate(${8} ${join + 20})` }, behind.node) : null,
      );
    },
  };
}

/** Branches that read the same, side by side. @param {*} layer @param {*} report @param {number} each */
function parallelStage(layer, report, each) {
  const columns = layer.branches.map((/** @type {*} */ branch) => branchPieces(branch, report, each, branch.after));
  const widths = columns.map((/** @type {Piece[]} */ pieces) => Math.max(...pieces.map((piece) => piece.width)));
  const heights = columns.map(
    (/** @type {Piece[]} */ pieces) => sum(pieces.map(({ height }) => height)) + 14 * (pieces.length - 1),
  );
  const width = sum(widths) + 16 * (columns.length - 1);
  const shared = layer.shared_norm ? box(layer.shared_norm, [], "norm", Math.min(width, 170)) : null;
  const begin = shared ? shared.height + 30 : 14;
  const tallest = Math.max(...heights);
  return {
    width,
    height: 12 + begin + tallest + 30,
    draw(/** @type {number} */ stream, /** @type {number} */ left) {
      const middles = widths.map(
        (/** @type {number} */ own, /** @type {number} */ at) => left + sum(widths.slice(0, at)) + 16 * at + own / 2,
      );
      const join = 12 + begin + tallest + 16;
      const fork = shared ? 12 + shared.height + 10 : 0;
      return svg(
        "g",
        {},
        svg("path", { class: "stream", d: `M${stream} 0V${12 + begin + tallest + 30}` }),
        shared
          ? svg("path", {
              class: "flow",
              d: `M${stream} 0H${left + width / 2}V12`,
              "marker-end": "url(#arrow)",
            })
          : null,
        shared ? svg("g", { transform: `translate(${left + (width - shared.width) / 2} 12)` }, shared.node) : null,
        shared ? svg("path", { class: "flow", d: `M${left + width / 2} ${12 + shared.height}V${fork}` }) : null,
        ...middles.map((/** @type {number} */ middle) =>
          svg("path", {
            class: "flow",
            d: `M${shared ? left + width / 2 : stream} ${fork}H${middle}V${12 + begin}`,
            "marker-end": "url(#arrow)",
          }),
        ),
        ...columns.flatMap((/** @type {Piece[]} */ pieces, /** @type {number} */ at) =>
          columnAt(pieces, middles[at] - widths[at] / 2, widths[at], 12 + begin),
        ),
        ...middles.map((/** @type {number} */ middle, /** @type {number} */ at) =>
          svg("path", {
            class: "flow",
            d: `M${middle} ${12 + begin + heights[at]}V${join}H${stream + 9}`,
            "marker-end": "url(#arrow)",
          }),
        ),
        plus(stream, join),
      );
    },
  };
}

/** @param {*} branch @param {*} report @param {number} each @param {string|null} after @returns {Piece[]} */
function branchPieces({ before, parts }, report, each, after) {
  const inner = parts.map((/** @type {*} */ part) => partBox(part, report, each));
  const side = inner.length > 1 ? sideBySide(inner) : inner[0];
  return [
    before && box(before, [], "norm", Math.min(each, 150)),
    side,
    after && box(after, [], "norm", Math.min(each, 150)),
  ].filter((piece) => piece);
}

/** Parts whose outputs are added. @param {Piece[]} pieces @returns {Piece} */
function sideBySide(pieces) {
  const gap = 22;
  const height = Math.max(...pieces.map((piece) => piece.height));
  let x = 0;
  const drawn = pieces.flatMap((piece, at) => {
    const here = svg("g", { transform: `translate(${x} ${(height - piece.height) / 2})` }, piece.node);
    x += piece.width + gap;
    return [
      here,
      at < pieces.length - 1
        ? svg("text", { class: "sum", x: x - gap / 2, y: height / 2 + 5, "text-anchor": "middle" }, "+")
        : null,
    ];
  });
  return { node: svg("g", {}, ...drawn), width: x - gap, height };
}

/** @param {Piece[]} pieces @param {number} left @param {number} width @param {number} top */
function columnAt(pieces, left, width, top) {
  let y = top;
  return pieces.flatMap((piece, at) => {
    const arrow =
      at > 0 ? svg("path", { class: "flow", d: `M${left + width / 2} ${y}v14`, "marker-end": "url(#arrow)" }) : null;
    y += at > 0 ? 14 : 0;
    const here = svg("g", { transform: `translate(${left + (width - piece.width) / 2} ${y})` }, piece.node);
    y += piece.height;
    return [arrow, here];
  });
}

/** @param {number} x @param {number} y */
function plus(x, y) {
  return svg(
    "g",
    { class: "plus" },
    svg("circle", { cx: x, cy: y, r: 9 }),
    svg("path", { d: `M${x - 5} ${y}h10M${x} ${y - 5}v10` }),
  );
}

/** @param {string} title @param {string[]} words @param {string} colour @param {number} width @param {number} [room] under the title @returns {Piece} */
function box(title, words, colour, width, room = 0) {
  const lines = words.flatMap((text) => wrapped(text, Math.floor((width - 2 * BOX.pad) / 6.4)));
  const height = colour === "norm" && lines.length === 0 ? BOX.norm : 2 * BOX.pad + 12 + BOX.line * lines.length + room;
  return {
    width,
    height,
    node: svg(
      "g",
      { class: `box ${colour}` },
      svg("rect", { width, height, rx: colour === "norm" ? 14 : 6 }),
      svg(
        "text",
        {
          class: "title",
          x: width / 2,
          y: lines.length || room ? BOX.pad + 11 : height / 2 + 4.5,
          "text-anchor": "middle",
        },
        title,
      ),
      ...lines.map((text, at) =>
        svg("text", { x: width / 2, y: BOX.pad + 12 + BOX.line * (at + 1) + room, "text-anchor": "middle" }, text),
      ),
    ),
  };
}

/** @param {string} text @param {number} most characters in a line @returns {string[]} */
function wrapped(text, most) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const last = lines[lines.length - 1];
    if (last && last.length + word.length + 1 > most) lines.push(word);
    else lines[lines.length - 1] = last ? `${last} ${word}` : word;
  }
  return lines.map((line) => (line.length > most + 4 ? `${line.slice(0, most)}…` : line));
}

const PART_TITLES = { attention: "Attention", mixer: "Mixer", ffn: "Feed-forward" };

/** @param {*} part @param {*} report @param {number} width @returns {Piece} */
function partBox(part, report, width) {
  const { section, kind, words } = part;
  const title =
    section === "ffn" && kind === "moe" ? "Experts" : section === "mixer" ? kind : PART_TITLES[section] || kind;
  const said =
    section === "attention" && kind !== "gqa"
      ? [kind, ...words]
      : section === "ffn" && kind !== "moe"
        ? [kind, ...words]
        : words;
  const heads = section === "attention" && kind === "gqa" ? headsOf(part, report, width - 2 * BOX.pad) : null;
  const made = box(title, said, section, width, heads ? heads.height + 8 : 0);
  if (heads)
    made.node.append(svg("g", { transform: `translate(${(width - heads.width) / 2} ${BOX.pad + 20})` }, heads.node));
  if (section === "ffn" && kind === "moe") return stacked(made);
  return made;
}

/** As a pile: one of many alike. @param {Piece} piece @returns {Piece} */
function stacked(piece) {
  const step = 5;
  const behind = [2, 1].map((at) =>
    svg("rect", { class: "pile", x: at * step, y: -at * step, width: piece.width, height: piece.height, rx: 6 }),
  );
  piece.node.prepend(...behind);
  return {
    node: svg("g", { transform: `translate(0 ${2 * step})` }, piece.node),
    width: piece.width + 2 * step,
    height: piece.height + 2 * step,
  };
}

/**
 * Query heads over the key/value head that they share.
 * @param {*} part @param {*} report @param {number} most @returns {Piece|null}
 */
function headsOf({ heads, kv_heads: shared }, report, most) {
  const queries = heads || (report && report.attention && report.attention.heads);
  const keys = shared || (report && report.attention && report.attention.kv_heads);
  if (!queries || !keys || queries % keys) return null;
  const fitting = Math.floor(most / HEAD_STEP);
  const each = queries / keys;
  const drawn = Math.min(each, fitting);
  const groups = Math.max(1, Math.min(keys, Math.floor(fitting / (drawn + 0.5))));
  const step = Math.min(11, most / (groups * (drawn + 0.5)));
  const parts = [];
  for (let group = 0; group < groups; group++) {
    const left = group * step * (drawn + 0.5);
    for (let at = 0; at < drawn; at++)
      parts.push(svg("circle", { class: "query", cx: left + step * (at + 0.5), cy: 5, r: step * 0.36 }));
    parts.push(
      svg("rect", {
        class: "shared",
        x: left + step * 0.14,
        y: 13,
        width: step * drawn - step * 0.28,
        height: 5,
        rx: 2,
      }),
    );
  }
  const width = groups * step * (drawn + 0.5) - step * 0.5;
  const all = groups * drawn === queries;
  if (!all)
    parts.push(
      svg(
        "text",
        { class: "small", x: width / 2, y: 31, "text-anchor": "middle" },
        `${groups * drawn} of ${queries} drawn`,
      ),
    );
  return { node: svg("g", { class: "heads" }, ...parts), width, height: all ? 20 : 34 };
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
      `${norm ? `${norm}, then ` : ""}${head.tied ? "the embedding again as the head" : "a head of its own"}${head.words.length ? ` (${head.words.join(", ")})` : ""}`,
    ),
  );
}
