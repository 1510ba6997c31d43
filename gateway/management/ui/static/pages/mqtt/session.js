/** One MQTT session: its subscriptions and queues; and ending it. */
import { html } from "../../lib/html.js";
import { usePolling } from "../../lib/polling.js";
import { path, remove } from "../../lib/api.js";
import { go } from "../../lib/router.js";
import { count } from "../../lib/format.js";
import { Badge, Facts, Loaded, Page, Panel, QueueLink, Tiles } from "../../components/basics.js";
import { confirm } from "../../components/dialogs.js";
import { Table } from "../../components/tables.js";
import { act } from "../../components/toasts.js";
import { expiry } from "./sessions.js";

export function Session({ vhost, client }) {
  const target = path`/mqtt/sessions/${vhost}/${client}`;
  const session = usePolling(target);
  const end = async () => {
    const text = "Its subscriptions and waiting messages are deleted; a connected client is disconnected. This cannot be undone.";
    if (!await confirm({ title: `End the session of '${client}'?`, text, action: "End session", isDanger: true })) return;
    if (await act(() => remove(target), `The session of '${client}' is ended.`)) go("#/mqtt/sessions");
  };
  return html`<${Page} title=${client} crumbs=${[["MQTT sessions", "#/mqtt/sessions"]]}
    badges=${session.data && html`<${Badge} kind=${session.data.connected ? "good" : ""}>${session.data.connected ? "connected" : "away"}<//><span class="soft">in <bdi>${vhost}</bdi></span>`}
    actions=${session.data && (session.data.may_end
      ? html`<button class="danger" onClick=${end}>End session</button>`
      : html`<span class="soft">${session.data.connected ? "Only an administrator with the permission to configure its queues may end it." : "You lack the permission to configure its queues, so you may not end it."}</span>`)}>
    <${Loaded} from=${session}>${(data) => html`
      <${Tiles} figures=${[["Subscriptions", count(data.subscriptions)], ["Ready", count(data.messages_ready)], ["Unacknowledged", count(data.messages_unacknowledged)]]} />
      <${Panel} title="Subscriptions" isPadded=${false}><${Table} label="Subscriptions" rows=${data.subscription_details} columns=${columnsIn(vhost)} rowKey=${(each) => each.filter} empty="There are no subscriptions." /><//>
      <${Panel} title="Details"><${Facts} facts=${[
        ["User", html`<bdi>${data.user}</bdi>`], ["Ends", expiry(data)],
        ["Queues", data.queues.map((name) => html`<div key=${name}><${QueueLink} vhost=${vhost} name=${name} /></div>`)],
      ]} /><//>`}<//>
  <//>`;
}

const columnsIn = (vhost) => [
  { title: "Filter", isHeader: true, cell: (each) => html`<span class="mono"><bdi>${each.filter}</bdi></span>` },
  { title: "QoS", isNumber: true, cell: (each) => String(each.qos) },
  { title: "Options", isExtra: true, cell: (each) => html`<span class="badges">${each.no_local && html`<${Badge}>no local<//>`}${each.retain_as_published && html`<${Badge}>retain as published<//>`}</span>` },
  { title: "Identifier", isNumber: true, isExtra: true, cell: (each) => (each.subscription_identifier === null ? "–" : count(each.subscription_identifier)) },
  { title: "Queue", cell: (each) => html`<${QueueLink} vhost=${vhost} name=${each.queue} />` },
];
