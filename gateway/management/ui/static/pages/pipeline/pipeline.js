/** Archives, and the queries and jobs that read streams and archives. */
import { html } from "../../lib/html.js";
import { useStore } from "../../lib/store.js";
import { usePolling } from "../../lib/polling.js";
import { path } from "../../lib/api.js";
import { useEnters } from "../../lib/permitted.js";
import { may } from "../../lib/session.js";
import { listingPath, selectedVhost } from "../../lib/vhosts.js";
import { bytes, count, duration, plural } from "../../lib/format.js";
import { Badge, Loaded, Name, Page, Panel } from "../../components/basics.js";
import { OneVhost } from "../../components/one-vhost.js";
import { PagedTable, Table } from "../../components/tables.js";
import { Runs } from "./runs.js";

const STATES = { running: "good", full: "bad", failing: "bad", retiring: "warn" };

const ARCHIVE_COLUMNS = [
  { title: "Archive of", sort: "name", isHeader: true, cell: (each) => html`<span class="soft">${each.source}</span> <${Name} of=${each.name} />` },
  { title: "Virtual host", sort: "vhost", isExtra: true, cell: (each) => html`<bdi>${each.vhost}</bdi>` },
  { title: "State", sort: "state", cell: (each) => html`<${Badge} kind=${STATES[each.state] ?? ""} title=${[each.failure, ...each.held_back].filter(Boolean).join(", ")}>${each.state}<//>${each.held_back.length > 0 && html` <span class="bad-text">${plural(each.held_back.length, "publisher")} held back</span>`}` },
  { title: "Waiting", sort: "messages", isNumber: true, cell: (each) => count(each.messages) },
  { title: "Size", sort: "message_bytes", isNumber: true, isExtra: true, cell: (each) => bytes(each.message_bytes) },
  { title: "Filed to", sort: "filed_offset", isNumber: true, isExtra: true, cell: (each) => count(each.filed_offset) },
  { title: "Behind", sort: "lag_ms", isNumber: true, cell: (each) => duration(each.lag_ms) },
  { title: "Dropped", sort: "dropped", isNumber: true, isExtra: true, cell: (each) => count(each.dropped) },
];

export function Pipeline() {
  const vhost = useStore(selectedVhost);
  return html`<${Page} title="Archives and pipeline">
    <${Panel} title="Archives" isPadded=${false}><${PagedTable} path=${listingPath("archives", vhost)} noun="archives" columns=${ARCHIVE_COLUMNS} rowKey=${(each) => `${each.vhost}\n${each.source}\n${each.name}`}
      empty="Nothing is archived. A policy with the key archive writes the messages of exchanges and queues to Parquet files." /><//>
    ${may("administrator") && html`<${Runs} />`}
    <${OneVhost}>${(one) => html`<${Progress} key=${one} vhost=${one} />`}<//>
  <//>`;
}

/** What the queries of Spark report: the offsets that they have processed. */
function Progress({ vhost }) {
  const enters = useEnters(vhost);
  const progress = usePolling(enters ? path`/pipeline/${vhost}/progress` : null);
  const streams = usePolling(enters ? path`/pipeline/${vhost}/streams` : null);
  if (enters === false) return html`<div class="notice">You have no permissions in this virtual host, so you see no queries and streams in it.</div>`;
  return html`
    <${Panel} title="Queries and jobs" isPadded=${false}><${Loaded} from=${progress}>${(rows) => html`
      <${Table} label="Queries and jobs" rows=${rows} columns=${PROGRESS_COLUMNS} rowKey=${(each) => `${each.user}\n${each.consumer}`} empty="No query has reported its progress." />`}<//><//>
    <${Panel} title="Streams that they can read" isPadded=${false}><${Loaded} from=${streams}>${({ queues }) => html`
      <${Table} label="Streams that they can read" rows=${queues} columns=${STREAM_COLUMNS} rowKey=${(each) => each.queue} empty="You may read no stream here." />`}<//><//>`;
}

const PROGRESS_COLUMNS = [
  { title: "Consumer", isHeader: true, cell: (each) => html`<${Name} of=${each.consumer} />` },
  { title: "User", isExtra: true, cell: (each) => html`<bdi>${each.user ?? ""}</bdi>` },
  { title: "Offsets", className: "wrap", cell: (each) => Object.entries(each.offsets ?? {}).map(([queue, partitions]) => html`<div key=${queue}><bdi>${queue}</bdi> <span class="soft">${Object.values(partitions).map(count).join(", ")}</span></div>`) },
  { title: "Behind", isNumber: true, cell: (each) => count(total(each.lag)) },
];

const STREAM_COLUMNS = [
  { title: "Stream", isHeader: true, cell: (each) => html`<${Name} of=${each.queue} />` },
  { title: "Partitions", isNumber: true, cell: (each) => count(Object.keys(each.partitions).length) },
  { title: "Messages", isNumber: true, cell: (each) => count(Object.values(each.partitions).reduce((sum, part) => sum + part.next - part.first, 0)) },
  { title: "Size", isNumber: true, cell: (each) => bytes(Object.values(each.partitions).reduce((sum, part) => sum + part.bytes, 0)) },
];

/** Return the sum of a lag: a number, or numbers by queue and partition. */
function total(lag) {
  if (typeof lag === "number") return lag;
  return Object.values(lag ?? {}).reduce((sum, each) => sum + total(each), 0);
}
