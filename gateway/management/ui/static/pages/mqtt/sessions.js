/** The list of MQTT sessions. */
import { html } from "../../lib/html.js";
import { useStore } from "../../lib/store.js";
import { to } from "../../lib/router.js";
import { listingPath, selectedVhost } from "../../lib/vhosts.js";
import { count, duration } from "../../lib/format.js";
import { Badge, Name, Page, Panel } from "../../components/basics.js";
import { PagedTable } from "../../components/tables.js";

const COLUMNS = [
  { title: "Client", sort: "client_id", isHeader: true, cell: (each) => html`<a href=${to("mqtt", "sessions", each.vhost, each.client_id)}><${Name} of=${each.client_id} /></a>` },
  { title: "Virtual host", sort: "vhost", isExtra: true, cell: (each) => html`<bdi>${each.vhost}</bdi>` },
  { title: "User", sort: "user", isExtra: true, cell: (each) => html`<bdi>${each.user}</bdi>` },
  { title: "State", sort: "connected", cell: (each) => html`<${Badge} kind=${each.connected ? "good" : ""}>${each.connected ? "connected" : "away"}<//>` },
  { title: "Expires", sort: "expiry_s", isExtra: true, cell: (each) => expiry(each) },
  { title: "Subscriptions", sort: "subscriptions", isNumber: true, isExtra: true, cell: (each) => count(each.subscriptions) },
  { title: "Ready", sort: "messages_ready", isNumber: true, cell: (each) => count(each.messages_ready) },
  { title: "Unacked", sort: "messages_unacknowledged", isNumber: true, cell: (each) => count(each.messages_unacknowledged) },
];

/** Return when a session ends after its client has left. */
export function expiry({ expiry_s: seconds, durable }) {
  if (!durable || seconds === 0) return "with its connection";
  return seconds === null ? "never" : `${duration(seconds * 1000)} after the client`;
}

export function Sessions() {
  const vhost = useStore(selectedVhost);
  return html`<${Page} title="MQTT sessions"><${Panel} isPadded=${false}>
    <${PagedTable} path=${listingPath("mqtt/sessions", vhost)} noun="sessions" columns=${COLUMNS} rowKey=${(each) => `${each.vhost}\n${each.client_id}`} />
  <//><//>`;
}
