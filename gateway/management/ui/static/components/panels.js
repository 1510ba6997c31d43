/** Panels that plugins offer: tables, numbers and texts of their resources. No code of a plugin runs in the browser. */
import { html } from "../lib/html.js";
import { usePolling } from "../lib/polling.js";
import { count, value } from "../lib/format.js";
import { Badge, Facts, Loaded, Panel } from "./basics.js";
import { Table } from "./tables.js";

const SLOWLY_MS = 30_000;

/** The panels of a page: overview, connections, channels, exchanges, queues or admin. */
export function PluginPanels({ page }) {
  const panels = usePolling("/ui-panels", {}, { interval: SLOWLY_MS });
  const here = (panels.data ?? []).filter((panel) => panel.page === page);
  return here.map((panel) => html`<${PluginPanel} key=${`${panel.vhost} ${panel.path}`} panel=${panel} />`);
}

function PluginPanel({ panel }) {
  const content = usePolling(panel.path.replace(/^\/api/, ""), panel.query, { interval: panel.refresh_s * 1000 });
  const Content = KINDS[panel.kind] ?? Text;
  const origin = html`<${Badge} title="The plugin that offers this panel">${panel.plugin}<//><span class="soft">in <bdi>${panel.vhost}</bdi></span>`;
  return html`<${Panel} title=${panel.title} actions=${origin} isPadded=${panel.kind !== "table"}>
    <${Loaded} from=${content}>${(data) => html`<${Content} panel=${panel} data=${data} />`}<//>
  <//>`;
}

function Rows({ panel, data }) {
  const rows = Array.isArray(data) ? data : data.items ?? [];
  const named = panel.columns.length ? panel.columns : Object.keys(rows[0] ?? {}).map((name) => ({ name, title: name }));
  const columns = named.map(({ name, title, unit }, index) => ({
    title, isHeader: index === 0, isNumber: typeof rows[0]?.[name] === "number", cell: (row) => cellOf(row[name], unit),
  }));
  return html`<${Table} label=${panel.title} rows=${rows.map((row, index) => ({ ...row, __index: index }))} columns=${columns} rowKey=${(row) => row.__index} empty="There is nothing to show." />`;
}

function cellOf(given, unit) {
  if (given === undefined || given === null) return "–";
  return `${typeof given === "number" ? count(given) : value(given)}${unit ? ` ${unit}` : ""}`;
}

const Numbers = ({ data }) => html`<${Facts} facts=${Object.entries(data).map(([name, given]) => [name, cellOf(given)])} />`;
const Text = ({ data }) => html`<pre>${typeof data === "string" ? data : JSON.stringify(data, null, 2)}</pre>`;

const KINDS = { table: Rows, numbers: Numbers, text: Text };
