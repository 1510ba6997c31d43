/** Watches an exchange through a queue of its own, which the broker deletes when the page is left; and publishes to it. */
import { html, useEffect, useState } from "../../lib/html.js";
import { path, post, put, remove } from "../../lib/api.js";
import { Panel } from "../../components/basics.js";
import { Field, Form, useForm } from "../../components/forms.js";
import { PublishForm } from "../../components/publish-form.js";
import { notify } from "../../components/toasts.js";
import { Log, useLog } from "./log.js";

const POLL_MS = 1000;
const BATCH = 50;

/** The queue: it keeps the latest messages, and ends soon after the last request. */
const ARGUMENTS = { "x-expires": 60_000, "x-max-length": 1000 };

export function AmqpWatch({ vhost }) {
  const { values, field } = useForm({ exchange: "amq.topic", routing_key: "#" });
  const [queue, setQueue] = useState(null);
  const log = useLog();
  useEffect(() => queue && watch(vhost, queue, log.add, () => setQueue(null)), [queue]);
  const start = async () => {
    const name = `web-ui.watch.${crypto.randomUUID?.() ?? Date.now()}`;
    await put(path`/queues/${vhost}/${name}`, { durable: false, auto_delete: false, arguments: ARGUMENTS });
    try {
      await post(path`/bindings/${vhost}/e/${values.exchange}/q/${name}`, { routing_key: values.routing_key, arguments: {} });
    } catch (error) {
      await remove(path`/queues/${vhost}/${name}`);
      throw error;
    }
    setQueue(name);
  };
  return html`<div class="columns">
    <div class="stack">
      <${Panel} title="Watch an exchange"><${Form} action=${queue ? "Watch another" : "Watch"} label="Watch an exchange" onSubmit=${start}
        extra=${queue && html`<button type="button" onClick=${() => setQueue(null)}>Stop</button>`}>
        <p class="soft">Copies of its messages go to a queue of this page. Other consumers still get theirs.</p>
        <div class="fields"><${Field} label="Exchange" required ...${field("exchange")} /><${Field} label="Binding key" ...${field("routing_key")} /></div>
      <//><//>
      <${Panel} title="Publish"><${PublishTo} vhost=${vhost} exchange=${values.exchange} /><//>
    </div>
    <${Log} log=${log} isWatching=${queue !== null} />
  </div>`;
}

function PublishTo({ vhost, exchange }) {
  return html`<p class="soft">To exchange <b><bdi>${exchange}</bdi></b></p><${PublishForm} vhost=${vhost} exchange=${exchange} />`;
}

/** Fetch what has arrived once a second; return a function that ends it and deletes the queue. */
function watch(vhost, queue, onMessages, onLost) {
  const target = path`/queues/${vhost}/${queue}`;
  let isOver = false;
  let timer = 0;
  async function fetchThem() {
    try {
      const messages = await post(`${target}/get`, { count: BATCH, ackmode: "ack_requeue_false", encoding: "auto", truncate: 50_000 });
      if (!isOver) onMessages(messages);
    } catch (error) {
      if (isOver) return;
      notify(`Watching has ended: ${error.message}`, { isError: true });
      onLost();
      return;
    }
    if (!isOver) timer = setTimeout(fetchThem, POLL_MS);
  }
  fetchThem();
  return () => {
    isOver = true;
    clearTimeout(timer);
    remove(target).catch(() => {}); // the queue also ends by itself
  };
}
