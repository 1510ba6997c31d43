/** Shovels, federation links and MQTT bridges: their state and their parameters. */
import { html, useState } from "../../lib/html.js";
import { useStore } from "../../lib/store.js";
import { usePolling } from "../../lib/polling.js";
import { path, put, remove } from "../../lib/api.js";
import { listingPath, selectedVhost } from "../../lib/vhosts.js";
import { may } from "../../lib/session.js";
import { value } from "../../lib/format.js";
import { Badge, Loaded, Name, Page, Panel } from "../../components/basics.js";
import { confirm } from "../../components/dialogs.js";
import { useTabs } from "../../components/tabs.js";
import { Table } from "../../components/tables.js";
import { act } from "../../components/toasts.js";
import { ParameterForm } from "./parameter-form.js";

const KINDS = { running: "good", starting: "warn", terminated: "bad", blocked: "warn", error: "bad", shutdown: "warn" };

/** The components whose parameters make bridges. */
export const COMPONENTS = ["shovel", "federation-upstream", "federation-upstream-set", "mqtt-bridge"];

/** Components that have a page of their own. */
const POLICIES = ["policy", "operator_policy"];

export function Bridges() {
  const [tab, tabs] = useTabs([may("monitoring") && "State", may("policymaker") && "Parameters"].filter(Boolean), "Bridges");
  return html`<${Page} title="Shovels and federation">${tabs}${tab === "State" ? html`<${State} />` : html`<${Parameters} />`}<//>`;
}

const stateOf = (each) => html`<${Badge} kind=${KINDS[each.state ?? each.status] ?? ""}>${each.state ?? each.status}<//>${(each.reason || each.error) && html` <span class="bad-text">${value(each.reason ?? each.error)}</span>`}`;

function State() {
  const vhost = useStore(selectedVhost);
  const shovels = usePolling(listingPath("shovels", vhost));
  const links = usePolling(listingPath("federation-links", vhost));
  const restart = (target, name, refresh) => async () => {
    await act(() => remove(target), `'${name}' connects again.`);
    refresh();
  };
  const shovelColumns = [
    { title: "Name", isHeader: true, cell: (each) => html`<${Name} of=${each.name} />` },
    { title: "Virtual host", isExtra: true, cell: (each) => html`<bdi>${each.vhost}</bdi>` },
    { title: "State", className: "wrap", cell: stateOf },
    { title: "From", isExtra: true, className: "wrap", cell: (each) => (each.type === "mqtt-bridge" ? "MQTT bridge" : endOf(each, "src")) },
    { title: "To", isExtra: true, className: "wrap", cell: (each) => (each.type === "mqtt-bridge" ? html`<span class="soft">${each.address}</span>` : endOf(each, "dest")) },
    { title: "Since", isExtra: true, cell: (each) => each.timestamp ?? "" },
    { title: "(Actions)", className: "actions-cell", cell: (each) => may("policymaker") && html`<button class="small quiet" onClick=${restart(path`/shovels/vhost/${each.vhost}/${each.name}/restart`, each.name, shovels.refresh)}>Restart</button>` },
  ];
  const linkColumns = [
    { title: "Upstream", isHeader: true, cell: (each) => html`<${Name} of=${each.upstream} />` },
    { title: "Virtual host", isExtra: true, cell: (each) => html`<bdi>${each.vhost}</bdi>` },
    { title: "For", cell: (each) => html`${each.type} <${Name} of=${each.exchange ?? each.queue} />` },
    { title: "State", className: "wrap", cell: stateOf },
    { title: "Broker", isExtra: true, className: "wrap", cell: (each) => each.uri ?? "" },
    { title: "Since", isExtra: true, cell: (each) => each.timestamp ?? "" },
    { title: "(Actions)", className: "actions-cell", cell: (each) => may("policymaker") && html`<button class="small quiet" onClick=${restart(path`/federation-links/vhost/${each.vhost}/${each.id}/${each.node}/restart`, each.upstream, links.refresh)}>Restart</button>` },
  ];
  return html`
    <${Panel} title="Shovels" isPadded=${false}><${Loaded} from=${shovels}>${(rows) => html`<${Table} label="Shovels" rows=${rows} columns=${shovelColumns} rowKey=${(each) => `${each.vhost}\n${each.name}`} empty="There are no shovels." />`}<//><//>
    <${Panel} title="Federation links" isPadded=${false}><${Loaded} from=${links}>${(rows) => html`<${Table} label="Federation links" rows=${rows} columns=${linkColumns} rowKey=${(each) => `${each.vhost}\n${each.id}`} empty="There are no federation links." />`}<//><//>`;
}

/** Return an end of a shovel: its queue, exchange or topic, and its broker. */
function endOf(shovel, side) {
  const name = shovel[`${side}_queue`] ?? shovel[`${side}_exchange`] ?? shovel[`${side}_topic`] ?? shovel[`${side}_address`] ?? "";
  return html`<bdi>${name}</bdi> <span class="soft">${shovel[`${side}_uri`] ?? ""}</span>`;
}

function Parameters() {
  const vhost = useStore(selectedVhost);
  const list = usePolling("/parameters");
  const [edited, setEdited] = useState(null);
  const columns = [
    { title: "Kind", cell: (each) => each.component },
    { title: "Name", isHeader: true, cell: (each) => html`<${Name} of=${each.name} />` },
    { title: "Virtual host", isExtra: true, cell: (each) => html`<bdi>${each.vhost}</bdi>` },
    { title: "Value", className: "wrap", cell: (each) => html`<code>${withoutPasswords(value(each.value))}</code>` },
    { title: "(Actions)", className: "actions-cell", cell: (each) => html`<button class="small quiet" onClick=${() => setEdited(each)}>Edit</button><button class="small quiet" onClick=${() => removeParameter(each, list.refresh)}>Remove</button>` },
  ];
  return html`
    <${Panel} title="Parameters" isPadded=${false}><${Loaded} from=${list}>${(rows) => html`<${Table} label="Parameters" rows=${rows.filter((each) => !POLICIES.includes(each.component) && (vhost === "" || each.vhost === vhost))} columns=${columns}
      rowKey=${(each) => `${each.component}\n${each.vhost}\n${each.name}`} empty="There are no parameters." />`}<//><//>
    <${ParameterForm} key=${edited ? `${edited.component} ${edited.vhost} ${edited.name}` : "new"} parameter=${edited} vhost=${vhost} onDone=${() => { setEdited(null); list.refresh(); }} />`;
}

/** Return a text whose URIs have no passwords. */
const withoutPasswords = (text) => text.replace(/(:\/\/[^:/@"]*):[^@"]*@/g, "$1:…@");

/** Remove a parameter; it can be undone. */
async function removeParameter({ component, vhost, name, value: given }, refresh) {
  const target = path`/parameters/${component}/${vhost}/${name}`;
  if (!await confirm({ title: `Remove '${name}'?`, text: "The bridge ends. You can undo this.", action: "Remove", isDanger: true })) return;
  const undo = async () => {
    await put(target, { component, vhost, name, value: given });
    refresh();
  };
  await act(() => remove(target), `'${name}' is removed.`, { undo });
  refresh();
}
