/** The resources of the node: memory, disk, files, and the event loop. */
import { html } from "../../lib/html.js";
import { usePolling } from "../../lib/polling.js";
import { path } from "../../lib/api.js";
import { bytes, count, duration } from "../../lib/format.js";
import { Loaded, Panel } from "../../components/basics.js";

export function Node({ name }) {
  const node = usePolling(path`/nodes/${name}`);
  return html`<${Panel} title="Node"><${Loaded} from=${node}>${(data) => html`<${Resources} of=${data} />`}<//><//>`;
}

function Resources({ of }) {
  return html`<dl class="gauges">
    <${Gauge} label="Memory" used=${of.mem_used} limit=${of.mem_limit} format=${bytes} />
    <${Gauge} label="Disk" used=${of.disk_free} limit=${of.disk_free_limit} format=${bytes} isFloor />
    <${Gauge} label="File descriptors" used=${of.fd_used} limit=${of.fd_total} format=${count} />
    <${Gauge} label="Sockets" used=${of.sockets_used} limit=${of.sockets_total} format=${count} />
    <div><dt>Uptime</dt><dd>${duration(of.uptime)}</dd></div>
    <${LongestTurn} turns=${of.turns} />
  </dl>`;
}

/** A gauge against a limit; with `isFloor` the limit is the least that may be left. */
function Gauge({ label, used, limit, format, isFloor }) {
  const share = isFloor ? limit / Math.max(used, 1) : used / Math.max(limit, 1);
  return html`<div><dt>${label}</dt>
    <dd><span>${format(used)} <span class="soft">${isFloor ? "free, limit" : "of"} ${format(limit)}</span></span>
      <meter class="bar" aria-label=${label} min="0" max="1" low="0.7" high="0.9" optimum="0" value=${Math.min(share, 1)}></meter></dd>
  </div>`;
}

function LongestTurn({ turns }) {
  const longest = turns?.longest_ms ?? turns?.max_ms;
  return longest === undefined ? null : html`<div><dt>Longest turn</dt><dd>${duration(longest)}</dd></div>`;
}
