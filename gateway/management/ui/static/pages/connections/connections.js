/** The list of connections of all protocols. */
import { html } from "../../lib/html.js";
import { useStore } from "../../lib/store.js";
import { selectedVhost } from "../../lib/vhosts.js";
import { path } from "../../lib/api.js";
import { bytes, count } from "../../lib/format.js";
import { Badge, Page, Panel } from "../../components/basics.js";
import { ConnectionLink } from "../../components/client-links.js";
import { PluginPanels } from "../../components/panels.js";
import { PagedTable } from "../../components/tables.js";

/** How a state is shown: calm if it is normal. */
export const STATE_KINDS = { running: "good", flow: "warn", blocking: "warn", blocked: "bad", closing: "warn" };

const COLUMNS = [
  { title: "Name", sort: "name", isHeader: true, cell: (each) => html`<${ConnectionLink} name=${each.name} />${each.user_provided_name && html`<div class="soft small-text"><bdi>${each.user_provided_name}</bdi></div>`}` },
  { title: "User", sort: "user", cell: (each) => html`<bdi>${each.user}</bdi>` },
  { title: "Virtual host", sort: "vhost", isExtra: true, cell: (each) => html`<bdi>${each.vhost}</bdi>` },
  { title: "State", sort: "state", cell: (each) => html`<${Badge} kind=${STATE_KINDS[each.state] ?? ""}>${each.state}<//>` },
  { title: "TLS", sort: "ssl", isExtra: true, cell: (each) => (each.ssl ? html`<${Badge} kind="good">TLS<//>` : "") },
  { title: "Protocol", sort: "protocol", isExtra: true, cell: (each) => each.protocol },
  { title: "Channels", sort: "channels", isNumber: true, isExtra: true, cell: (each) => count(each.channels) },
  { title: "From client /s", sort: "recv_oct_details.rate", isNumber: true, isExtra: true, cell: (each) => bytes(each.recv_oct_details?.rate) },
  { title: "To client /s", sort: "send_oct_details.rate", isNumber: true, isExtra: true, cell: (each) => bytes(each.send_oct_details?.rate) },
];

const FIELDS = "name,user_provided_name,user,vhost,state,ssl,protocol,channels,recv_oct_details,send_oct_details";

export function Connections() {
  const vhost = useStore(selectedVhost);
  return html`<${Page} title="Connections"><${Panel} isPadded=${false}>
    <${PagedTable} path=${vhost === "" ? "/connections" : path`/vhosts/${vhost}/connections`} noun="connections" columns=${COLUMNS} query=${{ columns: FIELDS }} rowKey=${(each) => each.name} /><//>
    <${PluginPanels} page="connections" />
  <//>`;
}
