/** The navigation: the pages that the user's tags open, by group. */
import { html } from "../lib/html.js";
import { to } from "../lib/router.js";
import { visiblePages } from "../pages/index.js";

export function Navigation({ current, isOpen, onLeave }) {
  const groups = Map.groupBy ? Map.groupBy(visiblePages(), (page) => page.group) : grouped(visiblePages());
  return html`
    <nav id="navigation" class=${`nav ${isOpen ? "open" : ""}`} aria-label="Main" onClick=${(event) => event.target.closest("a") && onLeave()}>
      ${[...groups].map(([group, pages]) => html`<div key=${group}><h2>${group}</h2>
        <ul>${pages.map((page) => html`<li key=${page.pattern}><a href=${to(...page.pattern.split("/").filter(Boolean))} aria-current=${current === page.pattern ? "page" : undefined}>${page.title}</a></li>`)}</ul>
      </div>`)}
    </nav>
    <div class=${`scrim ${isOpen ? "open" : ""}`} onClick=${onLeave}></div>`;
}

function grouped(pages) {
  const groups = new Map();
  for (const page of pages) groups.set(page.group, [...(groups.get(page.group) ?? []), page]);
  return groups;
}
