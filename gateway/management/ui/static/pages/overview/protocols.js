/** What each protocol does now: its open connections, and the bytes that they send and receive. */
import { html } from "../../lib/html.js";
import { usePolling } from "../../lib/polling.js";
import { bytes, count } from "../../lib/format.js";
import { Loaded, Panel } from "../../components/basics.js";
import { Table } from "../../components/tables.js";

const COLUMNS = [
  { title: "Protocol", isHeader: true, cell: (each) => each.protocol },
  { title: "Connections", isNumber: true, cell: (each) => count(each.connections) },
  { title: "Channels", isNumber: true, isExtra: true, cell: (each) => count(each.channels) },
  { title: "From clients /s", isNumber: true, cell: (each) => bytes(each.recv_rate) },
  { title: "To clients /s", isNumber: true, cell: (each) => bytes(each.send_rate) },
];

export function Protocols() {
  const protocols = usePolling("/protocols");
  return html`<${Panel} title="Protocols" isPadded=${false}><${Loaded} from=${protocols}>${(rows) => html`
    <${Table} label="Protocols" rows=${rows} columns=${COLUMNS} rowKey=${(each) => each.protocol} empty="No client is connected." />`}<//><//>`;
}
