/** The overview: alarms, figures of the broker, and its resources. */
import { html, useState } from "../../lib/html.js";
import { usePolling } from "../../lib/polling.js";
import { may } from "../../lib/session.js";
import { sampleQuery } from "../../lib/samples.js";
import { count, rate, rateOf } from "../../lib/format.js";
import { Loaded, Page, Panel, Tiles } from "../../components/basics.js";
import { LengthsChart, RatesChart, SpanChoice } from "../../components/message-charts.js";
import { PluginPanels } from "../../components/panels.js";
import { Table } from "../../components/tables.js";
import { Alarms } from "./alarms.js";
import { Node } from "./node.js";
import { Protocols } from "./protocols.js";

export function Overview() {
  const [span, setSpan] = useState("10 min");
  const overview = usePolling("/overview", sampleQuery(span, "lengths", "msg_rates"));
  const choice = html`<${SpanChoice} span=${span} onChange=${setSpan} />`;
  return html`<${Page} title="Overview">
    <${Alarms} />
    <${Loaded} from=${overview}>${(data) => html`
      <${Figures} of=${data} />
      <div class="columns">
        <${LengthsChart} totals=${data.queue_totals} actions=${choice} />
        <${RatesChart} stats=${data.message_stats} />
      </div>
      <${Protocols} />
      ${may("monitoring") && html`<${Node} name=${data.node} />`}
      ${data.listeners && html`<${Listeners} listeners=${data.listeners} />`}
      <${PluginPanels} page="overview" />
      <${Versions} of=${data} />
    `}<//>
  <//>`;
}

function Figures({ of: { queue_totals: totals, object_totals: objects, message_stats: stats } }) {
  return html`<${Tiles} figures=${[
    ["Ready", count(totals.messages_ready)],
    ["Unacked", count(totals.messages_unacknowledged)],
    ["Published", rate(rateOf(stats, "publish")), "/s"],
    ["Delivered", rate(rateOf(stats, "deliver_get")), "/s"],
    ["Acked", rate(rateOf(stats, "ack")), "/s"],
    ["Connections", count(objects.connections), "", "#/connections"],
    ["Channels", count(objects.channels), "", "#/channels"],
    ["Queues", count(objects.queues), "", "#/queues"],
    ["Exchanges", count(objects.exchanges), "", "#/exchanges"],
    ["Consumers", count(objects.consumers)],
  ]} />`;
}

const LISTENER_COLUMNS = [
  { title: "Protocol", isHeader: true, cell: (each) => each.protocol },
  { title: "Address", cell: (each) => html`<span class="mono">${each.ip_address === "::" ? "all addresses" : each.ip_address}</span>` },
  { title: "Port", isNumber: true, cell: (each) => String(each.port) },
];

function Listeners({ listeners }) {
  return html`<${Panel} title="Listeners" isPadded=${false}><${Table} label="Listeners" rows=${listeners} columns=${LISTENER_COLUMNS} rowKey=${(each) => `${each.protocol} ${each.port}`} /><//>`;
}

function Versions({ of }) {
  return html`<p class="soft small-text">${of.product_name} ${of.product_version}, compatible with RabbitMQ ${of.rabbitmq_version}; node <bdi>${of.node}</bdi></p>`;
}
