/** The comparison of definitions with those of the broker. */
import { value } from "../../lib/format.js";

/** The fields that identify an object of each section. */
const KEYS = {
  users: ["name"], vhosts: ["name"], permissions: ["vhost", "user"], topic_permissions: ["vhost", "user", "exchange"], global_parameters: ["name"],
  parameters: ["vhost", "component", "name"], policies: ["vhost", "name"], operator_policies: ["vhost", "name"], exchanges: ["vhost", "name"], queues: ["vhost", "name"],
  bindings: ["vhost", "source", "destination_type", "destination", "routing_key", "arguments"],
};

/** Sections whose existing objects an import does not change. */
const FIXED = ["exchanges", "queues"];

/** Fields that are not settings. */
const IGNORED = ["user_who_performed_action", "metadata", "properties_key"];

/**
 * Compare definitions.
 * @returns {Array<{section: string, name: string, change: "new" | "changed" | "conflict" | "same", differences: Array<{field: string, before: string, after: string}>}>}
 */
export function compare(present, wanted) {
  const rows = [];
  for (const [section, keys] of Object.entries(KEYS)) {
    const existing = new Map((present[section] ?? []).map((each) => [identity(each, keys), each]));
    for (const each of wanted[section] ?? []) {
      const differences = differencesOf(existing.get(identity(each, keys)), each);
      rows.push({ section, name: nameOf(each, keys), ...verdict(section, existing.has(identity(each, keys)), differences) });
    }
  }
  return rows;
}

function verdict(section, exists, differences) {
  if (!exists) return { change: "new", differences: [] };
  if (differences.length === 0) return { change: "same", differences };
  return { change: FIXED.includes(section) ? "conflict" : "changed", differences };
}

const identity = (object, keys) => JSON.stringify(keys.map((key) => sorted(object[key])));

const nameOf = (object, keys) => keys.filter((key) => key !== "arguments").map((key) => value(object[key] ?? "")).filter(Boolean).join(" / ");

function differencesOf(before, after) {
  if (!before) return [];
  const fields = Object.keys(after).filter((field) => !IGNORED.includes(field) && JSON.stringify(sorted(before[field])) !== JSON.stringify(sorted(after[field])));
  const isSecret = (field) => field.startsWith("password");
  return fields.map((field) => ({ field, before: isSecret(field) ? "…" : shown(before[field]), after: isSecret(field) ? "another" : shown(after[field]) }));
}

const shown = (given) => (given === undefined ? "not set" : value(given));

/** Return a value whose objects have their keys in order. */
function sorted(given) {
  if (Array.isArray(given)) return given.map(sorted);
  if (typeof given !== "object" || given === null) return given;
  return Object.fromEntries(Object.keys(given).sort().map((key) => [key, sorted(given[key])]));
}
