/** One queue: its state, messages, consumers, bindings and settings. */
import { html, useState } from "../../lib/html.js";
import { usePolling } from "../../lib/polling.js";
import { get, path, post, put, remove, withQuery } from "../../lib/api.js";
import { usePermitted } from "../../lib/permitted.js";
import { sampleQuery } from "../../lib/samples.js";
import { go } from "../../lib/router.js";
import { count, plural } from "../../lib/format.js";
import { Badge, Features, Loaded, Page } from "../../components/basics.js";
import { useTabs } from "../../components/tabs.js";
import { confirm } from "../../components/dialogs.js";
import { act } from "../../components/toasts.js";
import { QueueState } from "./queue-state.js";
import { QueueBindings } from "./queue-bindings.js";
import { QueueConsumers } from "./queue-consumers.js";
import { QueueMessages } from "./queue-messages.js";
import { QueueSettings } from "./queue-settings.js";
import { QueueWorkbench } from "./queue-workbench.js";

const TABS = { State: QueueState, Messages: QueueMessages, Workbench: QueueWorkbench, Consumers: QueueConsumers, Bindings: QueueBindings, Settings: QueueSettings };

export function Queue({ vhost, name }) {
  const [span, setSpan] = useState("10 min");
  const queue = usePolling(path`/queues/${vhost}/${name}`, sampleQuery(span, "lengths", "msg_rates"));
  const isPermitted = usePermitted("queue", vhost, name);
  const [tab, tabs] = useTabs(Object.keys(TABS), "Queue");
  const Content = TABS[tab];
  const isStream = queue.data?.type === "stream";
  return html`<${Page} title=${name} crumbs=${[["Queues and streams", "#/queues"]]}
    badges=${queue.data && html`<${Badge} kind="accent">${queue.data.type}<//><${Features} of=${queue.data} /><span class="soft">in <bdi>${vhost}</bdi></span>`}
    actions=${queue.data && html`
      ${!isStream && isPermitted("read") && html`<button onClick=${() => purge(queue.data, queue.refresh)}>Purge</button>`}
      ${isPermitted("configure") && html`<button class="danger" onClick=${() => deleteQueue(queue.data)}>Delete</button>`}`}>
    ${tabs}
    <${Loaded} from=${queue}>${(data) => html`<${Content} queue=${data} isPermitted=${isPermitted} span=${span} setSpan=${setSpan} refresh=${queue.refresh} />`}<//>
  <//>`;
}

async function purge({ vhost, name, messages_ready: ready }, refresh) {
  const text = `${plural(ready, "ready message")} will be deleted. This cannot be undone. Unacknowledged messages stay.`;
  if (!await confirm({ title: `Purge '${name}'?`, text, action: "Purge", isDanger: true })) return;
  await act(() => remove(path`/queues/${vhost}/${name}/contents`), `The ready messages of '${name}' are deleted.`);
  refresh();
}

/** Delete a queue. An empty one can be declared again: its bindings too. */
async function deleteQueue(queue) {
  const { vhost, name, messages } = queue;
  const text = messages > 0
    ? `It has ${count(messages)} messages, which are deleted too. This cannot be undone.`
    : "It has no messages. You can undo this: queue and bindings are then declared again.";
  if (!await confirm({ title: `Delete '${name}'?`, text, action: "Delete", isDanger: true, word: messages > 1000 ? name : undefined })) return;
  const undo = messages > 0 || queue.exclusive ? undefined : await recreation(queue);
  const target = path`/queues/${vhost}/${name}`;
  const isDeleted = await act(() => remove(undo ? withQuery(target, { "if-empty": "true" }) : target), `Queue '${name}' is deleted.`, { undo });
  if (isDeleted) go("#/queues");
}

async function recreation(queue) {
  const { vhost, name, durable, auto_delete, arguments: table } = queue;
  const bindings = (await get(path`/queues/${vhost}/${name}/bindings`)).filter((binding) => binding.source);
  return async () => {
    await put(path`/queues/${vhost}/${name}`, { durable, auto_delete, arguments: table });
    for (const binding of bindings) {
      await post(path`/bindings/${vhost}/e/${binding.source}/q/${name}`, { routing_key: binding.routing_key, arguments: binding.arguments });
    }
  };
}
