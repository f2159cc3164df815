// Numbers as people read them, digit for digit as archc prints them (archc/render/units.py).

const THOUSANDS = ["", "k", "M", "G", "T", "P", "E", "Z", "Y"];
const COUNTS = ["", "k", "M", "B", "T", "P", "E"];
const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"];

/** Significant digits, half to even as Python rounds, without zeros behind. @param {number} value @param {number} digits */
function significant(value, digits) {
  if (value === 0) return "0";
  const [mantissa, exponent] = Math.abs(value).toExponential(60).split("e");
  const all = mantissa.replace(".", "");
  let kept = BigInt(all.slice(0, digits));
  const rest = all.slice(digits);
  const half = "5".padEnd(rest.length, "0");
  if (rest > half || (rest === half && kept % 2n === 1n)) kept += 1n;
  const plain = Number(`${kept}e${Number(exponent) - digits + 1}`);
  return (value < 0 ? "-" : "") + String(plain);
}

/** Digits behind the point, half to even as Python rounds. @param {number} value @param {number} decimals */
function fixed(value, decimals) {
  const [whole, rest] = Math.abs(value).toFixed(60).split(".");
  let kept = BigInt(whole + rest.slice(0, decimals));
  const behind = rest.slice(decimals);
  const half = "5".padEnd(behind.length, "0");
  if (behind > half || (behind === half && kept % 2n === 1n)) kept += 1n;
  const digits = kept.toString().padStart(decimals + 1, "0");
  const point = digits.length - decimals;
  return (value < 0 ? "-" : "") + digits.slice(0, point) + (decimals ? `.${digits.slice(point)}` : "");
}

/** @param {number|bigint} count @param {number} step @param {string[]} units @returns {[string, string]} */
function scaled(count, step, units) {
  let value = Number(count);
  let power = 0;
  while (Math.abs(value) >= step && power < units.length - 1) {
    value /= step;
    power += 1;
  }
  // Rounding may carry into the next unit: 999,999 bytes are 1 MB, not 1000 kB.
  if (Number(significant(value, 4)) >= step && power < units.length - 1) {
    value /= step;
    power += 1;
  }
  const digits = significant(value, 4);
  return [Math.abs(Number(digits)) >= 10000 ? value.toFixed(0) : digits, units[power]];
}

/** Bytes in powers of 1000. @param {number|bigint} count */
function decimalBytes(count) {
  const [number, prefix] = scaled(count, 1000, THOUSANDS);
  return `${number} ${prefix}B`;
}

/** Bytes in powers of 1024. @param {number|bigint} count */
function binaryBytes(count) {
  return scaled(count, 1024, BINARY).join(" ");
}

/** A count in thousands, millions, billions (10⁹), trillions (10¹²). @param {number|bigint} count */
function shortCount(count) {
  return scaled(count, 1000, COUNTS).join(" ").trimEnd();
}

/** Floating-point operations. @param {number|bigint} count */
function operations(count) {
  const [number, prefix] = scaled(count, 1000, THOUSANDS);
  return `${number} ${prefix}FLOP`;
}

/** All digits of a whole number, four of any other. @param {number|bigint} count */
function exact(count) {
  if (typeof count === "bigint") return count.toLocaleString("en-US");
  if (Number.isInteger(count) || Math.abs(count) >= 1000) return BigInt(fixed(count, 0)).toLocaleString("en-US");
  return significant(count, 4);
}

/** A share with one decimal. @param {number} share */
function percent(share) {
  return `${fixed(100 * share, 1)} %`;
}

/** @param {number} count @param {string} thing */
function several(count, thing) {
  return `${exact(count)} ${thing}${count === 1 ? "" : "s"}`;
}

/** A value as JSON writes it. @param {*} value @returns {string} */
function asJson(value) {
  if (typeof value === "bigint") return value.toString();
  if (Array.isArray(value)) return `[${value.map(asJson).join(",")}]`;
  return JSON.stringify(value);
}
