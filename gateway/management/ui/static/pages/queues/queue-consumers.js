/** The consumers of a queue. */
import { html } from "../../lib/html.js";
import { count, value } from "../../lib/format.js";
import { Badge, Name, Panel } from "../../components/basics.js";
import { ChannelLink } from "../../components/client-links.js";
import { Table } from "../../components/tables.js";

const COLUMNS = [
  { title: "Tag", isHeader: true, cell: (consumer) => html`<${Name} of=${consumer.consumer_tag} />` },
  { title: "Channel", isExtra: true, cell: (consumer) => html`<${ChannelLink} ...${consumer.channel_details} />` },
  { title: "User", isExtra: true, cell: (consumer) => html`<bdi>${consumer.channel_details.user}</bdi>` },
  { title: "State", cell: (consumer) => html`<${Badge} kind=${consumer.active ? "good" : ""}>${consumer.active ? "active" : "waiting"}<//>` },
  { title: "Acknowledges", isExtra: true, cell: (consumer) => (consumer.ack_required ? "yes" : "no") },
  { title: "Exclusive", isExtra: true, cell: (consumer) => (consumer.exclusive ? "yes" : "no") },
  { title: "Prefetch", isNumber: true, cell: (consumer) => (consumer.prefetch_count ? count(consumer.prefetch_count) : "unlimited") },
  { title: "Arguments", isExtra: true, className: "wrap", cell: (consumer) => Object.entries(consumer.arguments).map(([key, given]) => `${key}=${value(given)}`).join(", ") },
];

export function QueueConsumers({ queue }) {
  return html`<${Panel} title="Consumers" isPadded=${false}>
    <${Table} label="Consumers" rows=${queue.consumer_details ?? []} columns=${COLUMNS} rowKey=${(each) => `${each.channel_details.name} ${each.consumer_tag}`}
      empty="Nobody consumes from this queue." />
  <//>`;
}
