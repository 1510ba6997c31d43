/** The list of exchanges, and the form that declares one. */
import { html, useEffect, useState } from "../../lib/html.js";
import { useStore } from "../../lib/store.js";
import { usePolling } from "../../lib/polling.js";
import { path, put } from "../../lib/api.js";
import { listingPath, selectedVhost } from "../../lib/vhosts.js";
import { EXCHANGE_ARGUMENTS } from "../../lib/known-arguments.js";
import { rate, rateOf } from "../../lib/format.js";
import { Badge, ExchangeLink, Features, FoldedPanel, Page, Panel } from "../../components/basics.js";
import { PluginPanels } from "../../components/panels.js";
import { PagedTable } from "../../components/tables.js";
import { Field, Form, fromPairs, Pairs, useForm } from "../../components/forms.js";
import { VhostField } from "../../components/vhost-field.js";
import { notify } from "../../components/toasts.js";

const COLUMNS = [
  { title: "Name", sort: "name", isHeader: true, cell: (exchange) => html`<${ExchangeLink} ...${exchange} />` },
  { title: "Type", sort: "type", cell: (exchange) => exchange.type },
  { title: "Features", isExtra: true, cell: (exchange) => html`<${Features} of=${exchange} />` },
  { title: "Policy", sort: "policy", isExtra: true, cell: (exchange) => exchange.policy && html`<${Badge} kind="accent">${exchange.policy}<//>` },
  { title: "In /s", sort: "message_stats.publish_in_details.rate", isNumber: true, cell: (exchange) => rate(rateOf(exchange.message_stats, "publish_in")) },
  { title: "Out /s", sort: "message_stats.publish_out_details.rate", isNumber: true, cell: (exchange) => rate(rateOf(exchange.message_stats, "publish_out")) },
];
const VHOST = { title: "Virtual host", sort: "vhost", isExtra: true, cell: (exchange) => html`<bdi>${exchange.vhost}</bdi>` };

export function Exchanges() {
  const vhost = useStore(selectedVhost);
  const [reload, setReload] = useState(0);
  const columns = vhost === "" ? [COLUMNS[0], VHOST, ...COLUMNS.slice(1)] : COLUMNS;
  return html`<${Page} title="Exchanges">
    <${Panel} isPadded=${false}>
      <${PagedTable} path=${listingPath("exchanges", vhost)} noun="exchanges" columns=${columns} reload=${reload} rowKey=${(exchange) => `${exchange.vhost}\n${exchange.name}`} />
    <//>
    <${PluginPanels} page="exchanges" />
    <${NewExchange} vhost=${vhost} onDone=${() => setReload(reload + 1)} />
  <//>`;
}

function NewExchange({ vhost, onDone }) {
  const { values, change, field } = useForm({ vhost, name: "", type: "direct", durable: true, auto_delete: false, internal: false, pairs: [] });
  useEffect(() => change({ vhost }), [vhost]);
  const overview = usePolling("/overview", { columns: "exchange_types" }, { interval: 0 });
  const types = overview.data?.exchange_types.map((type) => type.name) ?? ["direct", "fanout", "topic", "headers"];
  const declare = async () => {
    const { durable, auto_delete, internal, type } = values;
    await put(path`/exchanges/${values.vhost}/${values.name}`, { type, durable, auto_delete, internal, arguments: fromPairs(values.pairs) });
    notify(`Exchange '${values.name}' is declared.`);
    change({ name: "" });
    onDone();
  };
  return html`<${FoldedPanel} title="Declare an exchange">
    <${Form} action="Declare" label="Declare an exchange" onSubmit=${declare}>
      <div class="fields">
        <${VhostField} ...${field("vhost")} />
        <${Field} label="Name" required ...${field("name")} />
        <${Field} label="Type" kind="select" options=${types} ...${field("type")} />
        <div class="field wide row">
          <${Field} kind="check" label="Durable" ...${field("durable")} /><${Field} kind="check" label="Auto-delete" ...${field("auto_delete")} /><${Field} kind="check" label="Internal" ...${field("internal")} />
        </div>
        <${Pairs} label="Arguments" keys=${EXCHANGE_ARGUMENTS} pairs=${values.pairs} onChange=${(pairs) => change({ pairs })} />
      </div>
    <//>
  <//>`;
}
