/** The subscriptions of STOMP clients. */
import { html } from "../../lib/html.js";
import { useStore } from "../../lib/store.js";
import { listingPath, selectedVhost } from "../../lib/vhosts.js";
import { count } from "../../lib/format.js";
import { Badge, Name, Page, Panel, QueueLink } from "../../components/basics.js";
import { ConnectionLink } from "../../components/client-links.js";
import { PagedTable } from "../../components/tables.js";

const COLUMNS = [
  { title: "Queue", sort: "name", isHeader: true, cell: (each) => html`<${QueueLink} ...${each} />` },
  { title: "Subscription", sort: "consumer_tag", cell: (each) => html`<${Name} of=${each.consumer_tag} />` },
  { title: "Connection", isExtra: true, cell: (each) => html`<${ConnectionLink} name=${each.channel_details.connection_name} />` },
  { title: "User", sort: "user", isExtra: true, cell: (each) => html`<bdi>${each.user}</bdi>` },
  { title: "Version", sort: "protocol", isExtra: true, cell: (each) => each.protocol },
  { title: "Acknowledges", sort: "ack_required", cell: (each) => html`<${Badge}>${each.ack_required ? "by client" : "auto"}<//>` },
  { title: "Prefetch", sort: "prefetch_count", isNumber: true, isExtra: true, cell: (each) => (each.prefetch_count ? count(each.prefetch_count) : "–") },
];

export function Subscriptions() {
  const vhost = useStore(selectedVhost);
  return html`<${Page} title="STOMP subscriptions"><${Panel} isPadded=${false}>
    <${PagedTable} path=${listingPath("stomp/subscriptions", vhost)} noun="subscriptions" columns=${COLUMNS} rowKey=${(each) => `${each.channel_details.name} ${each.consumer_tag}`} />
  <//><//>`;
}
