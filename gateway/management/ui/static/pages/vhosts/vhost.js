/** One virtual host: its traffic, its permissions, its limits, and its deletion. */
import { html, useState } from "../../lib/html.js";
import { usePolling } from "../../lib/polling.js";
import { path, post, put, remove } from "../../lib/api.js";
import { sampleQuery } from "../../lib/samples.js";
import { go, to } from "../../lib/router.js";
import { count, rate, rateOf, value } from "../../lib/format.js";
import { Badge, Facts, Loaded, Page, Panel, Tiles } from "../../components/basics.js";
import { confirm } from "../../components/dialogs.js";
import { Field, Form, useForm } from "../../components/forms.js";
import { Limits, VHOST_LIMITS } from "../../components/limits.js";
import { LengthsChart, RatesChart, SpanChoice } from "../../components/message-charts.js";
import { Table } from "../../components/tables.js";
import { useTabs } from "../../components/tabs.js";
import { act, notify } from "../../components/toasts.js";
import { QUEUE_TYPES } from "./vhosts.js";

export function Vhost({ name }) {
  const [span, setSpan] = useState("10 min");
  const vhost = usePolling(path`/vhosts/${name}`, sampleQuery(span, "lengths", "msg_rates"));
  const [tab, tabs] = useTabs(["State", "Permissions", "Settings", "Limits"], "Virtual host");
  return html`<${Page} title=${name} crumbs=${[["Virtual hosts", "#/vhosts"]]}
    badges=${vhost.data?.protected_from_deletion && html`<${Badge}>protected<//>`}
    actions=${vhost.data && html`
      <button onClick=${() => protect(vhost)}>${vhost.data.protected_from_deletion ? "Remove protection" : "Protect from deletion"}</button>
      <button class="danger" disabled=${vhost.data.protected_from_deletion} onClick=${() => deleteVhost(vhost.data)}>Delete</button>`}>
    ${tabs}
    <${Loaded} from=${vhost}>${(data) => html`
      ${tab === "State" && html`<${State} of=${data} span=${span} setSpan=${setSpan} />`}
      ${tab === "Permissions" && html`<${PermissionsIn} vhost=${name} />`}
      ${tab === "Settings" && html`<${Settings} of=${data} refresh=${vhost.refresh} />`}
      ${tab === "Limits" && html`<${LimitsOf} vhost=${name} />`}`}<//>
  <//>`;
}

function State({ of, span, setSpan }) {
  const stats = of.message_stats ?? {};
  return html`
    <${Tiles} figures=${[
      ["Ready", count(of.messages_ready)], ["Unacked", count(of.messages_unacknowledged)],
      ["Published", rate(rateOf(stats, "publish")), "/s"], ["Delivered", rate(rateOf(stats, "deliver_get")), "/s"], ["Acknowledged", rate(rateOf(stats, "ack")), "/s"],
    ]} />
    <div class="columns"><${LengthsChart} totals=${of} actions=${html`<${SpanChoice} span=${span} onChange=${setSpan} most="10 min" />`} /><${RatesChart} stats=${stats} /></div>
    <${Panel} title="Details"><${Facts} facts=${[
      ["Description", of.description], ["Tags", of.tags.join(", ")], ["Default queue type", of.default_queue_type],
      of.inert_plugins && ["Plugins that failed", Object.entries(of.inert_plugins).map(([plugin, reason]) => html`<div key=${plugin} class="bad-text">${plugin}: ${value(reason)}</div>`)],
    ]} /><//>`;
}

const PERMISSION_COLUMNS = [
  { title: "User", isHeader: true, cell: (each) => html`<a href=${to("users", each.user)}><bdi>${each.user}</bdi></a>` },
  ...["configure", "write", "read"].map((operation) => ({
    title: operation[0].toUpperCase() + operation.slice(1), cell: (each) => (each[operation] ? html`<code>${each[operation]}</code>` : html`<span class="soft">nothing</span>`),
  })),
];

function PermissionsIn({ vhost }) {
  const list = usePolling(path`/vhosts/${vhost}/permissions`);
  return html`<${Panel} title="Permissions" isPadded=${false}><${Loaded} from=${list}>${(rows) => html`
    <${Table} label="Permissions" rows=${rows} columns=${PERMISSION_COLUMNS} rowKey=${(each) => each.user} empty="No user may enter this virtual host." />`}<//><//>`;
}

function Settings({ of, refresh }) {
  const { values, field } = useForm({ description: of.description, tags: of.tags.join(", "), default_queue_type: of.default_queue_type, tracing: of.tracing });
  const save = async () => {
    const { description, tags, default_queue_type, tracing } = of;
    const change = async (fields) => {
      await put(path`/vhosts/${of.name}`, fields);
      refresh();
    };
    await change({ ...values, tags: values.tags.split(",").map((tag) => tag.trim()).filter(Boolean).join() });
    notify(`Virtual host '${of.name}' is changed.`, { undo: () => change({ description, tags: tags.join(), default_queue_type, tracing }) });
  };
  return html`<${Panel} title="Settings"><${Form} action="Save" onSubmit=${save}><div class="fields">
    <${Field} label="Description" ...${field("description")} />
    <${Field} label="Tags" hint="Separated by commas" ...${field("tags")} />
    <${Field} label="Default queue type" kind="select" options=${QUEUE_TYPES} ...${field("default_queue_type")} />
    <div class="field wide"><${Field} kind="check" label="Tracing: the plugins that trace get each publish and delivery" ...${field("tracing")} /></div>
  </div><//><//>`;
}

function LimitsOf({ vhost }) {
  const limits = usePolling(path`/vhost-limits/${vhost}`, {}, { interval: 0 });
  return html`<${Loaded} from=${limits}>${(rows) => html`<${Limits} path=${path`/vhost-limits/${vhost}`} limits=${rows[0]?.value ?? {}} names=${VHOST_LIMITS} refresh=${limits.refresh} />`}<//>`;
}

async function protect({ data: { name, protected_from_deletion: isProtected }, refresh }) {
  const target = path`/vhosts/${name}/deletion/protection`;
  const change = (isOn) => async () => {
    await (isOn ? post(target) : remove(target));
    refresh();
  };
  await act(change(!isProtected), isProtected ? `'${name}' can be deleted again.` : `'${name}' is protected from deletion.`, { undo: change(isProtected) });
}

async function deleteVhost({ name, messages }) {
  const text = `All its queues with ${count(messages)} messages, exchanges, bindings, policies and permissions are deleted, and its connections are closed. This cannot be undone.`;
  if (!await confirm({ title: `Delete virtual host '${name}'?`, text, action: "Delete", isDanger: true, word: name })) return;
  if (await act(() => remove(path`/vhosts/${name}`), `Virtual host '${name}' is deleted.`)) go("#/vhosts");
}
