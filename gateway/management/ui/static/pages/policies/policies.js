/** Policies and operator policies: lists, and the form that sets one after a preview. */
import { html, useState } from "../../lib/html.js";
import { useStore } from "../../lib/store.js";
import { usePolling } from "../../lib/polling.js";
import { path, put, remove } from "../../lib/api.js";
import { listingPath, selectedVhost } from "../../lib/vhosts.js";
import { may } from "../../lib/session.js";
import { count, value } from "../../lib/format.js";
import { Badge, Loaded, Name, Page, Panel } from "../../components/basics.js";
import { useTabs } from "../../components/tabs.js";
import { Table } from "../../components/tables.js";
import { act } from "../../components/toasts.js";
import { PolicyForm } from "./policy-form.js";

const NOUNS = { Policies: "policies", "Operator policies": "operator-policies" };

export function Policies() {
  const [tab, tabs] = useTabs(Object.keys(NOUNS), "Policies");
  return html`<${Page} title="Policies">${tabs}<${List} key=${tab} noun=${NOUNS[tab]} title=${tab} /><//>`;
}

function List({ noun, title }) {
  const vhost = useStore(selectedVhost);
  const list = usePolling(listingPath(noun, vhost));
  const [edited, setEdited] = useState(null);
  const isEditable = may(noun === "policies" ? "policymaker" : "administrator");
  const actions = { title: "(Actions)", className: "actions-cell", cell: (policy) => isEditable && html`
    <button class="small quiet" onClick=${() => setEdited({ ...policy })}>Edit</button>
    <button class="small quiet" onClick=${() => removePolicy(noun, policy, list.refresh)}>Remove</button>` };
  return html`
    <${Panel} title=${title} isPadded=${false}><${Loaded} from=${list}>${(rows) => html`
      <${Table} label=${title} rows=${rows} columns=${[...COLUMNS, actions]} rowKey=${(each) => `${each.vhost}\n${each.name}`} empty="There are none." />`}<//><//>
    ${isEditable && html`<${PolicyForm} key=${edited ? `${edited.vhost} ${edited.name}` : "new"} noun=${noun} policy=${edited} vhost=${vhost} onDone=${() => { setEdited(null); list.refresh(); }} />`}`;
}

const COLUMNS = [
  { title: "Name", isHeader: true, cell: (policy) => html`<${Name} of=${policy.name} />${policy.without_effect && html` <${Badge} kind="bad" title=${policy.without_effect}>without effect<//>`}` },
  { title: "Virtual host", isExtra: true, cell: (policy) => html`<bdi>${policy.vhost}</bdi>` },
  { title: "Pattern", cell: (policy) => html`<code>${policy.pattern}</code>` },
  { title: "Applies to", isExtra: true, cell: (policy) => policy["apply-to"].replaceAll("_", " ") },
  { title: "Definition", className: "wrap", cell: (policy) => Object.entries(policy.definition).map(([key, given]) => html`<div key=${key}><code>${key}</code> = ${value(given)}</div>`) },
  { title: "Priority", isNumber: true, isExtra: true, cell: (policy) => count(policy.priority) },
];

/** Remove a policy; it can be undone. */
async function removePolicy(noun, policy, refresh) {
  const { vhost, name, without_effect: _, ...rule } = policy;
  const target = path`/${noun}/${vhost}/${name}`;
  const undo = async () => {
    await put(target, rule);
    refresh();
  };
  await act(() => remove(target), `Policy '${name}' is removed.`, { undo });
  refresh();
}
