/** Explain: where a message would go and why, without publishing it. */
import { html, useState } from "../../lib/html.js";
import { path, post } from "../../lib/api.js";
import { may } from "../../lib/session.js";
import { count, plural } from "../../lib/format.js";
import { Badge, ExchangeLink, Page, Panel, QueueLink } from "../../components/basics.js";
import { Field, Form, fromPairs, Pairs, useForm } from "../../components/forms.js";
import { OneVhost } from "../../components/one-vhost.js";
import { Table } from "../../components/tables.js";

const ADDRESSES = [["exchange", "AMQP: exchange, key"], ["mqtt_topic", "MQTT: topic"], ["stomp_destination", "STOMP: destination"]];

export function Explain() {
  return html`<${Page} title="Explain a publish">
    <p class="soft">Where would a message go, and why? Nothing is published.</p>
    <${OneVhost}>${(vhost) => html`<${Question} key=${vhost} vhost=${vhost} />`}<//>
  <//>`;
}

function Question({ vhost }) {
  const { values, change, field } = useForm({ kind: "exchange", exchange: "", routing_key: "", mqtt_topic: "", client_id: "", stomp_destination: "", user: "", headers: [] });
  const [answer, setAnswer] = useState(null);
  const ask = async () => {
    const address = { exchange: { exchange: values.exchange, routing_key: values.routing_key }, mqtt_topic: { mqtt_topic: values.mqtt_topic, client_id: values.client_id }, stomp_destination: { stomp_destination: values.stomp_destination } }[values.kind];
    const headers = values.headers.length ? { headers: fromPairs(values.headers) } : {};
    setAnswer(await post(path`/explain/${vhost}`, { ...address, ...headers, ...(values.user ? { user: values.user } : {}) }));
  };
  return html`
    <${Panel} title="The message"><${Form} action="Explain" onSubmit=${ask}><div class="fields">
      <${Field} label="Published by" kind="select" options=${ADDRESSES} ...${field("kind")} />
      ${values.kind === "exchange" && html`<${Field} label="Exchange" hint="Empty is the default exchange" ...${field("exchange")} /><${Field} label="Routing key" ...${field("routing_key")} />`}
      ${values.kind === "mqtt_topic" && html`<${Field} label="Topic" required ...${field("mqtt_topic")} /><${Field} label="Client identifier" hint="For topic permissions" ...${field("client_id")} />`}
      ${values.kind === "stomp_destination" && html`<${Field} label="Destination" required placeholder="/topic/sensors" ...${field("stomp_destination")} />`}
      ${may("administrator") && html`<${Field} label="User" hint="Empty is you" ...${field("user")} />`}
      <${Pairs} label="Headers" pairs=${values.headers} onChange=${(headers) => change({ headers })} />
    </div><//><//>
    ${answer && html`<${Answer} of=${answer} />`}`;
}

const OUTCOMES = { routed: "good", delayed: "accent", duplicate: "warn", unroutable: "bad" };

function Answer({ of }) {
  const refused = of.checks.filter((check) => !check.allowed);
  return html`
    <div class=${`notice ${refused.length ? "bad" : of.outcome === "unroutable" ? "warn" : "good"}`} role="status">
      <h2>${refused.length ? `User ${of.user} may not publish this` : `Outcome: ${of.outcome}`}</h2>
      ${refused.map((check) => html`<p key=${check.check}>${check.reason}</p>`)}
      ${!refused.length && html`<p>${of.queue_count === 0 ? "No queue would get the message." : `${plural(of.queue_count, "queue")} would get the message.`}${of.declares_queue ? ` The SEND declares the queue '${of.declares_queue}'.` : ""}</p>`}
    </div>
    <${Panel} title="Checks"><div class="row">${of.checks.map((check) => html`<${Badge} key=${check.check} kind=${check.allowed ? "good" : "bad"} title=${check.reason}>${check.check.replaceAll("_", " ")}<//>`)}
      ${of.interceptors.length > 0 && html`<span class="soft">Interceptors see it first: ${of.interceptors.join(", ")}</span>`}
      <span class="soft">Routing keys: ${of.routing_keys.map((key) => html`<code key=${key}>${key || "(empty)"}</code> `)}</span>
      <${Badge} kind=${OUTCOMES[of.outcome] ?? ""}>${of.outcome}<//></div><//>
    ${of.exchanges.map((exchange) => html`<${Visit} key=${exchange.name} vhost=${of.vhost} exchange=${exchange} />`)}
    <${Panel} title="Queues" isPadded=${false}><${Table} label="Queues" rows=${of.queues} columns=${queueColumns(of.vhost)} rowKey=${(each) => each.name} empty="No queue would get the message." /><//>`;
}

function Visit({ vhost, exchange }) {
  const notes = [
    exchange.plugin && `by plugin ${exchange.plugin}`, exchange.policy && `policy ${exchange.policy}`,
    exchange.alternate_exchange && `alternate exchange ${exchange.alternate_exchange}${exchange.used_alternate ? " (used)" : ""}`,
    exchange.intercepted && `here the message is ${exchange.intercepted}`,
  ].filter(Boolean);
  return html`<${Panel} title=${`Exchange ${exchange.name || "(AMQP default)"}`} isPadded=${false}>
    <div class="body"><p><${ExchangeLink} vhost=${vhost} name=${exchange.name} /> <span class="soft">${exchange.type}${notes.length ? `, ${notes.join(", ")}` : ""}: ${count(exchange.bindings_matched)} of ${plural(exchange.bindings_tried, "binding")} match</span></p>
      ${(exchange.inert || exchange.fault) && html`<div class="notice bad">${exchange.inert || exchange.fault}</div>`}</div>
    <${Table} label=${`Bindings of ${exchange.name}`} rows=${exchange.bindings} columns=${bindingColumns(vhost)} rowKey=${(each) => `${each.destination}\n${each.properties_key}`} empty="It has no bindings." limit=${30} />
  <//>`;
}

const bindingColumns = (vhost) => [
  { title: "Match", cell: (each) => html`<${Badge} kind=${each.matched ? "good" : ""}>${each.matched ? "matches" : "no"}<//>` },
  { title: "Routing key", isHeader: true, cell: (each) => html`<code>${each.routing_key || "(empty)"}</code>` },
  { title: "To", cell: (each) => (each.destination_type === "queue" ? html`<${QueueLink} vhost=${vhost} name=${each.destination} />` : html`<${ExchangeLink} vhost=${vhost} name=${each.destination} /> <span class="soft">exchange</span>`) },
];

const queueColumns = (vhost) => [
  { title: "Queue", isHeader: true, cell: (each) => html`<${QueueLink} vhost=${vhost} name=${each.name} />` },
  { title: "Takes it", cell: (each) => html`<${Badge} kind=${each.refusal ? "bad" : "good"}>${each.refusal ? `refuses: ${each.refusal}` : "yes"}<//>` },
  { title: "Type", isExtra: true, cell: (each) => each.type },
  { title: "Messages", isNumber: true, cell: (each) => count(each.messages) },
  { title: "Consumers", isNumber: true, isExtra: true, cell: (each) => count(each.consumers) },
  { title: "Policy", isExtra: true, cell: (each) => each.policy ?? "" },
];
