/** The list of channels. */
import { html } from "../../lib/html.js";
import { useStore } from "../../lib/store.js";
import { selectedVhost } from "../../lib/vhosts.js";
import { path } from "../../lib/api.js";
import { Page, Panel } from "../../components/basics.js";
import { PluginPanels } from "../../components/panels.js";
import { PagedTable } from "../../components/tables.js";
import { CHANNEL_COLUMNS } from "./channel-columns.js";

export function Channels() {
  const vhost = useStore(selectedVhost);
  return html`<${Page} title="Channels"><${Panel} isPadded=${false}>
    <${PagedTable} path=${vhost === "" ? "/channels" : path`/vhosts/${vhost}/channels`} noun="channels" columns=${CHANNEL_COLUMNS} rowKey=${(each) => each.name} /><//>
    <${PluginPanels} page="channels" />
  <//>`;
}
