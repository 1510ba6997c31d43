/** Bindings of a queue or an exchange: a table in which each can be removed, and the form that adds one. */
import { html, useEffect } from "../lib/html.js";
import { store, useStore } from "../lib/store.js";
import { usePolling } from "../lib/polling.js";
import { path, post, remove } from "../lib/api.js";
import { value } from "../lib/format.js";
import { ExchangeLink, FoldedPanel, Loaded, Name, Panel, QueueLink } from "./basics.js";
import { Field, Form, fromPairs, Pairs, useForm } from "./forms.js";
import { Table } from "./tables.js";
import { act, notify } from "./toasts.js";

/** Counts changes of bindings, so that the tables on a page show them at once. */
const changes = store(0);
const changed = () => changes.set(changes.get() + 1);

const pathBetween = ({ vhost, source, destination, destination_type: type }) => path`/bindings/${vhost}/e/${source}/${type === "queue" ? "q" : "e"}/${destination}`;

/** Remove a binding; it can be undone. */
async function unbind(binding) {
  const undo = async () => {
    await post(pathBetween(binding), { routing_key: binding.routing_key, arguments: binding.arguments });
    changed();
  };
  await act(() => remove(`${pathBetween(binding)}${path`/${binding.properties_key}`}`), `The binding of '${binding.destination}' to '${binding.source}' is removed.`, { undo });
  changed();
}

const FROM = { title: "From", isHeader: true, cell: (each) => html`<${ExchangeLink} vhost=${each.vhost} name=${each.source} />` };
const TO = {
  title: "To", isHeader: true,
  cell: (each) => (each.destination_type === "queue" ? html`<${QueueLink} vhost=${each.vhost} name=${each.destination} />` : html`<${ExchangeLink} vhost=${each.vhost} name=${each.destination} /> <span class="soft">exchange</span>`),
};
const restOf = (canChange) => [
  { title: "Routing key", cell: (each) => html`<span class="mono"><${Name} of=${each.routing_key} empty="(empty)" /></span>` },
  { title: "Arguments", isExtra: true, className: "wrap", cell: (each) => Object.entries(each.arguments).map(([key, given]) => `${key}=${value(given)}`).join(", ") },
  { title: "(Actions)", className: "actions-cell", cell: (each) => canChange && each.source && html`<button class="small quiet" onClick=${() => unbind(each)}>Unbind</button>` },
];

/** A table of bindings; `isFrom` shows where they come from, otherwise where they lead. `canChange` permits to remove them. */
export function Bindings({ title, path: target, isFrom, canChange }) {
  const bindings = usePolling(target);
  const version = useStore(changes);
  useEffect(() => { if (version) bindings.refresh(); }, [version]);
  return html`<${Panel} title=${title} isPadded=${false}><${Loaded} from=${bindings}>${(rows) => html`
    <${Table} label=${title} rows=${rows} columns=${[isFrom ? FROM : TO, ...restOf(canChange)]} rowKey=${(each) => `${each.source}\n${each.destination_type}\n${each.destination}\n${each.properties_key}`} empty="There are no bindings." />`}<//>
  <//>`;
}

/** The form that adds a binding; either end may be fixed. */
export function NewBinding({ vhost, source, destination, destinationType = "queue" }) {
  const { values, change, field } = useForm({ source: source ?? "", destination: destination ?? "", type: destinationType, routing_key: "", pairs: [] });
  const bind = async () => {
    const ends = { vhost, source: values.source, destination: values.destination, destination_type: values.type };
    await post(pathBetween(ends), { routing_key: values.routing_key, arguments: fromPairs(values.pairs) });
    notify(`'${values.destination}' is bound to '${values.source}'.`);
    changed();
  };
  return html`<${FoldedPanel} title="Add a binding">
    <${Form} action="Bind" label="Add a binding" onSubmit=${bind}>
      <div class="fields">
        ${source === undefined && html`<${Field} label="From exchange" required ...${field("source")} />`}
        ${destination === undefined && html`<${Field} label="To" kind="select" options=${[["queue", "queue or stream"], ["exchange", "exchange"]]} ...${field("type")} />
          <${Field} label="Name" required ...${field("destination")} />`}
        <${Field} label="Routing key" ...${field("routing_key")} />
        <${Pairs} label="Arguments" keys=${[["x-match", "string"], ["x-weight", "number"]]} pairs=${values.pairs} onChange=${(pairs) => change({ pairs })} />
      </div>
    <//>
  <//>`;
}
