/**
 * The pages. A page with a `group` is in the navigation; others belong to the one in `parent`. `level` is the tag that
 * a page requires, `key` its shortcut after `g`. `load` returns the component, which gets the names in the pattern.
 */
import { may } from "../lib/session.js";

export const PAGES = [
  { pattern: "", title: "Overview", group: "Broker", key: "o", load: () => import("./overview/overview.js").then((module) => module.Overview) },
  { pattern: "topology", title: "Topology", group: "Broker", key: "t", load: () => import("./topology/topology.js").then((module) => module.Topology) },

  { pattern: "queues", title: "Queues and streams", group: "Messages", key: "q", load: () => import("./queues/queues.js").then((module) => module.Queues) },
  { pattern: "queues/:vhost/:name", title: "Queue", parent: "queues", load: () => import("./queues/queue.js").then((module) => module.Queue) },
  { pattern: "exchanges", title: "Exchanges", group: "Messages", key: "e", load: () => import("./exchanges/exchanges.js").then((module) => module.Exchanges) },
  { pattern: "exchanges/:vhost/:name", title: "Exchange", parent: "exchanges", load: () => import("./exchanges/exchange.js").then((module) => module.Exchange) },
  { pattern: "streams", title: "Streams", group: "Messages", key: "s", load: () => import("./streams/streams.js").then((module) => module.Streams) },
  { pattern: "retained", title: "Retained messages", group: "Messages", key: "r", load: () => import("./mqtt/retained.js").then((module) => module.Retained) },
  { pattern: "publish", title: "Publish and watch", group: "Messages", key: "p", load: () => import("./publish/publish.js").then((module) => module.PublishAndWatch) },

  { pattern: "connections", title: "Connections", group: "Clients", key: "c", load: () => import("./connections/connections.js").then((module) => module.Connections) },
  { pattern: "connections/:name", title: "Connection", parent: "connections", load: () => import("./connections/connection.js").then((module) => module.Connection) },
  { pattern: "channels", title: "Channels", group: "Clients", key: "h", load: () => import("./connections/channels.js").then((module) => module.Channels) },
  { pattern: "mqtt/sessions", title: "MQTT sessions", group: "Clients", key: "m", load: () => import("./mqtt/sessions.js").then((module) => module.Sessions) },
  { pattern: "mqtt/sessions/:vhost/:client", title: "MQTT session", parent: "mqtt/sessions", load: () => import("./mqtt/session.js").then((module) => module.Session) },
  { pattern: "stomp/subscriptions", title: "STOMP subscriptions", group: "Clients", key: "b", load: () => import("./stomp/subscriptions.js").then((module) => module.Subscriptions) },

  { pattern: "explain", title: "Explain a publish", group: "Diagnosis", key: "x", load: () => import("./tracing/explain.js").then((module) => module.Explain) },
  { pattern: "traces", title: "Where is my message?", group: "Diagnosis", key: "w", level: "monitoring", load: () => import("./tracing/traces.js").then((module) => module.Traces) },
  { pattern: "trace-files", title: "Trace files", group: "Diagnosis", key: "k", level: "administrator", load: () => import("./trace-files/trace-files.js").then((module) => module.TraceFiles) },

  { pattern: "policies", title: "Policies", group: "Settings", key: "l", load: () => import("./policies/policies.js").then((module) => module.Policies) },
  { pattern: "bridges", title: "Shovels and federation", group: "Settings", key: "f", level: "policymaker or monitoring", load: () => import("./bridges/bridges.js").then((module) => module.Bridges) },
  { pattern: "pipeline", title: "Archives and pipeline", group: "Settings", key: "a", load: () => import("./pipeline/pipeline.js").then((module) => module.Pipeline) },
  { pattern: "plugins", title: "Plugins", group: "Settings", key: "n", level: "administrator", load: () => import("./plugins/plugins.js").then((module) => module.Plugins) },
  { pattern: "plugins/:vhost/:name", title: "Plugin", parent: "plugins", level: "administrator", load: () => import("./plugins/plugin.js").then((module) => module.Plugin) },

  { pattern: "vhosts", title: "Virtual hosts", group: "Administration", key: "v", level: "administrator", load: () => import("./vhosts/vhosts.js").then((module) => module.Vhosts) },
  { pattern: "vhosts/:name", title: "Virtual host", parent: "vhosts", level: "administrator", load: () => import("./vhosts/vhost.js").then((module) => module.Vhost) },
  { pattern: "users", title: "Users", group: "Administration", key: "u", level: "administrator", load: () => import("./users/users.js").then((module) => module.Users) },
  { pattern: "users/:name", title: "User", parent: "users", level: "administrator", load: () => import("./users/user.js").then((module) => module.User) },
  { pattern: "audit", title: "Audit record", group: "Administration", key: "i", level: "administrator", load: () => import("./audit/audit.js").then((module) => module.Audit) },
  { pattern: "definitions", title: "Definitions", group: "Administration", key: "d", level: "administrator", load: () => import("./definitions/definitions.js").then((module) => module.Definitions) },
];

/** Return the pages of the navigation that the user's tags open. */
export function visiblePages() {
  return PAGES.filter((page) => page.group && may(page.level ?? "management"));
}
