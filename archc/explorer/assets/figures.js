// Figures as text: every one carries its key in the report, its exact value, and which model it is of.

/**
 * @typedef {{name: string, report: *, findings: Array<*>, state: State}} Shown one model with all that is known of it
 */

/**
 * One figure of a report.
 * @param {1|2} which @param {string} key such as "params.total" @param {*} value @param {string} human
 */
function figure(which, key, value, human) {
  const told = typeof value === "number" || typeof value === "bigint" ? exact(value) : null;
  return h(
    "span",
    {
      class: "figure",
      "data-key": key,
      "data-value": asJson(value),
      "data-model": which,
      title: told !== human ? told : null,
    },
    human,
  );
}

/** What a report has under a dotted key; undefined where it has nothing. @param {*} report @param {string} key */
function valueAt(report, key) {
  return key
    .split(".")
    .reduce((inner, name) => (inner === undefined || inner === null ? undefined : inner[name]), report);
}

/**
 * A row of a table: what it is called, and the figure of every model under `key`.
 * @param {string} label @param {string} key @param {(value: *, report: *) => string} human
 * @param {{note?: (report: *) => string, swatch?: string, strong?: boolean, unlessZero?: boolean}} [more]
 */
function row(label, key, human, more = {}) {
  return { label, key, human, ...more };
}

/**
 * A table of figures, a column for each model. A row that no model has is left out, and one that says
 * nothing where it is zero.
 * @param {string} caption @param {Array<ReturnType<typeof row>>} rows @param {Shown[]} shown
 */
function figureTable(caption, rows, shown) {
  const values = (/** @type {string} */ key) => shown.map(({ report }) => (report ? valueAt(report, key) : undefined));
  const there = rows.filter(({ key, unlessZero }) =>
    values(key).some((value) => value !== undefined && !(unlessZero && value === 0)),
  );
  return h(
    "table",
    { class: shown.length > 1 ? "figures two" : "figures" },
    h("caption", { class: "unseen" }, caption),
    h(
      "thead",
      { class: shown.length > 1 ? null : "unseen" },
      h("tr", {}, h("td", {}), ...shown.map(({ name }) => h("th", { scope: "col" }, name))),
    ),
    h("tbody", {}, ...there.map((one) => rowOf(one, shown))),
  );
}

/** @param {*} one @param {Shown[]} shown */
function rowOf({ label, key, human, note, swatch, strong }, shown) {
  const cells = shown.map(({ report }, at) => {
    const value = report ? valueAt(report, key) : undefined;
    if (value === undefined) return h("td", {}, h("span", { class: "none" }, "–"));
    const beside = note ? note(report) : "";
    const which = /** @type {1|2} */ (at + 1);
    return h("td", {}, figure(which, key, value, human(value, report)), beside ? h("small", {}, beside) : null);
  });
  return h(
    "tr",
    { class: strong ? "strong" : null },
    h("th", { scope: "row" }, swatch ? h("i", { class: `swatch ${swatch}` }) : null, label),
    ...cells,
  );
}

/** @param {*} text */
const asText = (text) => (text === null ? "none" : String(text));
/** @param {*} yes */
const yesNo = (yes) => (yes ? "yes" : "no");

/** A row of bytes, in powers of 1000 and, where that reads otherwise, of 1024. @param {string} label @param {string} key @param {*} [more] */
function bytesRow(label, key, more = {}) {
  const binary = (/** @type {*} */ report) => {
    const count = valueAt(report, key);
    const text = count === undefined ? "" : binaryBytes(count);
    return text === "" || text === decimalBytes(count) ? "" : `= ${text}`;
  };
  return row(label, key, decimalBytes, { note: binary, ...more });
}

// ---------------------------------------------------------------- the headline

/** @param {Shown} shown @returns {Array<{label: string, key: string, human: string, note: string}>} */
function headlinesOf({ report }) {
  const { params, weights, kv_cache: cache, flops, limits } = report;
  const wall = limits.hard_context !== null;
  const growing = cache.bytes_per_token !== 0 || cache.fixed_state_bytes === 0;
  return [
    { label: "Parameters", key: "params.total", human: shortCount(params.total), note: "" },
    ...(params.active === params.total
      ? []
      : [{ label: "Active", key: "params.active", human: shortCount(params.active), note: "for each token" }]),
    { label: "Weights", key: "weights.bytes", human: decimalBytes(weights.bytes), note: weights.dtype },
    growing
      ? {
          label: "Cache a token",
          key: "kv_cache.bytes_per_token",
          human: decimalBytes(cache.bytes_per_token),
          note: "",
        }
      : {
          label: "State",
          key: "kv_cache.fixed_state_bytes",
          human: decimalBytes(cache.fixed_state_bytes),
          note: "whatever the length",
        },
    {
      label: "Cache",
      key: "kv_cache.bytes_at_context",
      human: decimalBytes(cache.bytes_at_context),
      note: `at ${exact(cache.context)}${cache.batch === 1 ? "" : ` × ${exact(cache.batch)}`}`,
    },
    {
      label: "Operations a token",
      key: "flops.forward_per_token",
      human: operations(flops.forward_per_token),
      note: "",
    },
    {
      label: "Usable context",
      key: wall ? "limits.hard_context" : "limits.trained_context",
      human: exact(wall ? limits.hard_context : limits.trained_context),
      note: wall ? "a wall: no position beyond" : "as trained",
    },
  ];
}

/** @param {Shown[]} shown */
function showHeadline(shown) {
  const place = byId("headline");
  const [first, second] = shown;
  if (!first.report) return;
  const beside = second && second.report ? headlinesOf(second) : [];
  place.replaceChildren(
    h(
      "dl",
      {},
      ...headlinesOf(first).map(({ label, key, human, note }) => {
        const other = beside.find((one) => one.label === label);
        return h(
          "div",
          {},
          h("dt", {}, label),
          h("dd", {}, figure(1, key, valueAt(first.report, key), human), note ? h("small", {}, note) : null),
          other
            ? h(
                "dd",
                { class: "other" },
                figure(2, other.key, valueAt(second.report, other.key), other.human),
                h("small", {}, second.name),
              )
            : null,
        );
      }),
    ),
  );
}

/** The headline in a sentence, of what is different from before. @param {Shown} shown @param {Shown} before */
function spokenHeadline(shown, before) {
  const old = headlinesOf(before);
  return headlinesOf(shown)
    .filter(
      (one) => !old.some((other) => other.label === one.label && other.human === one.human && other.note === one.note),
    )
    .map(({ label, human, note }) => `${label} ${human}${note ? ` ${note}` : ""}`)
    .join(", ");
}

// ---------------------------------------------------------------- findings

const LEVELS = { error: "Error", warning: "Warning", note: "Note" };

/** @param {Shown} first */
function showFindings({ findings }) {
  const place = byId("findings");
  place.hidden = findings.length === 0;
  const broken = findings.some(({ level }) => level === "error");
  const notes = findings.filter(({ level }) => level === "note");
  const grave = findings.filter(({ level }) => level !== "note");
  const wasOpen = place.querySelector("details[open]") !== null;
  fill(
    place,
    h("h2", { id: "findings-title", class: broken ? null : "unseen" }, broken ? "This cannot be built" : "Findings"),
    broken ? h("p", {}, "The figures below are those of the last design that could.") : null,
    grave.length ? h("ul", {}, ...grave.map(findingItem)) : null,
    notes.length
      ? h(
          "details",
          { open: wasOpen },
          h("summary", {}, `${several(notes.length, "note")} on this design`),
          h("ul", {}, ...notes.map(findingItem)),
        )
      : null,
  );
}

/** @param {{code: string, level: string, message: string, mend: string}} finding */
function findingItem({ code, level, message, mend }) {
  const head = h("b", {}, `${LEVELS[level] || level} ${code}`.trim());
  return h(
    "li",
    { class: level, "data-code": code, "data-level": level },
    head,
    " ",
    message,
    mend ? h("span", { class: "mend" }, mend) : null,
  );
}

// ---------------------------------------------------------------- tables by section

const PARTS = [
  ["embedding", "Embedding"],
  ["position", "Position table"],
  ["attention", "Attention"],
  ["ffn", "Feed-forward"],
  ["router", "Routers"],
  ["norm", "Norms"],
  ["other", "Other"],
  ["head", "Head"],
];

/** @param {Shown[]} shown */
function parameterRows(shown) {
  const ofAll = (/** @type {string} */ key) => (/** @type {*} */ report) =>
    percent(Number(report.params[key]) / Number(report.params.total));
  const present = PARTS.filter(([key]) => shown.some(({ report }) => report && report.params[key]));
  const several = shown.some(({ report }) => report && report.params.active !== report.params.total);
  const held = shown.some(({ report }) => report && report.params.stored_buffers);
  return [
    ...present.map(([key, label]) =>
      row(
        key === "embedding" && shown.every(({ report }) => !report || !report.params.head) ? "Embedding = head" : label,
        `params.${key}`,
        shortCount,
        { note: ofAll(key), swatch: key },
      ),
    ),
    row("All", "params.total", shortCount, { note: (report) => exact(report.params.total), strong: true }),
    ...(several ? [row("Active for a token", "params.active", shortCount, { note: ofAll("active") })] : []),
    row("Without embeddings", "params.total_without_embeddings", shortCount),
    ...(several ? [row("Active, without embeddings", "params.active_without_embeddings", shortCount)] : []),
    ...(held ? [row("Buffers beside them", "params.stored_buffers", shortCount)] : []),
  ];
}

const BLOCK_ROWS = [
  row("Feed-forward share of the blocks", "block.ffn_share", percent),
  row("Mixer share of the blocks", "block.attention_share", percent),
  row("Experts", "moe.experts", exact),
  row("Experts per token", "moe.top_k", exact),
  row("All experts", "moe.expert_params", shortCount),
  row("One expert", "moe.params_per_expert", shortCount),
  row("Experts' share of all", "moe.expert_share", percent),
];

const SHAPE_ROWS = [
  row("Layers", "layers", exact),
  row("Width of the stream", "hidden_size", exact),
  row("Vocabulary", "vocab_size", exact),
  row("Query heads", "attention.heads", exact),
  row("Key/value heads", "attention.kv_heads", exact),
  row("Head size", "attention.head_dim", exact),
  row("Query heads to a key/value head", "attention.group_size", exact),
  row("Feed-forward", "ffn.kind", asText),
  row("Feed-forward width", "ffn.width", exact),
  row("Gated", "ffn.gated", yesNo),
  row("Activation", "ffn.activation", asText),
  row("Norms", "norms", (kinds) => kinds.join(", ") || "none"),
  row("Positions", "positions", (kinds) => kinds.join(", ") || "none"),
  row("Head is the embedding", "tied", yesNo),
];

const CACHE_ROWS = [
  bytesRow("A token more", "kv_cache.bytes_per_token"),
  bytesRow("Until the windows are full", "kv_cache.window_bytes_per_token", { unlessZero: true }),
  bytesRow("States, whatever the length", "kv_cache.fixed_state_bytes", { unlessZero: true }),
  bytesRow("At the context", "kv_cache.bytes_at_context", { strong: true }),
  bytesRow("Where every layer gets full pages", "kv_cache.bytes_at_context_reserved"),
  row("Numbers a token", "kv_cache.elements_per_token", exact),
  row("Numbers in transformers' cache", "kv_cache.reference_elements_at_context", exact),
  row("Context", "kv_cache.context", exact),
  row("Sequences", "kv_cache.batch", exact),
  row("Type", "kv_cache.dtype", asText),
  row("Type of states", "kv_cache.state_dtype", asText),
];

const WEIGHT_ROWS = [
  bytesRow("All, in one type", "weights.bytes", { strong: true }),
  row("That type", "weights.dtype", asText),
  row("Declared type", "dtype", asText),
  bytesRow("in bfloat16", "weights.formats.bfloat16"),
  bytesRow("in float8", "weights.formats.float8"),
  bytesRow("in int4", "weights.formats.int4_g128"),
];

const FLOP_ROWS = [
  row("A token, on average", "flops.forward_per_token", operations, { strong: true }),
  row("The last token, decoding", "flops.decode_per_token", operations),
  row("A prefill, all pairs counted", "flops.prefill_full_square", operations),
  row("Context", "flops.context", exact),
];

const LIMIT_ROWS = [
  row(
    "Rows of the position table",
    "limits.hard_context",
    (rows) => (rows === null ? "no table, no wall" : exact(rows)),
    { strong: true },
  ),
  row("Trained for, by its spec", "limits.trained_context", exact),
  row("Declared context", "context", exact),
];

const ROPE_ROWS = (/** @type {string} */ at) => [
  row("Pairs", `${at}.pairs`, exact),
  row("Base", `${at}.base`, exact),
  row("Pairing", `${at}.pairing`, asText),
  row("Fastest pair: positions a turn", `${at}.fastest_period`, exact),
  row("Slowest pair: positions a turn", `${at}.slowest_period`, exact),
  row("Scaling", `${at}.scaling.kind`, asText),
  row("Pairs unchanged", `${at}.scaling.unchanged`, exact),
  row("Pairs blended", `${at}.scaling.blended`, exact),
  row("Pairs stretched", `${at}.scaling.stretched`, exact),
];

/** Rows of what every kind of cache holds. @param {Shown[]} shown */
function cacheKindRows(shown) {
  const kinds = new Set(shown.flatMap(({ report }) => Object.keys((report && report.kv_cache.by_kind) || {})));
  return [...kinds].flatMap((kind) => [
    row(`${kind}: layers`, `kv_cache.by_kind.${kind}.layers`, exact),
    row(`${kind}: numbers a token`, `kv_cache.by_kind.${kind}.elements_per_token`, exact, { unlessZero: true }),
    row(`${kind}: until its windows are full`, `kv_cache.by_kind.${kind}.window_elements_per_token`, exact, {
      unlessZero: true,
    }),
    row(`${kind}: fixed`, `kv_cache.by_kind.${kind}.fixed_elements`, exact, { unlessZero: true }),
    row(`${kind}: at the context`, `kv_cache.by_kind.${kind}.elements_at_context`, exact),
  ]);
}

/** @param {string} summary @param {...(Node|null)} children */
function more(summary, ...children) {
  return h("details", {}, h("summary", {}, summary), ...children);
}

/** @param {Shown[]} shown @param {string} key */
function conventions(shown, key) {
  const lines = new Set(shown.flatMap(({ report }) => (report && valueAt(report, key)) || []));
  return h("ul", { class: "conventions" }, ...[...lines].map((line) => h("li", {}, line)));
}
