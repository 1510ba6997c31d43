/**
 * The pages. A page with a `group` is in the navigation; others belong to the one in `parent`. `level` is the tag that
 * a page requires, `key` its shortcut after `g`. `load` returns the component, which gets the names in the pattern.
 */
import { may } from "../lib/session.js";

export const PAGES = [
  { pattern: "", title: "Overview", group: "Broker", key: "o", load: () => import("./overview/overview.js").then((module) => module.Overview) },

  { pattern: "queues", title: "Queues and streams", group: "Messages", key: "q", load: () => import("./queues/queues.js").then((module) => module.Queues) },
  { pattern: "queues/:vhost/:name", title: "Queue", parent: "queues", load: () => import("./queues/queue.js").then((module) => module.Queue) },
  { pattern: "exchanges", title: "Exchanges", group: "Messages", key: "e", load: () => import("./exchanges/exchanges.js").then((module) => module.Exchanges) },
  { pattern: "exchanges/:vhost/:name", title: "Exchange", parent: "exchanges", load: () => import("./exchanges/exchange.js").then((module) => module.Exchange) },
];

/** Return the pages of the navigation that the user's tags open. */
export function visiblePages() {
  return PAGES.filter((page) => page.group && may(page.level ?? "management"));
}
