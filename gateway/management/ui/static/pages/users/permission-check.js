/** "What may this user do here?": asks the broker about one queue or exchange. */
import { html, useState } from "../../lib/html.js";
import { get, path } from "../../lib/api.js";
import { Badge, Panel } from "../../components/basics.js";
import { Field, Form, useForm } from "../../components/forms.js";
import { VhostField } from "../../components/vhost-field.js";

/** What each operation permits, in the terms of clients. */
const MEANINGS = {
  queue: {
    configure: "declare and delete it; subscribe by MQTT, which declares it",
    write: "bind it to an exchange",
    read: "consume, get and purge its messages",
  },
  exchange: { configure: "declare and delete it", write: "publish to it; bind it to another exchange", read: "bind queues and exchanges to it" },
  topic: { write: "publish with this routing key", read: "bind with this routing key" },
};

export function PermissionCheck({ user }) {
  const { values, field } = useForm({ vhost: "", kind: "queue", name: "", routing_key: "" });
  const [answer, setAnswer] = useState(null);
  const ask = async () => {
    const { vhost, kind, name, routing_key } = values;
    setAnswer(await get(path`/permissions/${vhost}/${user}/check`, { kind, name, routing_key: kind === "exchange" ? routing_key : "" }));
  };
  return html`<${Panel} title="What may this user do here?">
    <${Form} action="Check" onSubmit=${ask}><div class="fields">
      <${VhostField} ...${field("vhost")} />
      <${Field} label="Object" kind="select" options=${["queue", "exchange"]} ...${field("kind")} />
      <${Field} label="Name" hint=${values.kind === "exchange" ? "amq.default is the default exchange" : "It need not exist"} ...${field("name")} />
      ${values.kind === "exchange" && html`<${Field} label="Routing key" hint="For topic permissions" ...${field("routing_key")} />`}
    </div><//>
    ${answer && html`<${Answer} of=${answer} />`}
  <//>`;
}

function Answer({ of }) {
  if (!of.enters) return html`<div class="notice warn" role="status">The user may not enter '${of.vhost}': ${of.reason}</div>`;
  const rows = [
    ...Object.entries(of.operations).map(([operation, isAllowed]) => [operation, isAllowed, MEANINGS[of.kind][operation]]),
    ...Object.entries(of.topic).map(([operation, isAllowed]) => [`topic ${operation}`, isAllowed, MEANINGS.topic[operation]]),
  ];
  return html`<ul class="verdicts" role="status">${rows.map(([operation, isAllowed, meaning]) => html`<li key=${operation}>
    <${Badge} kind=${isAllowed ? "good" : "bad"}>${isAllowed ? "allowed" : "refused"}<//> <b>${operation}</b> <span class="soft">${meaning}</span></li>`)}</ul>`;
}
