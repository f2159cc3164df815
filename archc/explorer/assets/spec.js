// The spec of what is on screen, and the command that makes a model of it.

/** @param {*} app @returns {(view: View) => void} */
function createSpec(app) {
  const text = h("code", { id: "spec-source" });
  const command = h("code", { id: "command" });
  const copy = (/** @type {string} */ what, /** @type {HTMLElement} */ from, /** @type {string} */ id) => {
    const button = h("button", { type: "button", id }, `Copy the ${what}`);
    button.addEventListener("click", () => copyFrom(button, from.textContent || "", `The ${what}`));
    return button;
  };
  bodyOf("spec-text").append(
    h(
      "div",
      { class: "code" },
      copy("spec", text, "copy-spec"),
      h("pre", { tabindex: "0", "aria-label": "The spec" }, text),
    ),
    h("h3", {}, "Make a PyTorch module of it"),
    h(
      "div",
      { class: "code" },
      copy("command", command, "copy-command"),
      h("pre", { tabindex: "0", "aria-label": "The command" }, command),
    ),
  );
  return (view) => {
    text.textContent = app.model.specText(view.first);
    command.textContent = app.model.command(view.first);
  };
}
