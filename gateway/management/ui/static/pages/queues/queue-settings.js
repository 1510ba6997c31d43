/** The settings in effect for a queue, and where each comes from. */
import { html } from "../../lib/html.js";
import { to } from "../../lib/router.js";
import { value } from "../../lib/format.js";
import { Badge, Facts, Panel } from "../../components/basics.js";
import { Table } from "../../components/tables.js";

const COLUMNS = [
  { title: "Setting", isHeader: true, cell: (each) => html`<code>${each.key}</code>` },
  { title: "Value in effect", className: "wrap", cell: (each) => value(each.value) },
  { title: "From", cell: (each) => html`<${Badge} kind=${each.source.startsWith("operator") ? "warn" : each.source.startsWith("policy") ? "accent" : ""}>${each.source}<//>` },
];

export function QueueSettings({ queue }) {
  const rows = Object.entries(queue.effective_settings ?? {}).map(([key, setting]) => ({ key, ...setting }));
  const order = (row) => (row.source === "default" ? 1 : 0);
  rows.sort((one, other) => order(one) - order(other) || one.key.localeCompare(other.key));
  return html`
    <${Panel} title="Policies and arguments"><${Facts} facts=${[
      ["Policy", queue.policy ? html`<a href=${to("policies")}>${queue.policy}</a>` : "none"],
      ["Operator policy", queue.operator_policy ?? "none"],
      ["Arguments", Object.entries(queue.arguments).map(([key, given]) => html`<div key=${key}><code>${key}</code> = ${value(given)}</div>`)],
    ]} /><//>
    <${Panel} title="Settings in effect" isPadded=${false}>
      <${Table} label="Settings in effect" rows=${rows} columns=${COLUMNS} rowKey=${(row) => row.key} empty="All settings have their defaults." />
    <//>`;
}
