/** The router: the part of the address after `#` selects a page, its names and its query. */
import { store } from "./store.js";

/** The current location: `{path, segments, query}`; the segments are decoded. */
export const location_ = store(parse());

globalThis.addEventListener("hashchange", () => location_.set(parse()));

function parse() {
  const [path, query = ""] = globalThis.location.hash.replace(/^#/, "").split("?");
  return { path: path || "/", segments: path.split("/").filter(Boolean).map(decode), query: Object.fromEntries(new URLSearchParams(query)) };
}

function decode(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** Return the address of a page: `to("queues", vhost, name)`. */
export function to(...segments) {
  return `#/${segments.map(encodeURIComponent).join("/")}`;
}

/** Return an address with a query; empty values are left out. */
export function toQuery(address, query) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false);
  return given.length ? `${address}?${new URLSearchParams(given)}` : address;
}

/** Go to an address. */
export function go(address) {
  globalThis.location.hash = address;
}

/** Change some fields of the current query without a new entry in the browser's history. */
export function setQuery(changes) {
  const { segments, query } = location_.get();
  history.replaceState(null, "", toQuery(to(...segments), { ...query, ...changes }));
  location_.set(parse());
}

/**
 * Return the page of the current location and its parameters.
 * @param {Array<{pattern: string}>} pages patterns such as `queues/:vhost/:name`
 */
export function match(pages, segments) {
  for (const page of pages) {
    const parts = page.pattern.split("/").filter(Boolean);
    if (parts.length !== segments.length) continue;
    const isMatch = parts.every((part, index) => part.startsWith(":") || part === segments[index]);
    if (!isMatch) continue;
    const named = parts.map((part, index) => [part, segments[index]]).filter(([part]) => part.startsWith(":"));
    return { page, parameters: Object.fromEntries(named.map(([part, value]) => [part.slice(1), value])) };
  }
  return null;
}
