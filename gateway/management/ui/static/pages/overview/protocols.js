/** What each protocol does now: its open connections, and the messages and bytes that pass. */
import { html, useEffect, useRef, useState } from "../../lib/html.js";
import { usePolling } from "../../lib/polling.js";
import { may } from "../../lib/session.js";
import { bytes, count, rate } from "../../lib/format.js";
import { Loaded, Panel } from "../../components/basics.js";
import { Table } from "../../components/tables.js";

const COLUMNS = [
  { title: "Protocol", isHeader: true, cell: (each) => each.protocol },
  { title: "Connections", isNumber: true, cell: (each) => count(each.connections) },
  { title: "Channels", isNumber: true, isExtra: true, cell: (each) => count(each.channels) },
  { title: "Published /s", isNumber: true, cell: (each) => rate(each.publishRate) },
  { title: "Delivered /s", isNumber: true, cell: (each) => rate(each.deliverRate) },
  { title: "From clients /s", isNumber: true, isExtra: true, cell: (each) => bytes(each.recv_rate) },
  { title: "To clients /s", isNumber: true, isExtra: true, cell: (each) => bytes(each.send_rate) },
];

export function Protocols() {
  const protocols = usePolling("/protocols");
  const rows = useRates(protocols.data);
  return html`<${Panel} title="Protocols" isPadded=${false}><${Loaded} from=${protocols}>${() => html`
    <${Table} label="Protocols" rows=${rows} columns=${COLUMNS} rowKey=${(each) => each.protocol} empty=${may("monitoring") ? "No client has connected." : "You have no connections."} />`}<//><//>`;
}

/** Return the rows with their rates: the increase of the totals between the last two answers. */
function useRates(data) {
  const last = useRef(null);
  const [rows, setRows] = useState([]);
  useEffect(() => {
    if (!data) return;
    const at = performance.now() / 1000;
    const before = new Map((last.current?.data ?? []).map((row) => [row.protocol, row]));
    const elapsed = at - (last.current?.at ?? at);
    const perSecond = (row, field) => (before.has(row.protocol) && elapsed > 0 ? Math.max(0, row[field] - before.get(row.protocol)[field]) / elapsed : undefined);
    setRows(data.map((row) => ({ ...row, publishRate: perSecond(row, "published"), deliverRate: perSecond(row, "delivered") })));
    last.current = { at, data };
  }, [data]);
  return rows;
}
