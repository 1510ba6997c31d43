/** An action on messages of the workbench: first a dry run, then the action itself, which can be undone for some time. */
import { html, useState } from "../../lib/html.js";
import { post } from "../../lib/api.js";
import { plural } from "../../lib/format.js";
import { FoldedPanel } from "../../components/basics.js";
import { Field, Form, fromPairs, Pairs, useForm } from "../../components/forms.js";
import { notify } from "../../components/toasts.js";

const ACTIONS = [["move", "move to"], ["copy", "copy to"], ["edit", "edit in place"], ["requeue", "requeue"], ["delete", "delete"]];
const DONE = { move: "moved", copy: "copied", edit: "edited", requeue: "requeued", delete: "deleted" };
const WAIT_S = 10;

export function MessageAction({ queue, target, filter, ids, onDone }) {
  const { values, change, field } = useForm({ action: "move", to: "queue", name: "", routing_key: "", new_key: "", payload: "", headers: [] });
  const [dryRun, setDryRun] = useState(null);
  const request = (isDryRun) => {
    const chosen = ids.length ? { ids } : { filter: withoutUnacknowledged(filter) };
    return post(`${target}/${values.action}`, { ...chosen, ...actionFields(values), dry_run: isDryRun, wait_s: WAIT_S });
  };
  const changed = (name) => ({ ...field(name), onChange: (given) => { setDryRun(null); change({ [name]: given }); } });
  const preview = async () => setDryRun(await request(true));
  const apply = async () => {
    const report = await request(false);
    const refused = report.refused ? ` ${report.refused} stayed: ${report.refusals.map((each) => each.reason).join("; ")}.` : "";
    const undo = report.undo ? { undo: async () => { await post(`/workbench/undo/${report.undo}`, { wait_s: WAIT_S }); onDone(); } } : {};
    notify(`${plural(report.done, "message")} ${DONE[values.action]}.${refused}`, undo);
    onDone();
  };
  const hasTarget = values.action === "move" || values.action === "copy";
  return html`<${FoldedPanel} title=${ids.length ? `Act on ${plural(ids.length, "chosen message")}` : "Act on all messages that match"} isOpen>
    <${Form} action=${dryRun ? `Apply to ${plural(dryRun.matched, "message")}` : "Dry run"} isDanger=${Boolean(dryRun)} label="Act on messages" onSubmit=${dryRun ? apply : preview}
      extra=${dryRun && html`<button type="button" onClick=${() => setDryRun(null)}>Cancel</button>`}>
      <div class="fields">
        <${Field} label="Action" kind="select" options=${ACTIONS} ...${changed("action")} />
        ${hasTarget && html`<${Field} label="To" kind="select" options=${["queue", "exchange"]} ...${changed("to")} /><${Field} label="Name of the target" required ...${changed("name")} />`}
        ${hasTarget && values.to === "exchange" && html`<${Field} label="With routing key" hint="Empty keeps their own" ...${changed("routing_key")} />`}
        ${values.action === "edit" && html`<${Field} label="New routing key" hint="Empty keeps it" ...${changed("new_key")} /><${Field} label="New body" kind="textarea" isWide hint="Empty keeps it" ...${changed("payload")} />
          <${Pairs} label="Headers to set" pairs=${values.headers} onChange=${(headers) => { setDryRun(null); change({ headers }); }} />`}
      </div>
      ${dryRun && html`<div class="notice warn" role="status">${plural(dryRun.matched, "message")} of queue '${queue.name}' would be ${DONE[values.action]}${hasTarget ? ` to ${values.to} '${values.name}'` : ""}. Nothing has been changed yet.</div>`}
    <//>
  <//>`;
}

/** A message that a consumer holds is its own: actions take ready and delayed ones. */
function withoutUnacknowledged(filter) {
  const states = filter.states?.filter((state) => state !== "unacknowledged");
  return states?.length ? { ...filter, states } : { ...filter, states: ["ready", "delayed"] };
}

function actionFields({ action, to, name, routing_key: key, new_key: newKey, payload, headers }) {
  if (action === "move" || action === "copy") return { to: to === "queue" ? { queue: name } : { exchange: name, ...(key ? { routing_key: key } : {}) } };
  if (action !== "edit") return {};
  return { changes: { ...(newKey ? { routing_key: newKey } : {}), ...(payload ? { payload, payload_encoding: "string" } : {}), ...(headers.length ? { headers: fromPairs(headers) } : {}) } };
}
