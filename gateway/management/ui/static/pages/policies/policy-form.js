/** The form that sets a policy. A preview shows what it would match and change. */
import { html, useEffect, useRef, useState } from "../../lib/html.js";
import { find, path, post, put, remove } from "../../lib/api.js";
import { POLICY_KEYS } from "../../lib/known-arguments.js";
import { count, plural, value } from "../../lib/format.js";
import { Badge, ExchangeLink, Name, Panel, QueueLink } from "../../components/basics.js";
import { Field, Form, fromPairs, Pairs, toPairs, useForm } from "../../components/forms.js";
import { Table } from "../../components/tables.js";
import { VhostField } from "../../components/vhost-field.js";
import { act, notify } from "../../components/toasts.js";

const KINDS = ["all", "queues", "classic_queues", "quorum_queues", "streams", "exchanges"].map((kind) => [kind, kind.replaceAll("_", " ")]);
const OPERATOR_KINDS = KINDS.filter(([kind]) => kind !== "all" && kind !== "exchanges");

export function PolicyForm({ noun, policy, vhost, onDone }) {
  const isOperator = noun === "operator-policies";
  const { values, change, field } = useForm({
    vhost: policy?.vhost ?? vhost, name: policy?.name ?? "", pattern: policy?.pattern ?? "", apply_to: policy?.["apply-to"] ?? (isOperator ? "queues" : "all"),
    priority: String(policy?.priority ?? 0), pairs: toPairs(policy?.definition),
  });
  const place = useRef(null);
  useEffect(() => { if (policy) place.current.querySelector("input").focus(); }, []);
  const [preview, setPreview] = useState(null);
  const rule = () => ({ pattern: values.pattern, "apply-to": values.apply_to, priority: Number(values.priority), definition: fromPairs(values.pairs) });
  const target = () => path`/${noun}/${values.vhost}/${values.name || "new"}`;
  const show = async () => act(async () => setPreview(await post(`${target()}/preview`, rule())));
  const set = async () => {
    const at = target();
    const before = await find(path`/${noun}/${values.vhost}`, (each) => each.name === values.name);
    await put(at, rule());
    const undo = async () => {
      await (before ? put(at, before) : remove(at));
      onDone();
    };
    notify(`Policy '${values.name}' is set.`, { undo });
    change({ name: "", pattern: "", pairs: [] });
    setPreview(null);
    onDone();
  };
  return html`<div ref=${place} class="stack"><${Panel} title=${policy ? `Change '${policy.name}'` : isOperator ? "Add an operator policy" : "Add a policy"}>
    <${Form} action="Set policy" onSubmit=${set} extra=${html`<button type="button" onClick=${show}>Preview</button>${policy && html`<button type="button" onClick=${onDone}>Cancel</button>`}`}>
      <div class="fields">
        <${VhostField} ...${field("vhost")} />
        <${Field} label="Name" required readonly=${Boolean(policy)} ...${field("name")} />
        <${Field} label="Pattern" hint="A regular expression that matches anywhere in a name" ...${field("pattern")} />
        <${Field} label="Applies to" kind="select" options=${isOperator ? OPERATOR_KINDS : KINDS} ...${field("apply_to")} />
        <${Field} label="Priority" kind="number" hint="Of several that match, the highest applies" ...${field("priority")} />
        <${Pairs} label="Definition" keys=${POLICY_KEYS} pairs=${values.pairs} onChange=${(pairs) => change({ pairs })} />
      </div>
    <//><//>
    ${preview && html`<${Preview} of=${preview} vhost=${values.vhost} />`}
  </div>`;
}

function Preview({ of, vhost }) {
  return html`<${Panel} title="Preview" isPadded=${false}>
    <div class="body"><p>It would apply to <b>${plural(of.queues, "queue")}</b> and <b>${plural(of.exchanges, "exchange")}</b>, and change <b>${plural(of.changed, "object")}</b>.
      ${of.changed > of.changes.length && ` The first ${count(of.changes.length)} are shown.`}</p></div>
    <${Table} label="Preview" rows=${of.changes} columns=${columnsIn(vhost)} rowKey=${(each) => `${each.kind}\n${each.name}`} empty="Nothing would change." />
  <//>`;
}

const columnsIn = (vhost) => [
  { title: "Object", isHeader: true, cell: (each) => (each.kind === "queue" ? html`<${QueueLink} vhost=${vhost} name=${each.name} />` : html`<${ExchangeLink} vhost=${vhost} name=${each.name} /> <span class="soft">exchange</span>`) },
  { title: "Policy", cell: (each) => html`<${Change} of=${each.policy} />` },
  { title: "Operator policy", isExtra: true, cell: (each) => html`<${Change} of=${each.operator_policy} />` },
  { title: "Settings", className: "wrap", cell: (each) => Object.entries(each.settings).map(([key, change]) => html`<div key=${key}><code>${key}</code> ${shown(change.before)} → <b>${shown(change.after)}</b></div>`) },
];

const shown = (given) => (given === null ? "not set" : value(given));

function Change({ of: { before, after } }) {
  if (before === after) return before ? html`<${Name} of=${before} />` : "none";
  return html`${before ?? "none"} → <${Badge} kind="accent">${after ?? "none"}<//>`;
}
