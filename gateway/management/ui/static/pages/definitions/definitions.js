/** Definitions: export, and import after a comparison with what the broker has. */
import { html, useState } from "../../lib/html.js";
import { useStore } from "../../lib/store.js";
import { get, path, post } from "../../lib/api.js";
import { selectedVhost } from "../../lib/vhosts.js";
import { plural } from "../../lib/format.js";
import { Badge, Page, Panel } from "../../components/basics.js";
import { Field, Form, useForm, useId } from "../../components/forms.js";
import { Table } from "../../components/tables.js";
import { act, notify } from "../../components/toasts.js";
import { compare } from "./compare.js";

const targetOf = (vhost) => (vhost === "" ? "/definitions" : path`/definitions/${vhost}`);

export function Definitions() {
  const vhost = useStore(selectedVhost);
  return html`<${Page} title="Definitions">
    <${Panel} title="Export"><p>Users, virtual hosts, permissions, policies, parameters, exchanges, queues and bindings of ${vhost === "" ? "the whole broker" : html`virtual host <b>${vhost}</b>`}. Messages are not included.</p>
      <div class="form-actions"><button class="primary" onClick=${() => act(() => download(vhost))}>Download definitions</button></div><//>
    <${Import} key=${vhost} vhost=${vhost} />
  <//>`;
}

/** Save the definitions as a file. */
async function download(vhost) {
  const definitions = await get(targetOf(vhost));
  const address = URL.createObjectURL(new Blob([JSON.stringify(definitions, null, 2)], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = `gateway-definitions-${new Date().toISOString().slice(0, 10)}.json`;
  link.click();
  URL.revokeObjectURL(address);
}

function Import({ vhost }) {
  const { values, change, field } = useForm({ text: "" });
  const [comparison, setComparison] = useState(null);
  const id = useId();
  const read = async (event) => change({ text: await event.target.files[0].text() });
  const check = async () => {
    const wanted = parse(values.text);
    setComparison({ rows: compare(await get(targetOf(vhost)), wanted), wanted });
  };
  const apply = async () => {
    await post(targetOf(vhost), comparison.wanted);
    notify("The definitions are applied.");
    setComparison(null);
    change({ text: "" });
  };
  return html`
    <${Panel} title="Import"><${Form} action="Compare" onSubmit=${check}>
      <p class="soft">Definitions are first compared with the broker. They are applied as a whole or not at all; what they do not name stays.</p>
      <div class="fields"><div class="field"><label for=${id}>File</label><input id=${id} type="file" accept=".json,application/json" onChange=${read} /></div>
        <${Field} label="Definitions" kind="textarea" isWide rows="8" required spellcheck="false" ...${field("text")} /></div>
    <//><//>
    ${comparison && html`<${Comparison} rows=${comparison.rows} onApply=${apply} onCancel=${() => setComparison(null)} />`}`;
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`This is not JSON: ${error.message}`);
  }
}

const KINDS = { new: "good", changed: "warn", conflict: "bad", same: "" };

const COLUMNS = [
  { title: "Change", cell: (row) => html`<${Badge} kind=${KINDS[row.change]}>${row.change}<//>` },
  { title: "Kind", cell: (row) => row.section.replaceAll("_", " ") },
  { title: "Object", isHeader: true, className: "wrap", cell: (row) => html`<bdi>${row.name}</bdi>` },
  { title: "Differences", className: "wrap", cell: (row) => row.differences.map((each) => html`<div key=${each.field}><code>${each.field}</code> ${each.before} → <b>${each.after}</b></div>`) },
];

function Comparison({ rows, onApply, onCancel }) {
  const changes = rows.filter((row) => row.change !== "same");
  const conflicts = rows.filter((row) => row.change === "conflict").length;
  return html`<${Panel} title="Comparison" isPadded=${false}>
    <div class="body stack"><p role="status"><b>${plural(rows.filter((row) => row.change === "new").length, "object")}</b> would be created and <b>${plural(rows.filter((row) => row.change === "changed").length, "object")}</b> changed; ${plural(rows.length - changes.length, "object")} are the same.
      ${conflicts > 0 && html` <span class="bad-text">${plural(conflicts, "existing queue or exchange", "existing queues and exchanges")} with other properties stay as they are.</span>`}</p></div>
    <${Table} label="Comparison" rows=${changes} columns=${COLUMNS} rowKey=${(row) => `${row.section}\n${row.name}`} empty="The broker has all of this already." />
    <div class="body"><${Form} action="Apply definitions" onSubmit=${onApply} extra=${html`<button type="button" onClick=${onCancel}>Cancel</button>`} /></div>
  <//>`;
}
