// Making elements. Text only ever enters the page as text nodes: specs are untrusted.

const SVG = "http://www.w3.org/2000/svg";

/**
 * An HTML element. Attributes that are null or false are left out; functions become listeners (`onclick`).
 * @param {string} tag
 * @param {Object<string, *>} [attributes]
 * @param {...(Node|string|null|undefined|false)} children
 */
function h(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/**
 * An SVG element, as `h`.
 * @param {string} tag
 * @param {Object<string, *>} [attributes]
 * @param {...(Node|string|null|undefined|false)} children
 */
function svg(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/** @param {Element} element @param {Object<string, *>|undefined} attributes @param {Array<*>} children */
function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/**
 * A picture that says in words what it shows.
 * @param {{width: number, height: number, title: string, description: string, class?: string}} about
 * @param {...(Node|null)} children
 */
function picture(about, ...children) {
  const id = `picture-${(picture.count = (picture.count || 0) + 1)}`;
  return svg(
    "svg",
    {
      viewBox: `0 0 ${about.width} ${about.height}`,
      width: about.width,
      role: "img",
      class: about.class || null,
      "aria-labelledby": `${id}-title ${id}-desc`,
    },
    svg("title", { id: `${id}-title` }, about.title),
    svg("desc", { id: `${id}-desc` }, about.description),
    ...children,
  );
}

/** @param {string} id */
function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/** Where a section of the page puts what it shows. @param {string} id */
function bodyOf(id) {
  return /** @type {HTMLElement} */ (byId(id).querySelector(".body"));
}

/** Say something to readers of the screen, without moving anyone. @param {string} text */
function say(text) {
  byId("said").textContent = text;
}

/**
 * Copy text, and say so on the button for a moment.
 * @param {HTMLButtonElement} button @param {string} text @param {string} what
 */
async function copyFrom(button, text, what) {
  const before = button.dataset.label || (button.dataset.label = button.textContent || "");
  const copied = await wasCopied(text);
  button.textContent = copied ? "Copied" : "Not copied";
  say(copied ? `${what} copied` : `${what} could not be copied: select it by hand`);
  setTimeout(() => (button.textContent = before), 1600);
}

/** @param {string} text @returns {Promise<boolean>} */
async function wasCopied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Where the page may not write to the clipboard by itself, the old command often still can.
    const area = h("textarea", { class: "unseen", "aria-hidden": "true", tabindex: "-1" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/**
 * A field that a number is typed into. While somebody types, nothing else writes into it.
 * @param {Object<string, *>} attributes @param {(text: string) => void} onNumber once it is typed
 */
function numberField(attributes, onNumber) {
  const field = h("input", { type: "number", step: "1", inputmode: "numeric", ...attributes });
  field.addEventListener("input", () => (field.dataset.typing = ""));
  field.addEventListener("change", () => {
    delete field.dataset.typing;
    onNumber(field.value);
  });
  field.addEventListener("blur", () => delete field.dataset.typing);
  return field;
}

/** @param {HTMLInputElement} field @param {number} value */
function showNumber(field, value) {
  if (field.dataset.typing === undefined && field.value !== String(value)) field.value = String(value);
}
