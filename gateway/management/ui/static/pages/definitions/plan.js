/** A plan of the broker: what definitions would create, change and delete, and what hinders that. */
import { html } from "../../lib/html.js";
import { count, plural, value } from "../../lib/format.js";
import { Badge, Name, Panel } from "../../components/basics.js";
import { confirm } from "../../components/dialogs.js";
import { Form } from "../../components/forms.js";
import { Table } from "../../components/tables.js";

const KINDS = { create: "good", change: "warn", delete: "bad", conflict: "bad" };

const COLUMNS = [
  { title: "Change", cell: (step) => html`<${Badge} kind=${KINDS[step.action]}>${step.action}<//>` },
  { title: "Virtual host", isExtra: true, cell: (step) => html`<bdi>${step.vhost ?? ""}</bdi>` },
  { title: "Object", isHeader: true, className: "wrap", cell: (step) => html`<span class="soft">${step.category.replaceAll("_", " ")}</span> <${Name} of=${step.name} />` },
  { title: "Differences", className: "wrap", cell: (step) => html`<${Differences} step=${step} />` },
];

/** The fields that differ; of a new object those that it gets, of a conflict the reason. */
function Differences({ step: { action, before, after, reason } }) {
  const fields = action === "delete" ? [] : Object.keys({ ...before, ...after });
  return html`${reason && html`<div class="bad-text">${reason}</div>`}${fields.map((field) => html`<div key=${field}><code>${field}</code> ${before && html`${shown(before[field])} → `}<b>${shown(after?.[field])}</b></div>`)}`;
}

const shown = (given) => (given === undefined ? "not set" : value(given));

/** The plan; `onApply` applies it, after a question if it deletes something. */
export function Plan({ plan, onApply, onCancel }) {
  const apply = async () => {
    if (plan.delete === 0 || await confirmed(plan)) await onApply();
  };
  const total = plan.create + plan.change + plan.delete + plan.conflict;
  const canApply = plan.conflict === 0 && total > 0;
  return html`<${Panel} title="Comparison" isPadded=${false}>
    <div class="body stack">
      <p role="status">Applying them would create <b>${plural(plan.create, "object")}</b>, change <b>${count(plan.change)}</b> and delete <b>${count(plan.delete)}</b>.</p>
      ${plan.conflict > 0 && html`<div class="notice bad">${plan.conflict === 1 ? "1 conflict prevents" : `${count(plan.conflict)} conflicts prevent`} that anything is applied: delete these objects first, or change the definitions.</div>`}
    </div>
    <${Table} label="Comparison" rows=${ordered(plan.steps)} columns=${COLUMNS} rowKey=${(step) => `${step.category}\n${step.vhost}\n${step.name}\n${step.action}`} empty="The broker is as they describe it." />
    ${plan.steps.length < total && html`<footer>The first ${count(plan.steps.length)} of ${count(total)} changes are listed.</footer>`}
    <div class="body">${canApply ? html`<${Form} action="Apply definitions" isDanger=${plan.delete > 0} onSubmit=${apply} extra=${html`<button type="button" onClick=${onCancel}>Cancel</button>`} />` : html`<button onClick=${onCancel}>Close</button>`}</div>
  <//>`;
}

/** Return the steps with the conflicts first. */
const ordered = (steps) => [...steps].sort((one, other) => Number(other.action === "conflict") - Number(one.action === "conflict"));

const confirmed = (plan) => confirm({
  title: `Delete ${plural(plan.delete, "object")}?`,
  text: "Messages in deleted queues are lost. This cannot be undone.",
  action: "Apply definitions", isDanger: true, word: "delete",
});
