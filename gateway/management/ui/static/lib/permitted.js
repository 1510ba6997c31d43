/** What the user may do with a queue or an exchange. The broker checks each request; this only hides what it would refuse. */
import { path } from "./api.js";
import { usePolling } from "./polling.js";
import { session } from "./session.js";

/**
 * Return a function that tells whether all of some operations (configure, write, read) are permitted; none before that is known.
 * @param {"queue" | "exchange"} kind
 * @param {string} name that of an exchange as in addresses: amq.default
 */
export function usePermitted(kind, vhost, name) {
  const check = usePolling(path`/permissions/${vhost}/${session.get().user.name}/check`, { kind, name }, { interval: 0 });
  return (...operations) => operations.every((operation) => check.data?.operations[operation]);
}

/** Return whether the user has permissions in a virtual host; `undefined` before that is known. */
export function useEnters(vhost) {
  return usePolling(path`/permissions/${vhost}/${session.get().user.name}/check`, { kind: "queue", name: "" }, { interval: 0 }).data?.enters;
}
