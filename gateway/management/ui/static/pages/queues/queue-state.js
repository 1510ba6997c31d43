/** The state of a queue: figures, charts, and where its messages come from and go to. */
import { html } from "../../lib/html.js";
import { bytes, count, duration, rate, rateOf, time } from "../../lib/format.js";
import { ExchangeLink, Facts, Panel, Tiles } from "../../components/basics.js";
import { ChannelLink } from "../../components/client-links.js";
import { LengthsChart, RatesChart, SpanChoice } from "../../components/message-charts.js";
import { Table } from "../../components/tables.js";

export function QueueState({ queue, span, setSpan }) {
  const stats = queue.message_stats ?? {};
  const choice = html`<${SpanChoice} span=${span} onChange=${setSpan} most="10 min" />`;
  return html`
    <${Tiles} figures=${[
      ["Ready", count(queue.messages_ready)],
      ["Unacked", count(queue.messages_unacknowledged)],
      queue.messages_delayed > 0 && ["Delayed", count(queue.messages_delayed)],
      ["In", rate(rateOf(stats, "publish")), "/s"],
      ["Out", rate(rateOf(stats, "deliver_get")), "/s"],
      ["Acked", rate(rateOf(stats, "ack")), "/s"],
      ["Consumers", count(queue.consumers)],
      ["Size", bytes(queue.message_bytes)],
      ["Age of the head", ageOfHead(queue)],
    ]} />
    <div class="columns">
      <${LengthsChart} totals=${queue} actions=${choice} />
      <${RatesChart} stats=${stats} />
    </div>
    <div class="columns">
      <${Panel} title="Where messages come from" isPadded=${false}>
        <${Table} label="Where messages come from" rows=${queue.incoming ?? []} columns=${INCOMING} rowKey=${(each) => each.exchange.name} empty="No exchange has routed a message here." /><//>
      <${Panel} title="Where messages go" isPadded=${false}>
        <${Table} label="Where messages go" rows=${queue.deliveries ?? []} columns=${DELIVERIES} rowKey=${(each) => each.channel_details.name} empty="No channel has received a message." /><//>
    </div>
    <${Details} of=${queue} />`;
}

const INCOMING = [
  { title: "Exchange", isHeader: true, cell: ({ exchange }) => html`<${ExchangeLink} ...${exchange} />` },
  { title: "Messages", isNumber: true, cell: ({ stats }) => count(stats.publish) },
  { title: "Per second", isNumber: true, cell: ({ stats }) => rate(rateOf(stats, "publish")) },
];

const DELIVERIES = [
  { title: "Channel", isHeader: true, cell: ({ channel_details: channel }) => html`<${ChannelLink} ...${channel} />` },
  { title: "Out /s", isNumber: true, cell: ({ stats }) => rate(rateOf(stats, "deliver_get")) },
  { title: "Ack /s", isNumber: true, cell: ({ stats }) => rate(rateOf(stats, "ack")) },
];

/** The age of the oldest ready message, by its timestamp. */
function ageOfHead({ head_message_timestamp: seconds, messages_ready: ready }) {
  if (seconds) return duration(Math.max(0, Date.now() - seconds * 1000));
  return ready ? html`<span title="The oldest message has no timestamp, or is not in memory.">unknown</span>` : "–";
}

function Details({ of }) {
  const isStream = of.type === "stream";
  return html`<${Panel} title="Details"><div class="columns">
    <${Facts} facts=${[
      ["State", of.state],
      of.inert && ["Without effect", html`<span class="bad-text">${of.inert}</span>`],
      ["Idle since", of.idle_since],
      ["Exclusive owner", of.owner_pid_details?.name],
      ["Single active consumer", of.single_active_consumer_tag],
      ["Exclusive consumer", of.exclusive_consumer_tag],
      !isStream && ["Consumer capacity", `${Math.round((of.consumer_capacity ?? 0) * 100)} %`],
      of.head_message_timestamp && ["Timestamp of the head", time(of.head_message_timestamp * 1000)],
      isStream && ["Offsets", `${count(of.first_offset)} to ${of.committed_offset === undefined ? "–" : count(of.committed_offset)}`],
      isStream && ["Segments", count(of.segments)],
    ]} />
    <${Facts} facts=${[
      ["In memory", `${count(of.messages_ram)} (${bytes(of.message_bytes_ram)})`],
      ["Paged out", `${count(of.messages_paged_out)} (${bytes(of.message_bytes_paged_out)})`],
      ["Persistent", `${count(of.messages_persistent)} (${bytes(of.message_bytes_persistent)})`],
      ["Unacknowledged", bytes(of.message_bytes_unacknowledged)],
      ["Memory, estimated", bytes(of.memory)],
      ["Disk reads, writes", `${count(of.disk_reads)}, ${count(of.disk_writes)} messages`],
    ]} />
  </div><//>`;
}
