/** The actions of the workbench on a queue that can still be undone. */
import { html } from "../../lib/html.js";
import { usePolling } from "../../lib/polling.js";
import { post } from "../../lib/api.js";
import { count } from "../../lib/format.js";
import { Loaded, Panel } from "../../components/basics.js";
import { Table } from "../../components/tables.js";
import { act } from "../../components/toasts.js";

export function Undoable({ vhost, name, onDone }) {
  const actions = usePolling("/workbench/undo");
  const undo = async (action) => {
    const cell = action.cell ? `?cell=${action.cell}` : "";
    await act(() => post(`/workbench/undo/${action.id}${cell}`, { wait_s: 10 }), "The action is undone.");
    onDone();
  };
  const columns = [
    { title: "Action", isHeader: true, cell: (each) => `${each.action}${each.target ? ` to ${each.target}` : ""}` },
    { title: "User", isExtra: true, cell: (each) => html`<bdi>${each.user}</bdi>` },
    { title: "Messages", isNumber: true, cell: (each) => count(each.messages) },
    { title: "At", isExtra: true, cell: (each) => each.at },
    { title: "Can be undone until", cell: (each) => each.until },
    { title: "(Actions)", className: "actions-cell", cell: (each) => html`<button class="small" onClick=${() => undo(each)}>Undo</button>` },
  ];
  return html`<${Panel} title="What can be undone" isPadded=${false}><${Loaded} from=${actions}>${(rows) => html`
    <${Table} label="What can be undone" rows=${rows.filter((each) => each.vhost === vhost && each.queue === name)} columns=${columns} rowKey=${(each) => each.id} empty="No action on this queue can be undone." />`}<//><//>`;
}
