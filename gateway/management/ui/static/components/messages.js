/** Messages as they were fetched: where from, properties, headers and body, all as text. */
import { html, useState } from "../lib/html.js";
import { to, toQuery } from "../lib/router.js";
import { may } from "../lib/session.js";
import { bytes, count, value } from "../lib/format.js";
import { Badge, Facts } from "./basics.js";

/** A list of messages of a virtual host, in the form of the API. */
export function Messages({ messages, vhost }) {
  return html`<div>${messages.map((message, index) => html`<${Message} key=${index} message=${message} vhost=${vhost} />`)}</div>`;
}

/** One message. `actions` stand beside its first line; of a message in a `vhost` also the way to its trace. */
export function Message({ message, vhost, actions }) {
  const { exchange, routing_key: key, redelivered, payload, payload_bytes: size, payload_encoding: encoding, properties = {}, message_count: left } = message;
  const { headers = {}, ...others } = Array.isArray(properties) ? {} : properties;
  return html`<article class="message" aria-label=${`Message with routing key ${key}`}>
    <div class="row">
      <span><span class="soft">Exchange</span> <bdi>${exchange || "(AMQP default)"}</bdi></span>
      <span><span class="soft">Routing key</span> <bdi class="mono">${key}</bdi></span>
      <span class="soft">${bytes(size)}</span>
      ${redelivered && html`<${Badge} kind="warn">redelivered<//>`}
      ${encoding === "base64" && html`<${Badge}>base64<//>`}
      ${left !== undefined && html`<span class="soft">${count(left)} behind it</span>`}
      ${vhost !== undefined && may("monitoring") && html`<a href=${traceOf(message, others, vhost)}>Trace</a>`}
      ${actions}
    </div>
    ${Object.keys(others).length > 0 && html`<${Facts} facts=${Object.entries(others).map(([name, given]) => [name, value(given)])} />`}
    ${headers && Object.keys(headers).length > 0 && html`<div><h3>Headers</h3><${Facts} facts=${Object.entries(headers).map(([name, given]) => [name, html`<span class="mono">${value(given)}</span>`])} /></div>`}
    <${Body} text=${payload} isText=${encoding !== "base64"} />
  </article>`;
}

/** Return the address of the traces of a message: by its id, otherwise of all with its exchange and key. */
function traceOf({ exchange, routing_key }, { message_id }, vhost) {
  return toQuery(to("traces"), message_id ? { vhost, message_id } : { vhost, exchange, routing_key });
}

/** The text of a body; JSON can be shown indented. */
function Body({ text, isText }) {
  const [isIndented, setIsIndented] = useState(false);
  const json = isText && /^\s*[[{]/.test(text) ? indented(text) : null;
  return html`<div>
    ${json && html`<label class="check small-text"><input type="checkbox" checked=${isIndented} onChange=${() => setIsIndented(!isIndented)} />Indent JSON</label>`}
    <pre tabindex="0" aria-label="Body">${isIndented && json ? json : text}</pre>
  </div>`;
}

function indented(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return null;
  }
}
