/** Numbers, sizes, times and names as text. */

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** Return a count with separators; a dash if it is unknown. */
export function count(value) {
  return typeof value === "number" ? whole.format(value) : "–";
}

/** Return a short count for axes: 12K. */
export function shortCount(value) {
  return compact.format(value);
}

/** Return a rate per second without its unit: one digit below 100. */
export function rate(value) {
  if (typeof value !== "number") return "–";
  return value === 0 ? "0" : Math.abs(value) < 100 ? fine.format(value) : whole.format(value);
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** Return a size in binary units. */
export function bytes(value) {
  if (typeof value !== "number") return "–";
  let unit = 0;
  let scaled = value;
  while (Math.abs(scaled) >= 1024 && unit < UNITS.length - 1) {
    scaled /= 1024;
    unit += 1;
  }
  return `${unit === 0 || scaled >= 100 ? whole.format(scaled) : fine.format(scaled)} ${UNITS[unit]}`;
}

/** Return a duration given in milliseconds, with its two largest units. */
export function duration(ms) {
  if (typeof ms !== "number" || Number.isNaN(ms)) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = Math.floor(ms / 1000);
  const parts = [["d", Math.floor(seconds / 86400)], ["h", Math.floor(seconds / 3600) % 24], ["min", Math.floor(seconds / 60) % 60], ["s", seconds % 60]];
  const first = parts.findIndex(([, amount]) => amount > 0);
  return parts.slice(first, first + 2).filter(([, amount]) => amount > 0).map(([unit, amount]) => `${amount} ${unit}`).join(" ");
}

/** Return a time, given in milliseconds since 1970, as local date and time. */
export function time(ms) {
  const at = new Date(ms);
  const two = (number) => String(number).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** Return a JSON value in one line; strings without quotes. */
export function value(given) {
  if (typeof given === "string") return given;
  return JSON.stringify(given);
}

/** Return the rate of a counter in `message_stats`. */
export function rateOf(stats, name) {
  return stats?.[`${name}_details`]?.rate ?? 0;
}

/** Return the singular or the plural with its number. */
export function plural(amount, one, many = `${one}s`) {
  return `${count(amount)} ${amount === 1 ? one : many}`;
}
