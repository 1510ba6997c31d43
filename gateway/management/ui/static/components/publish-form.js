/** The form that publishes a message to an exchange. */
import { html } from "../lib/html.js";
import { path, post } from "../lib/api.js";
import { Field, Form, fromPairs, Pairs, useForm } from "./forms.js";
import { notify } from "./toasts.js";

const PROPERTIES = ["content_type", "content_encoding", "correlation_id", "reply_to", "expiration", "message_id", "type", "user_id", "app_id"];
const MODES = [["2", "persistent"], ["1", "transient"]];

/** @param {{vhost: string, exchange: string, routingKey?: string, onDone?: () => void}} properties */
export function PublishForm({ vhost, exchange, routingKey = "", onDone = () => {} }) {
  const { values, change, field } = useForm({ routing_key: routingKey, delivery_mode: "2", priority: "", payload: "", payload_encoding: "string", headers: [], properties: [] });
  const publish = async () => {
    const answer = await post(path`/exchanges/${vhost}/${exchange || "amq.default"}/publish`, {
      routing_key: values.routing_key, payload: values.payload, payload_encoding: values.payload_encoding, properties: propertiesOf(values),
    });
    if (answer.routed) notify("The message is published and routed.");
    else notify("The message is published, but no queue is bound for it: it is dropped.", { isError: true });
    onDone();
  };
  return html`<${Form} action="Publish message" label="Publish a message" onSubmit=${publish}>
    <div class="fields">
      <${Field} label="Routing key" ...${field("routing_key")} />
      <${Field} label="Delivery mode" kind="select" options=${MODES} ...${field("delivery_mode")} />
      <${Field} label="Priority" kind="number" min="0" max="255" ...${field("priority")} />
      <${Field} label="Body is" kind="select" options=${[["string", "text"], ["base64", "base64"]]} ...${field("payload_encoding")} />
      <${Field} label="Body" kind="textarea" isWide rows="5" ...${field("payload")} />
      <${Pairs} label="Headers" pairs=${values.headers} onChange=${(headers) => change({ headers })} />
      <${Pairs} label="Properties" keys=${PROPERTIES.map((name) => [name, "string"])} pairs=${values.properties} onChange=${(properties) => change({ properties })} />
    </div>
  <//>`;
}

function propertiesOf({ delivery_mode: mode, priority, headers, properties }) {
  return { delivery_mode: Number(mode), ...(priority === "" ? {} : { priority: Number(priority) }), ...fromPairs(properties), headers: fromPairs(headers) };
}
