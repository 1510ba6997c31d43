/** One connection: its traffic, its client, its channels; and closing it. */
import { html, useMemo, useState } from "../../lib/html.js";
import { usePolling } from "../../lib/polling.js";
import { path, remove } from "../../lib/api.js";
import { gauge, rates, sampleQuery } from "../../lib/samples.js";
import { may, session } from "../../lib/session.js";
import { go } from "../../lib/router.js";
import { bytes, count, duration, time, value } from "../../lib/format.js";
import { Badge, Facts, Loaded, Page, Panel, Tiles } from "../../components/basics.js";
import { Chart } from "../../components/chart.js";
import { Dialog } from "../../components/dialogs.js";
import { Field, Form, useForm } from "../../components/forms.js";
import { SpanChoice } from "../../components/message-charts.js";
import { Table } from "../../components/tables.js";
import { notify } from "../../components/toasts.js";
import { CHANNEL_COLUMNS } from "./channel-columns.js";
import { STATE_KINDS } from "./connections.js";

export function Connection({ name }) {
  const [span, setSpan] = useState("10 min");
  const [isClosing, setIsClosing] = useState(false);
  const connection = usePolling(path`/connections/${name}`, sampleQuery(span, "data_rates"));
  const channels = usePolling(path`/connections/${name}/channels`);
  const { data } = connection;
  return html`<${Page} title=${data?.user_provided_name || name} crumbs=${[["Connections", "#/connections"]]}
    badges=${data && html`<${Badge} kind="accent">${data.protocol}<//><${Badge} kind=${STATE_KINDS[data.state] ?? ""}>${data.state}<//>`}
    actions=${data && (may("administrator") || data.user === session.get().user.name) && html`<button class="danger" onClick=${() => setIsClosing(true)}>Close connection</button>`}>
    <${Loaded} from=${connection}>${(shown) => html`<${Traffic} of=${shown} span=${span} setSpan=${setSpan} /><${Client} of=${shown} />`}<//>
    <${Panel} title="Channels" isPadded=${false}><${Loaded} from=${channels}>${(rows) => html`
      <${Table} label="Channels" rows=${rows} columns=${CHANNEL_COLUMNS} rowKey=${(each) => each.name} empty="This connection has no channels." />`}<//><//>
    ${isClosing && html`<${CloseDialog} name=${name} onDone=${() => setIsClosing(false)} />`}
  <//>`;
}

function Traffic({ of, span, setSpan }) {
  const series = useMemo(() => [["recv_oct_details", "From client"], ["send_oct_details", "To client"]].map(([field, label]) => ({
    label, latest: `${bytes(of[field].rate)}/s`, ...rates(of[field]),
  })), [of]);
  const hasSamples = gauge(of.recv_oct_details).times.length > 0;
  return html`
    <${Tiles} figures=${[
      ["From client", bytes(of.recv_oct_details.rate), "/s"], ["To client", bytes(of.send_oct_details.rate), "/s"],
      ["Received", bytes(of.recv_oct)], ["Sent", bytes(of.send_oct)],
      ["Waiting to be sent", bytes(of.send_pend || 0)], ["Channels", count(of.channels)],
    ]} />
    <${Panel} title="Bytes per second" actions=${html`<${SpanChoice} span=${span} onChange=${setSpan} most="10 min" />`}>
      ${hasSamples ? html`<${Chart} label="Bytes per second" times=${series[0].times} series=${series} />` : html`<div class="chart empty">No samples yet.</div>`}
    <//>`;
}

function Client({ of }) {
  const { capabilities = {}, ...properties } = of.client_properties || {};
  return html`<${Panel} title="Client"><div class="columns">
    <${Facts} facts=${[
      ["Connection", html`<span class="mono">${of.name}</span>`],
      ["User", html`<bdi>${of.user}</bdi>`], ["Virtual host", html`<bdi>${of.vhost}</bdi>`],
      ["Connected since", `${time(of.connected_at)} (${duration(Date.now() - of.connected_at)})`],
      ["Login", of.auth_mechanism], ["Heartbeat", of.timeout ? `${of.timeout} s` : "none"], ["Maximum frame", of.frame_max ? bytes(of.frame_max) : ""],
      ["TLS", of.ssl ? `${of.ssl_protocol} ${of.ssl_cipher}` : "no"], ["Certificate", of.peer_cert_subject],
    ]} />
    <${Facts} facts=${[
      ...Object.entries(properties).map(([key, given]) => [key, value(given)]),
      ["capabilities", Object.keys(capabilities).filter((key) => capabilities[key]).map((key) => html`<${Badge} key=${key}>${key}<//> `)],
    ]} />
  </div><//>`;
}

function CloseDialog({ name, onDone }) {
  const { values, field } = useForm({ reason: "Closed by an operator" });
  const close = async () => {
    await remove(path`/connections/${name}`, { headers: { "X-Reason": values.reason } });
    notify("The connection is closed. Most clients connect again by themselves.");
    onDone();
    go("#/connections");
  };
  return html`<${Dialog} onClose=${onDone}><div>
    <h2 id="dialog-title">Close this connection?</h2>
    <p>Its unacknowledged messages return to their queues. The client gets the reason, and may connect again.</p>
    <${Form} action="Close" isDanger onSubmit=${close} extra=${html`<button type="button" onClick=${onDone}>Cancel</button>`}>
      <${Field} label="Reason" pattern="[ -~]*" title="Letters, digits and punctuation of ASCII" ...${field("reason")} />
    <//>
  </div><//>`;
}
