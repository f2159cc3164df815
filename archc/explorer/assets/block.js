// A block as a drawing: branches out of the residual stream and back into it.

/** Where the residual stream runs, and how far from it the branches begin. */
const STREAM = 26;
const BESIDE = 34;
/** Between a branch and what stands before and behind it. */
const STEP = 14;
const ARROW = "arrow";

/** @param {*} drawing @param {string} kind @param {number} room the width there is */
function block(drawing, kind, room) {
  const layer = drawing.kinds[kind];
  const counts = layer.branches.map((/** @type {*} */ branch) => branch.parts.length);
  const each = widthOfParts(layer.parallel ? sum(counts) : Math.max(...counts), Math.min(room, 560) - STREAM - BESIDE);
  const stages = layer.parallel
    ? [parallelStage(layer, each)]
    : layer.branches.map((/** @type {*} */ branch) => stage(branch, each));
  const width = STREAM + BESIDE + Math.max(...stages.map((one) => one.width), BOX.width) + STEP;
  const parts = [];
  let y = 8;
  const end = (/** @type {string} */ title, /** @type {string[]} */ words, /** @type {string} */ colour) => {
    const piece = box(title, words, colour, Math.min(width - 16, 250));
    parts.push(moved(8, y, piece.node));
    y += piece.height;
  };
  const along = (/** @type {number} */ length) => {
    parts.push(svg("path", { class: "stream", d: `M${STREAM} ${y}v${length}` }));
    y += length;
  };
  const { embedding, head, pattern, final_norm: norm } = drawing;
  end("Embedding", [...embedding.words, ...(embedding.position ? [`+ ${embedding.position}`] : [])], "embedding");
  along(18);
  const top = y;
  for (const one of stages) {
    along(STEP);
    parts.push(moved(0, y, one.draw(STREAM + BESIDE)));
    y += one.height;
  }
  along(12);
  parts.unshift(svg("rect", { class: "frame", x: 1, y: top, width: width - 2, height: y - top, rx: 10 }));
  const times = pattern.filter((/** @type {string} */ one) => one === kind).length;
  parts.push(svg("text", { class: "times", x: width - 12, y: top + 20, "text-anchor": "end" }, `× ${times}`));
  along(18);
  if (norm) {
    end(norm, [], "norm");
    along(STEP);
  }
  end("Head", head.tied ? ["the embedding again"] : [], head.tied ? "embedding" : "head");
  const about = { title: `A layer of the kind ${kind}`, description: layerInWords(layer), class: "block" };
  return picture({ width, height: y + 8, ...about }, arrowHead(), ...parts);
}

/** What an arrow ends in. */
function arrowHead() {
  const size = { refX: 7, refY: 4, markerWidth: 7, markerHeight: 7 };
  const mark = { id: ARROW, viewBox: "0 0 8 8", ...size, orient: "auto-start-reverse" };
  return svg("defs", {}, svg("marker", mark, svg("path", { d: "M0 0L8 4L0 8z" })));
}

/** A line with an arrow at its end. @param {string} way */
function arrow(way) {
  return svg("path", { class: "flow", d: way, "marker-end": `url(#${ARROW})` });
}

/** A branch after the other: out of the stream, through norms and parts, and back into it. @param {*} branch @param {number} each */
function stage(branch, each) {
  const pieces = branchPieces(branch, each, branch.on_sum ? null : branch.after);
  const width = Math.max(...pieces.map((piece) => piece.width));
  const inside = heightOf(pieces);
  const behind = branch.on_sum && branch.after ? box(branch.after, [], "norm", 150) : null;
  const height = 12 + inside + 26 + (behind ? STEP + behind.height : 0);
  return {
    width,
    height,
    draw(/** @type {number} */ left) {
      const join = 12 + inside + STEP;
      const middle = left + width / 2;
      return svg(
        "g",
        {},
        svg("path", { class: "stream", d: `M${STREAM} 0V${height}` }),
        arrow(`M${STREAM} 0H${middle}V12`),
        ...columnAt(pieces, left, width, 12),
        arrow(`M${middle} ${12 + inside}V${join}H${STREAM + 9}`),
        plus(join),
        behind ? moved(8, join + 20, behind.node) : null,
      );
    },
  };
}

/** Branches that read the same, side by side. @param {*} layer @param {number} each */
function parallelStage(layer, each) {
  const columns = layer.branches.map((/** @type {*} */ branch) => branchPieces(branch, each, branch.after));
  const widths = columns.map((/** @type {Piece[]} */ pieces) => Math.max(...pieces.map((piece) => piece.width)));
  const heights = columns.map(heightOf);
  const width = sum(widths) + 16 * (columns.length - 1);
  const shared = layer.shared_norm ? box(layer.shared_norm, [], "norm", Math.min(width, 170)) : null;
  const begin = 12 + (shared ? shared.height + 30 : STEP);
  const end = begin + Math.max(...heights);
  return {
    width,
    height: end + 30,
    draw(/** @type {number} */ left) {
      const middle = left + width / 2;
      const middles = widths.map(
        (/** @type {number} */ own, /** @type {number} */ at) => left + sum(widths.slice(0, at)) + 16 * at + own / 2,
      );
      const fork = shared ? 12 + shared.height + 10 : 0;
      const behindShared = shared
        ? [
            arrow(`M${STREAM} 0H${middle}V12`),
            moved(middle - shared.width / 2, 12, shared.node),
            svg("path", { class: "flow", d: `M${middle} ${12 + shared.height}V${fork}` }),
          ]
        : [];
      return svg(
        "g",
        {},
        svg("path", { class: "stream", d: `M${STREAM} 0V${end + 30}` }),
        ...behindShared,
        ...middles.flatMap((/** @type {number} */ own, /** @type {number} */ at) => [
          arrow(`M${shared ? middle : STREAM} ${fork}H${own}V${begin}`),
          ...columnAt(columns[at], own - widths[at] / 2, widths[at], begin),
          arrow(`M${own} ${begin + heights[at]}V${end + 16}H${STREAM + 9}`),
        ]),
        plus(end + 16),
      );
    },
  };
}

/** @param {*} branch @param {number} each @param {string|null} after @returns {Piece[]} */
function branchPieces({ before, parts }, each, after) {
  const norm = (/** @type {string|null} */ word) => (word ? [box(word, [], "norm", Math.min(each, 150))] : []);
  return [...norm(before), sideBySide(parts.map((/** @type {*} */ part) => partBox(part, each))), ...norm(after)];
}

/** Of a column, with an arrow between one piece and the next. @param {Piece[]} pieces */
function heightOf(pieces) {
  return sum(pieces.map((piece) => piece.height)) + STEP * (pieces.length - 1);
}

/** @param {Piece[]} pieces @param {number} left @param {number} width @param {number} top */
function columnAt(pieces, left, width, top) {
  let y = top;
  return pieces.flatMap((piece, at) => {
    const between = at > 0 ? [arrow(`M${left + width / 2} ${y}v${STEP}`)] : [];
    y += at > 0 ? STEP : 0;
    const here = moved(left + (width - piece.width) / 2, y, piece.node);
    y += piece.height;
    return [...between, here];
  });
}

/** Where a branch comes back into the stream. @param {number} y */
function plus(y) {
  return svg(
    "g",
    { class: "plus" },
    svg("circle", { cx: STREAM, cy: y, r: 9 }),
    svg("path", { d: `M${STREAM - 5} ${y}h10M${STREAM} ${y - 5}v10` }),
  );
}
