/**
 * Requests to the HTTP API. Paths are made with the tag `path`, which encodes the names in them:
 * path`/queues/${vhost}/${name}`.
 */

/** An answer that is not a success, or no answer (`status` 0). `message` is for people. */
export class ApiError extends Error {
  constructor(status, message, error = "") {
    super(message);
    this.status = status;
    this.error = error;
  }
}

let onUnauthorized = () => {};

/** Set what is called when the server no longer accepts the session. */
export function whenUnauthorized(call) {
  onUnauthorized = call;
}

/** A template tag: encodes each name in a path. */
export function path(strings, ...names) {
  return strings.reduce((made, part, index) => made + encodeURIComponent(names[index - 1]) + part);
}

/** Return a path with a query; `undefined`, `null`, `false` and empty values are left out. */
export function withQuery(base, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value || value === 0);
  return given.length ? `${base}?${new URLSearchParams(given)}` : base;
}

export const get = (target, query, options) => request("GET", withQuery(target, query), options);
/** Return the first row of a list that matches; `undefined` if there is none. */
export const find = async (target, matches) => (await get(target)).find(matches);

export const put = (target, body = {}) => request("PUT", target, { body });
export const post = (target, body = {}) => request("POST", target, { body });
export const remove = (target, options) => request("DELETE", target, options);

/**
 * Send a request below `/api`; return the decoded answer, `null` if it is empty.
 * @param {string} method
 * @param {string} target path with its query
 * @param {{body?: unknown, headers?: Record<string, string>, signal?: AbortSignal, isLogin?: boolean}} [options]
 */
export async function request(method, target, { body, headers = {}, signal, isLogin = false } = {}) {
  const answer = await send(method, target, { body, headers, signal });
  const text = await answer.text();
  const content = decoded(text, answer.headers.get("Content-Type") ?? "");
  if (answer.ok) return content;
  const error = errorOf(answer, content);
  if (answer.status === 401 && error.error !== "not_authorised" && !isLogin) onUnauthorized();
  throw error;
}

async function send(method, target, { body, headers, signal }) {
  const isForm = body instanceof URLSearchParams;
  try {
    return await fetch(`/api${target}`, {
      method,
      signal,
      headers: {
        "X-Requested-With": "XMLHttpRequest",
        ...(body === undefined || isForm ? {} : { "Content-Type": "application/json" }),
        ...headers,
      },
      body: body === undefined || isForm ? body : JSON.stringify(body),
      credentials: "same-origin",
      cache: "no-store",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The broker does not answer. Is it running, and is the network up?");
  }
}

function decoded(text, type) {
  if (!text) return null;
  if (!type.includes("json")) return text;
  try {
    return HAS_LONG_NUMBER.test(text) ? JSON.parse(text, exact) : JSON.parse(text);
  } catch {
    return text;
  }
}

const HAS_LONG_NUMBER = /\d{16}/;

/** Return an integer beyond 2 ** 53, such as the number of a message, as text: as a number it would be rounded. */
function exact(_, given, context) {
  return Number.isInteger(given) && !Number.isSafeInteger(given) ? context?.source ?? given : given;
}

function errorOf(answer, content) {
  const { error = "", reason = "" } = typeof content === "object" && content !== null ? content : {};
  const said = typeof reason === "string" ? reason : JSON.stringify(reason);
  return new ApiError(answer.status, said || error || `The broker answered ${answer.status} ${answer.statusText}`, error);
}
