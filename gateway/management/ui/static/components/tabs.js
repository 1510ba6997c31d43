/** Tabs of a page. The selected tab is part of the address. */
import { html, useEffect, useRef } from "../lib/html.js";
import { location_, to, toQuery } from "../lib/router.js";
import { useStore } from "../lib/store.js";

/** Return the selected tab of `names`, and the bar that selects one. */
export function useTabs(names, label) {
  const { segments, query } = useStore(location_);
  const selected = names.includes(query.tab) ? query.tab : names[0];
  const nav = useRef(null);
  useEffect(() => scrollToSelected(nav.current), [selected]);
  const bar = html`<nav class="tabs" ref=${nav} aria-label=${label}>${names.map((name) => html`<a key=${name}
    href=${toQuery(to(...segments), { tab: name === names[0] ? "" : name })} aria-current=${name === selected ? "page" : undefined}>${name}</a>`)}</nav>`;
  return [selected, bar];
}

/** Scroll a bar that is wider than a phone so far that the selected tab is whole. */
function scrollToSelected(nav) {
  const tab = nav?.querySelector("[aria-current]");
  if (!tab) return;
  const beyond = tab.getBoundingClientRect().right - nav.getBoundingClientRect().right;
  if (beyond > 0) nav.scrollLeft += Math.ceil(beyond);
}
