/** The virtual host that lists show: one of those the user may see, or all. */
import { keptStore } from "./store.js";
import { path } from "./api.js";

/** The name of the selected virtual host; `""` is all. */
export const selectedVhost = keptStore("gateway.vhost", "");

/** Return the path of a listing for the selection: `/queues`, or `/queues/NAME`. */
export function listingPath(noun, vhost) {
  return vhost === "" ? `/${noun}` : `/${noun}${path`/${vhost}`}`;
}
