/** The events of one message in order, each with the time since the publish. */
import { html } from "../../lib/html.js";
import { Badge, ExchangeLink, QueueLink } from "../../components/basics.js";
import { ConnectionLink } from "../../components/client-links.js";

/** How an event is shown, and its name. */
const KINDS = {
  publish: ["accent", "published"], route: ["", "routed"], enqueue: ["", "enqueued"], deliver: ["accent", "delivered"], settle: ["good", "settled"], requeue: ["warn", "requeued"],
  expire: ["bad", "expired"], drop: ["bad", "dropped"], "dead-letter": ["warn", "dead-lettered"],
};

/** The names of protocols as the list of connections has them, by those of traces. */
const PROTOCOLS = {
  amqp091: "AMQP 0-9-1", mqtt310: "MQTT 3-1", mqtt311: "MQTT 3-1-1", mqtt50: "MQTT 5-0",
  stomp10: "STOMP 1.0", stomp11: "STOMP 1.1", stomp12: "STOMP 1.2", http: "HTTP",
};

/** Return the name of a protocol in the terms of its users. */
export const protocolName = (protocol) => PROTOCOLS[protocol] ?? protocol;

export function Timeline({ trace, vhost }) {
  const began = trace.events[0]?.at_ms ?? 0;
  return html`<ol class="timeline">${trace.events.map((event, index) => html`<li key=${index}>
    <time class="number soft" datetime=${event.at}>+${event.at_ms - began} ms</time>
    <${Badge} kind=${KINDS[event.event]?.[0] ?? ""}>${KINDS[event.event]?.[1] ?? event.event}<//>
    <span class="event"><${Details} event=${event} vhost=${vhost} /></span>
  </li>`)}</ol>`;
}

function Details({ event, vhost }) {
  return html`
    ${event.exchange !== undefined && html`<span>to <${ExchangeLink} vhost=${vhost} name=${event.exchange} /> with <code>${event.routing_key || "(empty key)"}</code></span> `}
    ${event.queue && html`<span>${event.event === "deliver" ? "from" : "queue"} <${QueueLink} vhost=${vhost} name=${event.queue} /></span> `}
    ${event.position !== undefined && html`<span class="soft">position ${event.position}</span> `}
    ${event.protocol && html`<span><b>${protocolName(event.protocol)}</b> <span class="soft">user</span> <bdi>${event.user}</bdi> ${event.connection && html`<${ConnectionLink} name=${event.connection} />`}</span> `}
    ${event.redelivered && html`<${Badge} kind="warn">redelivered<//> `}
    ${event.applied && html`<span class="soft">under ${event.applied}</span> `}
    ${event.outcome && html`<span>${event.outcome}</span> `}
    ${event.reason && html`<b>${event.reason}</b>`}`;
}
