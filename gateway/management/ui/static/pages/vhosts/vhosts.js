/** The list of virtual hosts, and the form that adds one. */
import { html, useState } from "../../lib/html.js";
import { find, put, path } from "../../lib/api.js";
import { to } from "../../lib/router.js";
import { bytes, count, rate, rateOf } from "../../lib/format.js";
import { Badge, FoldedPanel, Name, Page, Panel } from "../../components/basics.js";
import { PagedTable } from "../../components/tables.js";
import { Field, Form, useForm } from "../../components/forms.js";
import { notify } from "../../components/toasts.js";

export const QUEUE_TYPES = ["classic", "quorum", "stream"];

const COLUMNS = [
  { title: "Name", sort: "name", isHeader: true, cell: (each) => html`<a href=${to("vhosts", each.name)}><${Name} of=${each.name} /></a>` },
  { title: "Description", sort: "description", isExtra: true, className: "wrap", cell: (each) => each.description },
  { title: "State", cell: (each) => html`<span class="badges">
    ${Object.values(each.cluster_state ?? {}).map((state) => html`<${Badge} key=${state} kind=${state === "running" ? "good" : "bad"}>${state}<//>`)}
    ${each.inert_plugins && html`<${Badge} kind="bad" title=${JSON.stringify(each.inert_plugins)}>plugin failed<//>`}
    ${each.protected_from_deletion && html`<${Badge}>protected<//>`}${each.tracing && html`<${Badge} kind="warn">tracing<//>`}</span>` },
  { title: "Ready", sort: "messages_ready", isNumber: true, cell: (each) => count(each.messages_ready) },
  { title: "Unacked", sort: "messages_unacknowledged", isNumber: true, isExtra: true, cell: (each) => count(each.messages_unacknowledged) },
  { title: "Publish /s", sort: "message_stats.publish_details.rate", isNumber: true, cell: (each) => rate(rateOf(each.message_stats, "publish")) },
  { title: "Deliver /s", sort: "message_stats.deliver_get_details.rate", isNumber: true, isExtra: true, cell: (each) => rate(rateOf(each.message_stats, "deliver_get")) },
  { title: "From clients /s", sort: "recv_oct_details.rate", isNumber: true, isExtra: true, cell: (each) => bytes(each.recv_oct_details?.rate) },
  { title: "To clients /s", sort: "send_oct_details.rate", isNumber: true, isExtra: true, cell: (each) => bytes(each.send_oct_details?.rate) },
];

export function Vhosts() {
  const [reload, setReload] = useState(0);
  return html`<${Page} title="Virtual hosts">
    <${Panel} isPadded=${false}><${PagedTable} path="/vhosts" noun="virtual hosts" columns=${COLUMNS} reload=${reload} rowKey=${(each) => each.name} /><//>
    <${FoldedPanel} title="Add a virtual host"><${NewVhost} onDone=${() => setReload(reload + 1)} /><//>
  <//>`;
}

function NewVhost({ onDone }) {
  const { values, change, field } = useForm({ name: "", description: "", default_queue_type: "classic" });
  const add = async () => {
    const { name, ...fields } = values;
    if (await find("/vhosts?columns=name", (each) => each.name === name)) throw new Error(`There is a virtual host '${name}' already.`);
    await put(path`/vhosts/${name}`, fields);
    notify(`Virtual host '${name}' is added; you have all permissions in it.`);
    change({ name: "", description: "" });
    onDone();
  };
  return html`<${Form} action="Add virtual host" onSubmit=${add}><div class="fields">
    <${Field} label="Name" required ...${field("name")} />
    <${Field} label="Description" ...${field("description")} />
    <${Field} label="Default queue type" kind="select" options=${QUEUE_TYPES} ...${field("default_queue_type")} />
  </div><//>`;
}
