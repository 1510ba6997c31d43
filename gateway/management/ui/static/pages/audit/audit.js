/** The audit record: who changed what, from where, over which surface, before and after. */
import { html, useState } from "../../lib/html.js";
import { useStore } from "../../lib/store.js";
import { usePolling } from "../../lib/polling.js";
import { location_, setQuery } from "../../lib/router.js";
import { plural, time, value } from "../../lib/format.js";
import { Badge, ErrorNotice, Page, Panel } from "../../components/basics.js";
import { Field } from "../../components/forms.js";
import { Pager } from "../../components/tables.js";

/** The filters; a final `*` matches any rest. */
const FILTERS = [["user", "User"], ["action", "Action"], ["subject", "Object"], ["vhost", "Virtual host"], ["surface", "Surface"], ["address", "Address"]];
const HINTS = { action: "Such as queue.*" };

export function Audit() {
  const { page = "1", size = "50", ...query } = useStore(location_).query;
  const filters = Object.fromEntries(FILTERS.map(([name]) => [name, query[name]]));
  const entries = usePolling("/audit", { page, page_size: size, ...filters });
  return html`<${Page} title="Audit record">
    <${Panel} title="Find changes"><div class="fields">${FILTERS.map(([name, label]) => html`<${Field} key=${name} label=${label} hint=${HINTS[name]} value=${query[name] ?? ""}
      onChange=${(text) => setQuery({ [name]: text, page: "" })} />`)}</div><//>
    <${Panel} title="Changes" isPadded=${false} actions=${entries.data && html`<span class="soft" role="status">${plural(entries.data.filtered_count, "change")}</span>`}
      footer=${entries.data && html`<${Pager} page=${entries.data} />`}>
      ${entries.error && html`<div class="body"><${ErrorNotice} error=${entries.error} /></div>`}
      ${entries.data?.items.length === 0 && html`<div class="empty">No change matches.</div>`}
      ${entries.data && html`<ul>${entries.data.items.map((entry) => html`<${Entry} key=${entry.number} entry=${entry} />`)}</ul>`}
    <//>
  <//>`;
}

const KINDS = { created: "good", deleted: "bad", purged: "bad", closed: "warn" };

function Entry({ entry }) {
  const [isOpen, setIsOpen] = useState(false);
  const verb = entry.action.split(".").pop();
  return html`<li class="audit-entry">
    <button class="quiet small" aria-expanded=${isOpen} aria-label=${`Details of change ${entry.number}`} onClick=${() => setIsOpen(!isOpen)}>${isOpen ? "▾" : "▸"}</button>
    <time class="number soft" datetime=${entry.at}>${time(entry.at_ms)}</time>
    <span><b><bdi>${entry.user || "(nobody)"}</bdi></b> <span class="soft">${entry.surface}${entry.address && ` from ${entry.address}`}</span></span>
    <${Badge} kind=${KINDS[verb] ?? ""}>${entry.action.replaceAll("_", " ")}<//>
    <span class="what"><bdi>${entry.subject}</bdi>${entry.vhost && html` <span class="soft">in <bdi>${entry.vhost}</bdi></span>`}</span>
    ${isOpen && html`<div class="details"><${Changes} entry=${entry} /></div>`}
  </li>`;
}

/** The fields that differ; without states, the details. */
function Changes({ entry: { before, after, details } }) {
  const fields = [...new Set([...Object.keys(asObject(before)), ...Object.keys(asObject(after))])];
  const changed = fields.filter((field) => JSON.stringify(asObject(before)[field]) !== JSON.stringify(asObject(after)[field]));
  return html`
    ${changed.length > 0 && html`<div class="table-scroll" tabindex="0" role="group" aria-label="Changed fields"><table>
      <thead><tr><th scope="col">Field</th><th scope="col">Before</th><th scope="col">After</th></tr></thead>
      <tbody>${changed.map((field) => html`<tr key=${field}><th scope="row"><code>${field}</code></th><td class="wrap">${shown(asObject(before)[field])}</td><td class="wrap">${shown(asObject(after)[field])}</td></tr>`)}</tbody>
    </table></div>`}
    ${Object.keys(details ?? {}).length > 0 && html`<pre class="code" tabindex="0">${JSON.stringify(details, null, 2)}</pre>`}
    ${changed.length === 0 && Object.keys(details ?? {}).length === 0 && html`<span class="soft">No further details.</span>`}`;
}

const asObject = (state) => (typeof state === "object" && state !== null && !Array.isArray(state) ? state : state === null || state === undefined ? {} : { value: state });
const shown = (given) => (given === undefined ? html`<span class="soft">–</span>` : value(given));
