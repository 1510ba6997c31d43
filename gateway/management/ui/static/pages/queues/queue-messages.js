/** The messages of a queue: fetch some from its head, or publish one to it. */
import { html, useState } from "../../lib/html.js";
import { path, post } from "../../lib/api.js";
import { usePermitted } from "../../lib/permitted.js";
import { FoldedPanel, Panel } from "../../components/basics.js";
import { Field, Form, useForm } from "../../components/forms.js";
import { Messages } from "../../components/messages.js";
import { PublishForm } from "../../components/publish-form.js";
import { confirm } from "../../components/dialogs.js";

const MODES = [
  ["ack_requeue_true", "put back"], ["reject_requeue_true", "put back by a reject"],
  ["ack_requeue_false", "removed"], ["reject_requeue_false", "rejected, dead-lettered"],
];

export function QueueMessages({ queue, isPermitted, refresh }) {
  const { vhost, name } = queue;
  const mayPublish = usePermitted("exchange", vhost, "amq.default");
  return html`
    ${queue.type === "stream"
      ? html`<div class="notice">Messages of a stream are read by consumers with an offset; they cannot be fetched here.</div>`
      : !isPermitted("read") ? html`<div class="notice">You lack the permission to read this queue.</div>`
      : html`<${Fetch} queue=${queue} refresh=${refresh} />`}
    ${mayPublish("write") && html`<${FoldedPanel} title="Publish to this queue"><p class="soft">Through the default exchange, with the name of the queue as routing key.</p>
      <${PublishForm} vhost=${vhost} exchange="" routingKey=${name} onDone=${refresh} /><//>`}`;
}

function Fetch({ queue, refresh }) {
  const { values, field } = useForm({ count: "10", ackmode: "ack_requeue_true", encoding: "auto", truncate: "50000" });
  const [messages, setMessages] = useState(null);
  const fetchThem = async () => {
    if (values.ackmode.endsWith("false") && !await confirm({ title: "Remove messages?", text: `Up to ${values.count} messages leave '${queue.name}'. This cannot be undone.`, action: "Remove", isDanger: true })) return;
    const body = { ...values, count: Number(values.count), truncate: Number(values.truncate) };
    setMessages(await post(path`/queues/${queue.vhost}/${queue.name}/get`, body));
    refresh();
  };
  return html`<${Panel} title="Get messages" isPadded=${false}>
    <div class="body">
      <${Form} action="Get messages" onSubmit=${fetchThem}>
        <p class="soft">Messages come from the head. Messages that are put back count as redelivered.</p>
        <div class="fields">
          <${Field} label="Number" kind="number" min="1" max="1000" required ...${field("count")} />
          <${Field} label="Afterwards they are" kind="select" options=${MODES} ...${field("ackmode")} />
          <${Field} label="Bodies" kind="select" options=${[["auto", "text if possible"], ["base64", "base64"]]} ...${field("encoding")} />
          <${Field} label="Cut bodies at (bytes)" kind="number" min="1" required ...${field("truncate")} />
        </div>
      <//>
    </div>
    ${messages && (messages.length ? html`<${Messages} messages=${messages} vhost=${queue.vhost} />` : html`<div class="empty">The queue is empty.</div>`)}
  <//>`;
}
