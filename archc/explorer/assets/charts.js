// Bars and curves. Each says in words what it shows; the tables beside them hold the same figures.

const CURVE_POINTS = 33;

/** The width that a picture may have. @param {HTMLElement} place */
function widthOf(place) {
  return Math.max(280, Math.round(place.clientWidth || 640));
}

/**
 * Bars in one scale, a part beside the other, so that lengths compare.
 * @param {Array<{name: string, parts: Array<{label: string, colour: string, value: number, human: string}>}>} bars
 * @param {string} of what the parts are of
 */
function stackedBars(bars, of) {
  const longest = Math.max(...bars.map(({ parts }) => sum(parts.map(({ value }) => value))));
  return h(
    "div",
    { class: "bars" },
    ...bars.map(({ name, parts }) => {
      const whole = sum(parts.map(({ value }) => value));
      const told = parts.map(({ label, human, value }) => `${label} ${human}, ${percent(value / whole)}`).join("; ");
      const bar = h("div", { class: "bar", role: "img", "aria-label": `${of} of ${name}: ${told}` });
      bar.style.width = `${(100 * whole) / longest}%`;
      for (const { label, colour, value, human } of parts) {
        const part = h("span", { class: `part ${colour}`, title: `${label}: ${human}` });
        part.style.flexGrow = String(value / whole);
        if (value / longest > 0.16) part.append(h("b", {}, label));
        bar.append(part);
      }
      return h("div", {}, bars.length > 1 ? h("p", { class: "bar-name" }, name) : null, bar);
    }),
  );
}

/** @param {number[]} numbers */
function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}

/** @param {Shown[]} shown */
function parameterBars(shown) {
  const bars = shown
    .filter(({ report }) => report)
    .map(({ name, report }) => ({
      name,
      parts: PARTS.filter(([key]) => report.params[key]).map(([key, label]) => ({
        label: key === "embedding" && !report.params.head ? "Embedding = head" : label,
        colour: key,
        value: Number(report.params[key]),
        human: shortCount(report.params[key]),
      })),
    }));
  return stackedBars(bars, "Parameters");
}

/** Active against total, where they differ. @param {Shown[]} shown */
function activeBars(shown) {
  const sparse = shown.filter(({ report }) => report && report.params.active !== report.params.total);
  if (sparse.length === 0) return null;
  return stackedBars(
    sparse.map(({ name, report }) => ({
      name,
      parts: [
        {
          label: "Active",
          colour: "active",
          value: Number(report.params.active),
          human: shortCount(report.params.active),
        },
        {
          label: "At rest",
          colour: "rest",
          value: Number(report.params.total) - Number(report.params.active),
          human: "",
        },
      ],
    })),
    "What a token uses",
  );
}

/** @param {Shown[]} shown */
function memoryBars(shown) {
  return stackedBars(
    shown
      .filter(({ report }) => report)
      .map(({ name, report }) => ({
        name,
        parts: [
          {
            label: "Weights",
            colour: "weights",
            value: Number(report.weights.bytes),
            human: decimalBytes(report.weights.bytes),
          },
          {
            label: "Cache",
            colour: "cache",
            value: Number(report.kv_cache.bytes_at_context),
            human: decimalBytes(report.kv_cache.bytes_at_context),
          },
        ],
      })),
    "Memory",
  );
}

// ---------------------------------------------------------------- cache against context

/**
 * What the cache holds at lengths up to `most`, or to a model's wall: the model itself is asked at every one.
 * @param {*} model @param {State} state @param {number} most @returns {Array<[number, number]>}
 */
function cacheCurve(model, state, most) {
  const last = Math.min(most, model.wallOf(state) ?? most);
  const lengths = new Set([1]);
  for (let at = 1; at < CURVE_POINTS; at++) lengths.add(Math.max(1, Math.round((last * at) / (CURVE_POINTS - 1))));
  const points = [];
  for (const context of lengths) {
    const report = model.report(withNumber(state, "length", context));
    if (report) points.push([context, Number(report.kv_cache.bytes_at_context)]);
  }
  return points;
}

/**
 * @param {HTMLElement} place
 * @param {Array<{name: string, points: Array<[number, number]>, weights: number}>} curves
 * @param {number} most the longest context
 */
function drawCurves(place, curves, most) {
  const width = widthOf(place);
  const height = Math.min(280, Math.max(190, Math.round(width * 0.42)));
  const highest = Math.max(1, ...curves.flatMap(({ points }) => points.map(([, bytes]) => bytes)));
  const near = curves.map(({ weights }) => weights).filter((weights) => weights <= 3 * highest);
  const edge = { left: 62, right: 12, top: 14 + 14 * (curves.length - near.length), bottom: 30 };
  const top = 1.06 * Math.max(highest, ...near);
  const x = (/** @type {number} */ context) => edge.left + ((width - edge.left - edge.right) * context) / most;
  const y = (/** @type {number} */ bytes) => height - edge.bottom - ((height - edge.top - edge.bottom) * bytes) / top;
  const lines = curves.flatMap(({ points, weights }, at) => [
    weights <= top
      ? svg("path", { class: `weights-line model-${at + 1}`, d: `M${x(0)} ${y(weights)}H${x(most)}` })
      : null,
    svg("path", {
      class: `cache-line model-${at + 1}`,
      d: pathOf(points.map(([context, bytes]) => [x(context), y(bytes)])),
    }),
  ]);
  let above = 0;
  const labels = curves.map(({ name, weights }, at) => {
    const beyond = weights > top;
    const text = `${beyond ? "↑ " : ""}weights${curves.length > 1 ? ` of ${name}` : ""} ${decimalBytes(weights)}${beyond && curves.length === 1 ? `, ${exact(Math.round(weights / highest))} times the cache` : ""}`;
    return svg(
      "text",
      {
        class: `weights-label model-${at + 1}`,
        x: x(most),
        y: beyond ? 11 + 14 * above++ : y(weights) - 5,
        "text-anchor": "end",
      },
      text,
    );
  });
  const description = curves
    .map(
      ({ name, points, weights }) =>
        `${name}: ${decimalBytes(points.length ? points[points.length - 1][1] : 0)} of cache at ${exact(points.length ? points[points.length - 1][0] : 0)} tokens, beside ${decimalBytes(weights)} of weights.`,
    )
    .join(" ");
  place.replaceChildren(
    picture(
      { width, height, title: "Cache against context", description, class: "curve" },
      axes(
        edge,
        width,
        height,
        niceSteps(most, width < 420 ? 3 : 5).map((at) => [x(at), shortTokens(at)]),
        niceSteps(top, 4).map((at) => [y(at), decimalBytes(at)]),
      ),
      ...lines,
      ...labels,
    ),
  );
}

/** @param {number} tokens */
function shortTokens(tokens) {
  return tokens >= 10000 ? shortCount(tokens) : exact(tokens);
}

/** Round numbers from zero up to at most `most`. @param {number} most @param {number} count @returns {number[]} */
function niceSteps(most, count) {
  const rough = most / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough) || rough;
  const found = [];
  for (let at = 0; at * step <= most; at++) found.push(at * step);
  return found;
}

/**
 * @param {{left: number, right: number, top: number, bottom: number}} edge @param {number} width @param {number} height
 * @param {Array<[number, string]>} across @param {Array<[number, string]>} up
 */
function axes(edge, width, height, across, up) {
  return svg(
    "g",
    { class: "axes", "aria-hidden": "true" },
    ...up.map(([at]) => svg("path", { d: `M${edge.left} ${at}H${width - edge.right}` })),
    ...up.map(([at, text]) => svg("text", { x: edge.left - 7, y: at + 4, "text-anchor": "end" }, text)),
    ...across.map(([at, text], index) =>
      svg(
        "text",
        {
          x: at,
          y: height - edge.bottom + 18,
          "text-anchor": index === 0 ? "start" : at > width - 40 ? "end" : "middle",
        },
        text,
      ),
    ),
  );
}

/** @param {Array<[number, number]>} points */
function pathOf(points) {
  return points.map(([x, y], at) => `${at ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
}

/** The curves in text. @param {Array<{name: string, points: Array<[number, number]>}>} curves */
function curveTable(curves) {
  const lengths = [...new Set(curves.flatMap(({ points }) => points.map(([context]) => context)))].sort(
    (a, b) => a - b,
  );
  const shown = lengths.filter((_, at) => at % 4 === 0 || at === lengths.length - 1);
  return h(
    "table",
    { class: "figures" },
    h("caption", { class: "unseen" }, "Cache against context"),
    h(
      "thead",
      {},
      h("tr", {}, h("th", { scope: "col" }, "Context"), ...curves.map(({ name }) => h("th", { scope: "col" }, name))),
    ),
    h(
      "tbody",
      {},
      ...shown.map((length) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, exact(length)),
          ...curves.map(({ points }) => {
            const found = points.find(([context]) => context === length);
            return h("td", {}, found ? decimalBytes(found[1]) : "–");
          }),
        ),
      ),
    ),
  );
}
