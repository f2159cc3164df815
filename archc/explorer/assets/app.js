// The page as a whole: a change to the view, and everything that is shown of it.

const PAUSE = 180;
const SPEAK_AFTER = 900;

/** Unpack the data, and start. The time that it took is left on the page, in milliseconds. */
async function begin() {
  if (typeof DecompressionStream === "undefined") {
    byId("problem").textContent = "This page needs a browser of 2023 or later.";
    byId("problem").hidden = false;
    return;
  }
  start(await unpacked(byId("data").textContent || ""));
  document.body.dataset.ready = String(Math.round(performance.now()));
}

/** JSON that was compressed and written in base64. @param {string} text */
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
}

/** @param {*} data */
function start(data) {
  const app = { model: createModel(data, FORMULAS), change };
  const home = app.model.specs[0].name;
  let wished = fromHash(app.model, location.hash, home);
  let waiting = 0;
  let pausing = 0;
  let speaking = 0;
  /** @type {Shown|null} what was last spoken of */
  let spoken = null;
  const controls = createControls(app);
  const panels = createPanels(app);
  const drawing = createDrawing(app);
  const rope = createRope(app);
  const spec = createSpec(app);
  createTools();

  /** @param {(view: View) => View} next */
  function change(next) {
    wished = next(wished);
    delete document.body.dataset.rested;
    if (!waiting) waiting = requestAnimationFrame(render);
  }

  function render() {
    waiting = 0;
    const view = settledView(app.model, wished);
    const all = shownOf(app.model, view);
    const [{ report }] = all;
    // A model beside that cannot be at this context has no figures: the form says why.
    const shown = all.filter((one, at) => at === 0 || one.report !== null);
    document.body.classList.toggle("two-models", shown.length > 1);
    controls(view, all);
    showFindings(shown[0]);
    setStale(report === null);
    if (report !== null) panels.show(shown);
    drawing(shown, view);
    rope.show(shown, view);
    spec(view);
    clearTimeout(pausing);
    pausing = setTimeout(() => pause(shown, view), PAUSE);
    clearTimeout(speaking);
    speaking = setTimeout(() => speak(shown[0]), SPEAK_AFTER);
  }

  /** What can wait until a slider rests. @param {Shown[]} shown @param {View} view */
  function pause(shown, view) {
    panels.idle(shown, view);
    rope.idle(view);
    document.body.dataset.rested = "";
    const hash = asHash(app.model, wished, home);
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  }

  /** @param {Shown} shown */
  function speak(shown) {
    if (!shown.report) return;
    const text = spoken ? spokenHeadline(shown, spoken) : "";
    if (text) say(text);
    spoken = shown;
  }

  window.addEventListener("hashchange", () => change(() => fromHash(app.model, location.hash, home)));
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth !== width) change((same) => same);
    width = window.innerWidth;
  });
  render();
}

/** @param {*} model @param {View} view @returns {Shown[]} */
function shownOf(model, view) {
  const states = [view.first, view.second].filter((state) => state);
  return states.map((state, at) => ({
    name: nameOf(model, state, at, view),
    report: model.report(state),
    findings: model.findings(state),
    state,
  }));
}

/** @param {*} model @param {State} state @param {number} at @param {View} view */
function nameOf(model, state, at, view) {
  if (!view.second || view.second.spec !== view.first.spec) return state.spec;
  const changes = changesOf(model, state).filter(({ id }) => !at || !SHARED.includes(id)).length;
  return changes ? `${state.spec}, changed${at ? " before" : ""}` : state.spec;
}

/** Figures that are no longer those of what is on screen step back, and no longer claim to be. @param {boolean} stale */
function setStale(stale) {
  document.body.classList.toggle("stale", stale);
  document.body.classList.toggle("bare", !byId("headline").firstChild && stale);
  if (!stale) return;
  for (const old of document.querySelectorAll("[data-key]")) {
    for (const name of ["data-key", "data-value", "data-model"]) old.removeAttribute(name);
  }
}

// ---------------------------------------------------------------- the top of the page

function createTools() {
  const link = /** @type {HTMLButtonElement} */ (byId("copy-link"));
  link.addEventListener("click", () => copyFrom(link, location.href, "The link"));
  const theme = byId("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const wanted = remembered();
    const isDark = wanted ? wanted === "dark" : dark.matches;
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    theme.setAttribute("aria-pressed", String(isDark));
  };
  theme.addEventListener("click", () => {
    const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    remember(next === (dark.matches ? "dark" : "light") ? null : next);
    apply();
  });
  dark.addEventListener("change", apply);
  apply();
  // The address holds what is on screen, so links within the page must leave it alone.
  document.addEventListener("click", (event) => {
    const to = event.target instanceof Element ? event.target.closest('a[href^="#"]') : null;
    if (!to) return;
    event.preventDefault();
    const place = byId((to.getAttribute("href") || "").slice(1));
    place.scrollIntoView({ block: "start" });
    place.focus({ preventScroll: true });
  });
}

const THEME = "archc-explorer-theme";
/** @type {string|null} what was chosen, where the browser keeps nothing for a page from disk */
let themeHere = null;

/** @returns {string|null} */
function remembered() {
  try {
    return localStorage.getItem(THEME) || themeHere;
  } catch {
    return themeHere;
  }
}

/** @param {string|null} theme */
function remember(theme) {
  themeHere = theme;
  try {
    if (theme) localStorage.setItem(THEME, theme);
    else localStorage.removeItem(THEME);
  } catch {
    // Then it lasts as long as the page does.
  }
}
