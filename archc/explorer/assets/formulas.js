// Formulas: printed by Python, evaluated here. Counts are BigInts, so they are exact.

/**
 * @param {*} data what Python has worked out: `nodes` are forks, [condition, then, otherwise], and leaves
 * @param {*} formulas functions that make the lists of formulas from a way to round down
 */
function createFormulas(data, formulas) {
  const counts = formulas.counts(floor);
  const doubles = formulas.doubles(Math.floor);

  /** The whole number at or below a / b, for a positive b. */
  function floor(a, b) {
    const quotient = a / b;
    return a % b < 0n ? quotient - 1n : quotient;
  }

  /** A formula's value: a number where it can be one exactly, a BigInt beyond. */
  function valueOf(formula, v) {
    return quotient(fractionOf(formula, v));
  }

  /** What an expression comes to. @param {number} formula @param {*} v @returns {bigint} */
  function countOf(formula, v) {
    return counts[formula](v);
  }

  /** A fraction, [above, below]. @param {number|number[]} formula @param {*} v @returns {[bigint, bigint]} */
  function fractionOf(formula, v) {
    return Array.isArray(formula) ? [countOf(formula[0], v), countOf(formula[1], v)] : [countOf(formula, v), 1n];
  }

  /** What a tree of doubles comes to. @param {number} node @param {*} v @returns {number} */
  function doubleOf(node, v) {
    return doubles[leafOf(node, v, doubles)](v);
  }

  /** The leaf that a tree of conditions leads to. */
  function leafOf(node, v, conditions = counts) {
    let found = data.nodes[node];
    while (Array.isArray(found)) found = data.nodes[conditions[found[0]](v) ? found[1] : found[2]];
    return found.leaf;
  }

  /** A text with its numbers. */
  function textOf(text, v) {
    if (typeof text === "string") return text;
    return text.map((part) => (Array.isArray(part) ? formatted(valueOf(part[0], v), part[1]) : part)).join("");
  }

  /** As Python's format() has it, for the formats that texts use. */
  function formatted(number, form) {
    if (form === "") return String(number);
    if (form === ",") return number.toLocaleString("en-US");
    if (form === "g") return String(Number(Number(number).toPrecision(6)));
    throw new Error(`no format ${form}`);
  }

  return { valueOf, countOf, fractionOf, doubleOf, leafOf, textOf };
}

/** A count as a number, where it can be one exactly. @param {bigint} count @returns {number|bigint} */
function plain(count) {
  return count <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(count) : count;
}

/** A fraction as a number, whole where it is. @param {[bigint, bigint]} fraction @returns {number|bigint} */
function quotient([above, below]) {
  return above % below === 0n ? plain(above / below) : Number(above) / Number(below);
}
