/** The latest runs of pipeline jobs, with their reports. */
import { html, useState } from "../../lib/html.js";
import { usePolling } from "../../lib/polling.js";
import { path } from "../../lib/api.js";
import { bytes, duration, time, value } from "../../lib/format.js";
import { Badge, Facts, Loaded, Name, Panel } from "../../components/basics.js";
import { Dialog } from "../../components/dialogs.js";
import { Table } from "../../components/tables.js";

const SLOWLY_MS = 30_000;

export function Runs() {
  const runs = usePolling("/pipeline-runs", {}, { interval: SLOWLY_MS });
  const [shown, setShown] = useState(null);
  return html`<${Panel} title="Runs of jobs" isPadded=${false}><${Loaded} from=${runs}>${(rows) => html`
    <${Table} label="Runs of jobs" rows=${[...rows].sort(latestFirst)} columns=${columns(setShown)} rowKey=${(each) => each.name}
      empty="No job has written results. Jobs of 'gateway pipeline run' write to the directory of the setting pipeline.results_dir." />`}<//><//>
    ${shown && html`<${Details} of=${shown} onClose=${() => setShown(null)} />`}`;
}

const latestFirst = (one, other) => (other.finished ?? "").localeCompare(one.finished ?? "") || one.name.localeCompare(other.name);

const columns = (show) => [
  { title: "Run", isHeader: true, cell: (each) => html`<${Name} of=${each.name} />` },
  { title: "Ended", cell: (each) => (each.finished ? time(Date.parse(each.finished)) : "–") },
  { title: "Took", isNumber: true, isExtra: true, cell: (each) => duration(Date.parse(each.finished) - Date.parse(each.started)) },
  { title: "Result", className: "wrap", isExtra: true, cell: (each) => (each.error ? html`<span class="bad-text">${each.error}</span>` : html`${figuresOf(each)} ${each.warnings?.length > 0 && html`<${Badge} kind="warn">${each.warnings.length === 1 ? "1 warning" : `${each.warnings.length} warnings`}<//>`}`) },
  { title: "(Actions)", className: "actions-cell", cell: (each) => html`
    <button class="small" aria-label=${`Details of ${each.name}`} onClick=${() => show(each)}>Details</button>
    ${each.report_bytes !== null && html`<a class="button small" href=${reportOf(each)} target="_blank" rel="noopener" aria-label=${`Report of ${each.name}`}>Report</a>
      <a class="button small hide-on-phone" href=${reportOf(each)} download=${`${each.name.replaceAll("/", "-")}.html`} aria-label=${`Download the report of ${each.name}`}>Download</a>`}` },
];

/** The address of a report, which the broker sends with a policy that runs no script and has no origin. */
const reportOf = (run) => `/api${path`/pipeline-runs/${run.name}/report`}`;
const figuresOf = (run) => Object.entries(run.figures ?? {}).map(([name, figure]) => `${name} ${value(figure)}`).join(", ");
const pairsOf = (object = {}) => Object.entries(object).map(([name, given]) => [name, value(given)]);

function Details({ of, onClose }) {
  return html`<${Dialog} isWide onClose=${onClose}><div>
    <h2 id="dialog-title"><bdi>${of.name}</bdi></h2>
    ${of.error && html`<div class="notice bad">${of.error}</div>`}
    ${(of.warnings ?? []).map((warning) => html`<div key=${warning} class="notice warn">${warning}</div>`)}
    <${Facts} facts=${[["Job", of.job], ["Started", of.started], ["Ended", of.finished], ["Report", of.report_bytes === null ? "none" : bytes(of.report_bytes)]]} />
    <h3>Result</h3><${Facts} facts=${pairsOf(of.figures)} />
    <h3>Options</h3><${Facts} facts=${pairsOf(of.options)} />
    <div class="buttons"><button onClick=${onClose}>Close</button></div>
  </div><//>`;
}
