// A spec as text.

const YAML_WIDTH = 100;
const YAML_PLAIN = /^[A-Za-z][A-Za-z0-9_./-]*$/;
/** What YAML takes for something else than text. */
const YAML_WORD = /^(true|false|null|yes|no|on|off)$/i;

/** YAML as a person writes it: a line for every key, with mappings in braces where they fit into one. */
function yamlOf(spec) {
  const lines = Object.entries(spec).map(([key, value]) => yamlBlock(key, value, 0));
  return `${lines.join("\n")}\n`;
}

function yamlBlock(key, value, depth) {
  const indent = "  ".repeat(depth);
  const name = yamlFlow(key);
  const line = `${indent}${name}: ${yamlFlow(value)}`;
  if (line.length <= YAML_WIDTH || typeof value !== "object" || value === null) return line;
  const inner = Array.isArray(value)
    ? value.map((one) => `${indent}  - ${yamlFlow(one)}`)
    : Object.entries(value).map(([key, one]) => yamlBlock(key, one, depth + 1));
  return [`${indent}${name}:`, ...inner].join("\n");
}

function yamlFlow(value) {
  if (Array.isArray(value)) return `[${value.map(yamlFlow).join(", ")}]`;
  if (value !== null && typeof value === "object") {
    const entries = Object.entries(value).map(([key, one]) => `${yamlFlow(key)}: ${yamlFlow(one)}`);
    return `{${entries.join(", ")}}`;
  }
  if (typeof value !== "string") return String(value);
  return YAML_PLAIN.test(value) && !YAML_WORD.test(value) ? value : yamlQuoted(value);
}

/** In quotes as JSON has them, with what YAML lets no text hold or takes for the end of a line written out. */
function yamlQuoted(text) {
  return JSON.stringify(text).replace(
    /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** A pattern in words: runs as `5*local`, and what repeats from its start on as `4*(...)`. */
function patternText(pattern) {
  const runs = [];
  for (const kind of pattern) {
    if (runs.length && runs.at(-1)[1] === kind) runs.at(-1)[0] += 1;
    else runs.push([1, kind]);
  }
  const words = runs.map(([count, kind]) => (count === 1 ? kind : `${count}*${kind}`));
  const found = [];
  for (let at = 0; at < words.length;) {
    const [times, length] = repetition(words, at);
    found.push(times > 1 ? `${times}*(${words.slice(at, at + length).join(", ")})` : words[at]);
    at += times > 1 ? times * length : 1;
  }
  return found.join(", ");
}

/** How often which length of words repeats from a place on, where that covers most. */
function repetition(words, at) {
  let best = [1, 1];
  for (let length = 2; at + 2 * length <= words.length; length += 1) {
    const unit = words.slice(at, at + length).join();
    let times = 1;
    while (words.slice(at + times * length, at + (times + 1) * length).join() === unit) times += 1;
    if (times > 1 && times * length > best[0] * best[1]) best = [times, length];
  }
  return best;
}
