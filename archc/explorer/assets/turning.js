// What rotary positions do to a query and a key: angles and scores. The speeds of the pairs are the model's.

const TURN = 2 * Math.PI;

/**
 * The score of one pair, for a query and a key that were alike before they turned: the product of two arrows of
 * length one. Computed from the turned arrows, so that it is seen, not assumed, that only the distance counts.
 * @param {number} speed radians a position @param {number} query @param {number} key
 */
function pairScore(speed, query, key) {
  return Math.cos(speed * query) * Math.cos(speed * key) + Math.sin(speed * query) * Math.sin(speed * key);
}

/** In how many positions a pair turns once. @param {number} speed */
function periodOf(speed) {
  return speed === 0 ? "never" : exact(TURN / speed);
}

/** The mean over all pairs of a head. @param {number[]} speeds @param {number} query @param {number} key */
function headScore(speeds, query, key) {
  return sum(speeds.map((speed) => pairScore(speed, query, key))) / speeds.length;
}

/**
 * Scores against distance, a column for every pixel: the lowest, the highest and the mean of what falls into it.
 * @param {(distance: number) => number} score @param {number} length @param {number} columns
 * @returns {Array<{low: number, high: number, mean: number}>}
 */
function scoreColumns(score, length, columns) {
  const found = [];
  for (let column = 0; column < columns; column++) {
    const begin = (column * length) / columns;
    const end = ((column + 1) * length) / columns;
    const samples = Math.max(1, Math.min(12, Math.ceil(end - begin)));
    let [low, high, total] = [1, -1, 0];
    for (let at = 0; at < samples; at++) {
      const value = score(begin + ((end - begin) * at) / samples);
      low = Math.min(low, value);
      high = Math.max(high, value);
      total += value;
    }
    found.push({ low, high, mean: total / samples });
  }
  return found;
}

// ---------------------------------------------------------------- pictures

/** Query and key of one pair as arrows. @param {number} speed @param {number} query @param {number} key */
function arrows(speed, query, key) {
  const size = 220;
  const middle = size / 2;
  const radius = 86;
  const tip = (/** @type {number} */ position, /** @type {number} */ length) => [
    middle + length * Math.cos(speed * position),
    middle - length * Math.sin(speed * position),
  ];
  const arrow = (/** @type {number} */ position, /** @type {string} */ name) => {
    const [x, y] = tip(position, radius);
    const [labelX, labelY] = tip(position, radius + 14);
    return svg(
      "g",
      { class: name },
      svg("path", {
        d: `M${middle} ${middle}L${x.toFixed(2)} ${y.toFixed(2)}`,
        "marker-end": `url(#tip-${name})`,
      }),
      svg(
        "text",
        { x: labelX.toFixed(2), y: (labelY + 4).toFixed(2), "text-anchor": "middle" },
        name === "query" ? "q" : "k",
      ),
    );
  };
  const marker = (/** @type {string} */ name) =>
    svg(
      "marker",
      {
        id: `tip-${name}`,
        class: name,
        viewBox: "0 0 8 8",
        refX: 7,
        refY: 4,
        markerWidth: 5,
        markerHeight: 5,
        orient: "auto",
      },
      svg("path", { d: "M0 0L8 4L0 8z" }),
    );
  return picture(
    {
      width: size,
      height: size,
      title: "One pair as two arrows",
      description: `The query points at ${turnsOf(speed * query)}, the key at ${turnsOf(speed * key)}; between them ${turnsOf(speed * (query - key))}.`,
      class: "arrows",
    },
    svg("defs", {}, marker("query"), marker("key")),
    svg("circle", { class: "dial", cx: middle, cy: middle, r: radius }),
    svg("path", { class: "between", d: between(middle, 34, speed * key, speed * query) }),
    arrow(key, "key"),
    arrow(query, "query"),
  );
}

/** The sector between two angles, the short way. @param {number} middle @param {number} radius @param {number} from @param {number} to */
function between(middle, radius, from, to) {
  const around = (((to - from) % TURN) + TURN) % TURN;
  const [begin, sweep] = around > Math.PI ? [to, TURN - around] : [from, around];
  const at = (/** @type {number} */ angle) =>
    `${(middle + radius * Math.cos(angle)).toFixed(2)} ${(middle - radius * Math.sin(angle)).toFixed(2)}`;
  return `M${middle} ${middle}L${at(begin)}A${radius} ${radius} 0 0 0 ${at(begin + sweep)}Z`;
}

/** An angle within one turn, in degrees. @param {number} radians */
function turnsOf(radians) {
  const degrees = ((radians * 360) / TURN) % 360;
  return `${fixed(degrees < 0 ? degrees + 360 : degrees, 1)}°`;
}

/**
 * Scores against distance.
 * @param {{width: number, length: number, distance: number, pair: number, speeds: number[], unscaled: number[]|null}} what
 */
function scoreChart({ width, length, distance, pair, speeds, unscaled }) {
  const height = 240;
  const edge = { left: 34, right: 10, top: 12, bottom: 30 };
  const across = width - edge.left - edge.right;
  const x = (/** @type {number} */ at) => edge.left + (across * at) / length;
  const y = (/** @type {number} */ score) => edge.top + ((1 - score) / 2) * (height - edge.top - edge.bottom);
  const columns = Math.min(across, 640);
  const line = (/** @type {number[]} */ of) =>
    pathOf(
      scoreColumns((far) => headScore(of, far, 0), length, columns).map(({ mean }, at) => [
        x((at * length) / columns),
        y(mean),
      ]),
    );
  const band = scoreColumns((far) => pairScore(speeds[pair], far, 0), length, columns);
  const dense = band.some(({ low, high }) => high - low > 0.9);
  const place = (/** @type {number} */ at) => x((at * length) / columns);
  const pairShape = dense
    ? svg("path", {
        class: "pair-band",
        d: `${pathOf(band.map(({ high }, at) => [place(at), y(high)]))}${pathOf(band.map(({ low }, at) => [place(at), y(low)]).reverse()).replace("M", "L")}Z`,
      })
    : svg("path", { class: "pair-line", d: pathOf(band.map(({ mean }, at) => [place(at), y(mean)])) });
  const here = distance <= length;
  return picture(
    {
      width,
      height,
      title: "Score against distance",
      description: `From distance 0, where both are 1, to ${exact(length)}. At ${exact(distance)} the pair's score is ${fixed(pairScore(speeds[pair], distance, 0), 3)} and the head's ${fixed(headScore(speeds, distance, 0), 3)}.`,
      class: "scores",
    },
    axes(
      edge,
      width,
      height,
      niceSteps(length, width < 420 ? 3 : 5).map((at) => [x(at), shortTokens(at)]),
      [1, 0.5, 0, -0.5, -1].map((at) => [y(at), String(at)]),
    ),
    pairShape,
    unscaled ? svg("path", { class: "head-line unscaled", d: line(unscaled) }) : null,
    svg("path", { class: "head-line", d: line(speeds) }),
    here ? svg("path", { class: "here", d: `M${x(distance)} ${edge.top}V${height - edge.bottom}` }) : null,
    here
      ? svg("circle", { class: "pair-dot", cx: x(distance), cy: y(pairScore(speeds[pair], distance, 0)), r: 4.5 })
      : null,
    here ? svg("circle", { class: "head-dot", cx: x(distance), cy: y(headScore(speeds, distance, 0)), r: 4.5 }) : null,
  );
}

/**
 * Positions a turn of every pair, on a scale of powers of ten.
 * @param {{width: number, speeds: number[], unscaled: number[], pair: number, context: number}} what
 */
function speedChart({ width, speeds, unscaled, pair, context }) {
  const height = 220;
  const edge = { left: 62, right: 10, top: 12, bottom: 30 };
  const turning = (/** @type {number[]} */ of) => of.filter((speed) => speed !== 0);
  const periods = turning([...speeds, ...unscaled]).map((speed) => TURN / speed);
  const top = Math.ceil(Math.log10(Math.max(...periods, context)));
  const x = (/** @type {number} */ at) =>
    edge.left + ((width - edge.left - edge.right) * at) / Math.max(1, speeds.length - 1);
  const y = (/** @type {number} */ period) =>
    height - edge.bottom - ((height - edge.top - edge.bottom) * Math.log10(period)) / top;
  const line = (/** @type {number[]} */ of) =>
    pathOf(of.flatMap((speed, at) => (speed === 0 ? [] : [[x(at), y(TURN / speed)]])));
  const every = Math.ceil((top + 1) / 8);
  const powers = Array.from({ length: Math.floor(top / every) + 1 }, (_, power) => 10 ** (every * power));
  return picture(
    {
      width,
      height,
      title: "Positions a turn, pair by pair",
      description: `From ${periodOf(Math.max(...speeds))} positions for the fastest pair to ${periodOf(Math.min(...speeds))} for the slowest. The context is ${exact(context)}.`,
      class: "speeds",
    },
    axes(
      edge,
      width,
      height,
      niceSteps(speeds.length - 1 || 1, 4)
        .filter(Number.isInteger)
        .map((at) => [x(at), String(at)]),
      powers.map((at) => [y(at), shortTokens(at)]),
    ),
    svg("path", { class: "context-line", d: `M${edge.left} ${y(context)}H${width - edge.right}` }),
    svg("text", { class: "context-label", x: edge.left + 6, y: y(context) - 5 }, `context ${exact(context)}`),
    svg("path", { class: "speed-line unscaled", d: line(unscaled) }),
    svg("path", { class: "speed-line", d: line(speeds) }),
    speeds[pair] ? svg("circle", { class: "pair-dot", cx: x(pair), cy: y(TURN / speeds[pair]), r: 4.5 }) : null,
  );
}
