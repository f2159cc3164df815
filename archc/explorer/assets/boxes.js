// What a block is drawn of: boxes with words, the heads in them, piles, and boxes side by side.

const BOX = { width: 196, line: 17, pad: 12, norm: 28 };
const NARROWEST = 104;
/** Between parts side by side. */
const ASIDE = 22;
const HEAD_STEP = 4.6;
const PART_TITLES = { attention: "Attention", ffn: "Feed-forward" };

/** A box that was drawn: what to show, and how large it is. @typedef {{node: SVGElement, width: number, height: number}} Piece */

/** How wide parts are, so that some of them fit side by side. @param {number} parts @param {number} room */
function widthOfParts(parts, room) {
  return Math.max(NARROWEST, Math.min(BOX.width, Math.floor((room - ASIDE * parts) / parts)));
}

/** @param {number} x @param {number} y @param {SVGElement} node */
function moved(x, y, node) {
  return svg("g", { transform: `translate(${x} ${y})` }, node);
}

/** @param {string} title @param {string[]} words @param {string} colour @param {number} width @param {number} [room] under the title @returns {Piece} */
function box(title, words, colour, width, room = 0) {
  const lines = words.flatMap((text) => wrapped(text, Math.floor((width - 2 * BOX.pad) / 6.4)));
  const height = colour === "norm" && lines.length === 0 ? BOX.norm : 2 * BOX.pad + 12 + BOX.line * lines.length + room;
  const line = (/** @type {string} */ text, /** @type {number} */ y, /** @type {string|null} */ look) =>
    svg("text", { class: look, x: width / 2, y, "text-anchor": "middle" }, text);
  return {
    width,
    height,
    node: svg(
      "g",
      { class: `box ${colour}` },
      svg("rect", { width, height, rx: colour === "norm" ? 14 : 6 }),
      line(title, lines.length || room ? BOX.pad + 11 : height / 2 + 4.5, "title"),
      ...lines.map((text, at) => line(text, BOX.pad + 12 + BOX.line * (at + 1) + room, null)),
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

/** @param {*} part @param {number} width @returns {Piece} */
function partBox({ section, kind, words, heads }, width) {
  if (section === "ffn" && kind === "moe") return stacked(box("Experts", words, section, width));
  if (section === "attention" && kind === "gqa") {
    const drawn = drawnHeads(heads, width - 2 * BOX.pad);
    const made = box(PART_TITLES.attention, words, section, width, drawn.height + 8);
    made.node.append(moved((width - drawn.width) / 2, BOX.pad + 20, drawn.node));
    return made;
  }
  return section in PART_TITLES
    ? box(PART_TITLES[section], [kind, ...words], section, width)
    : box(kind, words, section, width);
}

/** As a pile: one of many alike. @param {Piece} piece @returns {Piece} */
function stacked(piece) {
  const step = 5;
  const behind = [2, 1].map((at) =>
    svg("rect", { class: "pile", x: at * step, y: -at * step, width: piece.width, height: piece.height, rx: 6 }),
  );
  piece.node.prepend(...behind);
  return {
    node: moved(0, 2 * step, piece.node),
    width: piece.width + 2 * step,
    height: piece.height + 2 * step,
  };
}

/**
 * Query heads over the key/value head that they share, as many as there is room for.
 * @param {{queries: number, shared: number}} heads @param {number} most @returns {Piece}
 */
function drawnHeads({ queries, shared }, most) {
  const fitting = Math.floor(most / HEAD_STEP);
  const drawn = Math.min(queries / shared, fitting);
  const groups = Math.max(1, Math.min(shared, Math.floor(fitting / (drawn + 0.5))));
  const step = Math.min(11, most / (groups * (drawn + 0.5)));
  const parts = [];
  for (let group = 0; group < groups; group++) {
    const left = group * step * (drawn + 0.5);
    for (let at = 0; at < drawn; at++)
      parts.push(svg("circle", { class: "query", cx: left + step * (at + 0.5), cy: 5, r: step * 0.36 }));
    const key = { x: left + step * 0.14, y: 13, width: step * drawn - step * 0.28, height: 5, rx: 2 };
    parts.push(svg("rect", { class: "shared", ...key }));
  }
  const width = groups * step * (drawn + 0.5) - step * 0.5;
  const all = groups * drawn === queries;
  if (!all) {
    const told = `${groups * drawn} of ${queries} drawn`;
    parts.push(svg("text", { class: "small", x: width / 2, y: 31, "text-anchor": "middle" }, told));
  }
  return { node: svg("g", { class: "heads" }, ...parts), width, height: all ? 20 : 34 };
}

/** Parts whose outputs are added. @param {Piece[]} pieces @returns {Piece} */
function sideBySide(pieces) {
  const height = Math.max(...pieces.map((piece) => piece.height));
  let x = 0;
  const drawn = pieces.flatMap((piece, at) => {
    const sign = { class: "sum", x: x - ASIDE / 2, y: height / 2 + 5, "text-anchor": "middle" };
    const before = at > 0 ? [svg("text", sign, "+")] : [];
    const here = moved(x, (height - piece.height) / 2, piece.node);
    x += piece.width + ASIDE;
    return [...before, here];
  });
  return { node: svg("g", {}, ...drawn), width: x - ASIDE, height };
}
