// The strip of the layers, and the legend that chooses which of their kinds is drawn.

const KIND_COLOURS = 8;

/** @param {string[]} pattern */
function mostCommon(pattern) {
  const counts = new Map();
  for (const kind of pattern) counts.set(kind, (counts.get(kind) || 0) + 1);
  return [...counts].reduce((best, next) => (next[1] > best[1] ? next : best), [pattern[0], 0])[0];
}

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
