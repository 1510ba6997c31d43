/** The plugins of a virtual host: state, version, faults and the time of their calls. */
import { html } from "../../lib/html.js";
import { usePolling } from "../../lib/polling.js";
import { path } from "../../lib/api.js";
import { to } from "../../lib/router.js";
import { count } from "../../lib/format.js";
import { Badge, Loaded, Page, Panel } from "../../components/basics.js";
import { OneVhost } from "../../components/one-vhost.js";
import { PluginPanels } from "../../components/panels.js";
import { Table } from "../../components/tables.js";

/** How the state of a plugin is shown. */
export const STATES = { enabled: "good", inert: "bad", broken: "bad", disabled: "" };

export function Plugins() {
  return html`<${Page} title="Plugins"><${OneVhost}>${(vhost) => html`<${List} key=${vhost} vhost=${vhost} />`}<//><${PluginPanels} page="admin" /><//>`;
}

function List({ vhost }) {
  const inVhost = usePolling(path`/plugins/${vhost}`);
  const all = usePolling("/plugins", {}, { interval: 0 });
  const described = Object.fromEntries((all.data ?? []).map((plugin) => [plugin.name, plugin]));
  const columns = [
    { title: "Plugin", isHeader: true, className: "wrap", cell: (each) => html`<a href=${to("plugins", vhost, each.name)}>${each.name}</a><div class="soft small-text">${descriptionOf(described[each.name])}</div>` },
    { title: "State", cell: (each) => html`<span class="badges"><${Badge} kind=${STATES[each.state] ?? "warn"}>${each.state}<//>${described[each.name]?.always_enabled && html`<${Badge}>built in<//>`}</span>` },
    { title: "Version", isNumber: true, isExtra: true, cell: (each) => (each.version === undefined ? "–" : count(each.version)) },
    { title: "Faults", isNumber: true, cell: (each) => (each.faults ? html`<span class="bad-text">${count(each.faults)}</span>` : "0") },
    { title: "Mean of a call", isNumber: true, isExtra: true, cell: (each) => (each.times.length ? microseconds(Math.max(...each.times.map((time) => time.mean_us))) : "–") },
    { title: "Longest", isNumber: true, isExtra: true, cell: (each) => (each.times.length ? microseconds(Math.max(...each.times.map((time) => time.longest_us))) : "–") },
  ];
  return html`<${Panel} isPadded=${false}><${Loaded} from=${inVhost}>${(rows) => html`
    <${Table} label="Plugins" rows=${[...rows].sort(byState)} columns=${columns} rowKey=${(each) => each.name} />`}<//><//>`;
}

const byState = (one, other) => Number(one.state === "disabled") - Number(other.state === "disabled") || one.name.localeCompare(other.name);

const descriptionOf = (plugin) => (plugin?.description ?? "").replace(/^[\w-]+: /, "").replaceAll("``", "");

/** Return a duration in microseconds as text. */
export function microseconds(us) {
  return us < 1000 ? `${us.toFixed(1)} µs` : `${(us / 1000).toFixed(1)} ms`;
}
