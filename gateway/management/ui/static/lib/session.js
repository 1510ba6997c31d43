/** The user who is logged in, and what their tags permit. */
import { ApiError, get, request, whenUnauthorized } from "./api.js";
import { store } from "./store.js";

/** The levels of the API, each with the tags that grant it. */
const LEVELS = {
  management: ["management", "policymaker", "monitoring", "administrator"],
  policymaker: ["policymaker", "administrator"],
  monitoring: ["monitoring", "administrator"],
  administrator: ["administrator"],
  "policymaker or monitoring": ["policymaker", "monitoring", "administrator"],
};

/**
 * The session: `user` is `{name, tags}`, `null` if nobody is logged in, `undefined` until that is known.
 * `message` is shown on the login page.
 */
export const session = store({ user: undefined, message: "" });

/** Return whether the user's tags grant a level: a key of `LEVELS`. */
export function may(level) {
  const tags = session.get().user?.tags ?? [];
  return LEVELS[level].some((tag) => tags.includes(tag));
}

/** Find out whether the browser has a session. */
export async function resume() {
  whenUnauthorized(() => session.set({ user: null, message: "Your session has ended. Log in again." }));
  try {
    await enter();
  } catch (error) {
    session.set({ user: null, message: error.status === 0 ? error.message : "" });
  }
}

/** Log in. @throws {ApiError} if the name or the password is wrong */
export async function logIn(username, password) {
  await request("POST", "/login", { body: new URLSearchParams({ username, password }), isLogin: true });
  await enter();
}

/** End the session. */
export async function logOut() {
  try {
    await request("DELETE", "/login", { isLogin: true });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
  }
  session.set({ user: null, message: "You are logged out." });
}

async function enter() {
  const user = await get("/whoami", {}, { isLogin: true });
  const tags = typeof user.tags === "string" ? user.tags.split(",") : user.tags;
  session.set({ user: { name: user.name, tags }, message: "" });
}
