// The spec of what is on screen, and the commands that make a module of it, and its figures.

/** @param {*} app @returns {(view: View) => void} */
function createSpec(app) {
  const text = h("code", { id: "spec-source" });
  const commands = { generate: h("code", { id: "command" }), report: h("code", { id: "report-command" }) };
  const copied = (/** @type {string} */ what, /** @type {HTMLElement} */ from, /** @type {string} */ id) => {
    const button = h("button", { type: "button", id: `copy-${id}` }, `Copy the ${what}`);
    button.addEventListener("click", () => copyFrom(button, from.textContent || "", `The ${what}`));
    return h(
      "div",
      { class: from === text ? "code" : "code line" },
      button,
      h("pre", { tabindex: "0", "aria-label": `The ${what}` }, from),
    );
  };
  bodyOf("spec-text").append(
    copied("spec", text, "spec"),
    h("h3", {}, "Make a PyTorch module of it"),
    copied("command", commands.generate, "command"),
    h("h3", {}, "The figures in a terminal"),
    copied("report command", commands.report, "report-command"),
  );
  return (view) => {
    text.textContent = app.model.specText(view.first);
    const { generate, report } = app.model.commands(view.first);
    commands.generate.textContent = generate;
    commands.report.textContent = report;
  };
}
