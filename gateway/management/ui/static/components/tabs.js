/** Tabs of a page. The selected tab is part of the address. */
import { html } from "../lib/html.js";
import { location_, to, toQuery } from "../lib/router.js";
import { useStore } from "../lib/store.js";

/** Return the selected tab of `names`, and the bar that selects one. */
export function useTabs(names, label) {
  const { segments, query } = useStore(location_);
  const selected = names.includes(query.tab) ? query.tab : names[0];
  const bar = html`<nav class="tabs" aria-label=${label}>${names.map((name) => html`<a key=${name}
    href=${toQuery(to(...segments), { tab: name === names[0] ? "" : name })} aria-current=${name === selected ? "page" : undefined}>${name}</a>`)}</nav>`;
  return [selected, bar];
}
