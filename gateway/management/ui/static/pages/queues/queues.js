/** The list of queues and streams, and the form that declares one. */
import { html, useState } from "../../lib/html.js";
import { useStore } from "../../lib/store.js";
import { listingPath, selectedVhost } from "../../lib/vhosts.js";
import { bytes, count, rate, rateOf } from "../../lib/format.js";
import { Badge, Features, Page, Panel, QueueLink } from "../../components/basics.js";
import { PluginPanels } from "../../components/panels.js";
import { PagedTable } from "../../components/tables.js";
import { NewQueue } from "./new-queue.js";

const COLUMNS = [
  { title: "Name", sort: "name", isHeader: true, cell: (queue) => html`<${QueueLink} ...${queue} />` },
  { title: "Type", sort: "type", isExtra: true, cell: (queue) => queue.type },
  { title: "Features", isExtra: true, cell: (queue) => html`<${Features} of=${queue} />` },
  { title: "Policy", sort: "policy", isExtra: true, cell: (queue) => queue.policy && html`<${Badge} kind="accent">${queue.policy}<//>` },
  { title: "Ready", sort: "messages_ready", isNumber: true, cell: (queue) => count(queue.messages_ready) },
  { title: "Unacked", sort: "messages_unacknowledged", isNumber: true, isExtra: true, cell: (queue) => count(queue.messages_unacknowledged) },
  { title: "Size", sort: "message_bytes", isNumber: true, isExtra: true, isMinor: true, cell: (queue) => bytes(queue.message_bytes) },
  { title: "Consumers", sort: "consumers", isNumber: true, isExtra: true, cell: (queue) => count(queue.consumers) },
  { title: "In /s", sort: "message_stats.publish_details.rate", isNumber: true, cell: (queue) => rate(rateOf(queue.message_stats, "publish")) },
  { title: "Out /s", sort: "message_stats.deliver_get_details.rate", isNumber: true, cell: (queue) => rate(rateOf(queue.message_stats, "deliver_get")) },
  { title: "Ack /s", sort: "message_stats.ack_details.rate", isNumber: true, isExtra: true, cell: (queue) => rate(rateOf(queue.message_stats, "ack")) },
];

const VHOST = { title: "Virtual host", sort: "vhost", isExtra: true, cell: (queue) => html`<bdi>${queue.vhost}</bdi>` };

const FIELDS = [
  "name", "vhost", "type", "durable", "auto_delete", "exclusive", "arguments", "inert", "policy", "messages_ready", "messages_unacknowledged",
  "message_bytes", "consumers", "message_stats.publish_details", "message_stats.deliver_get_details", "message_stats.ack_details",
].join();

export function Queues() {
  const vhost = useStore(selectedVhost);
  const [reload, setReload] = useState(0);
  const columns = vhost === "" ? [COLUMNS[0], VHOST, ...COLUMNS.slice(1)] : COLUMNS;
  return html`<${Page} title="Queues and streams">
    <${Panel} isPadded=${false}>
      <${PagedTable} path=${listingPath("queues", vhost)} noun="queues" columns=${columns} query=${{ columns: FIELDS }} reload=${reload}
        rowKey=${(queue) => `${queue.vhost}\n${queue.name}`} />
    <//>
    <${PluginPanels} page="queues" />
    <${NewQueue} vhost=${vhost} onDone=${() => setReload(reload + 1)} />
  <//>`;
}
