/** Small parts of pages: panels, figures, names, badges, errors. */
import { html } from "../lib/html.js";
import { to } from "../lib/router.js";
import { value } from "../lib/format.js";

/** A page: its title, what stands beside it, and its panels. `crumbs` are pairs of text and address. */
export function Page({ title, badges, actions, crumbs, children }) {
  return html`<div class="page">
    <div class="page-head">
      ${crumbs && html`<nav class="crumbs" aria-label="Path">${crumbs.map(([text, address]) => html`<span key=${address}><a href=${address}>${text}</a> /</span>`)}</nav>`}
      <h1 id="page-title" tabindex="-1"><bdi>${title}</bdi></h1>
      ${badges}
      ${actions && html`<div class="actions">${actions}</div>`}
    </div>
    ${children}
  </div>`;
}

/** A panel with a title. */
export function Panel({ title, actions, isPadded = true, footer, children }) {
  return html`<section class="panel" aria-label=${title}>
    ${title && html`<header><h2>${title}</h2>${actions && html`<div class="actions">${actions}</div>`}</header>`}
    ${isPadded ? html`<div class="body stack">${children}</div>` : children}
    ${footer && html`<footer>${footer}</footer>`}
  </section>`;
}

/** A panel that is closed at first. */
export function FoldedPanel({ title, isOpen = false, children }) {
  return html`<section class="panel" aria-label=${title}><details open=${isOpen}><summary>${title}</summary><div class="body stack">${children}</div></details></section>`;
}

/** Figures in a row: `[label, text, unit, address]`. */
export function Tiles({ figures }) {
  return html`<dl class="tiles">${figures.filter(Boolean).map(([label, text, unit, address]) => html`<div class="tile" key=${label}>
    <dt>${label}</dt>
    <dd>${address ? html`<a href=${address}>${text}</a>` : text}${unit && html` <small>${unit}</small>`}</dd>
  </div>`)}</dl>`;
}

/** Names with their values: `[name, content]`; pairs without content are left out. */
export function Facts({ facts }) {
  const given = facts.filter((fact) => fact && fact[1] !== undefined && fact[1] !== null && fact[1] !== "" && fact[1] !== false && fact[1].length !== 0);
  return html`<dl class="facts">${given.map(([name, content]) => html`<dt key=${name}>${name}</dt><dd>${content}</dd>`)}</dl>`;
}

/** A name, isolated from the direction of the text around it; the whole name is its tooltip. */
export function Name({ of, empty = "(no name)" }) {
  return html`<bdi class="name" title=${of}>${of || html`<span class="soft">${empty}</span>`}</bdi>`;
}

export const QueueLink = ({ vhost, name }) => html`<a href=${to("queues", vhost, name)}><${Name} of=${name} /></a>`;
export const ExchangeLink = ({ vhost, name }) => html`<a href=${to("exchanges", vhost, name || "amq.default")}><${Name} of=${name} empty="(AMQP default)" /></a>`;
export const Badge = ({ kind = "", title, children }) => html`<span class=${`badge ${kind}`} title=${title}>${children}</span>`;

/** What a queue or an exchange is: its durability and its arguments. */
export function Features({ of }) {
  return html`<span class="badges">
    ${of.durable && html`<${Badge} title="durable: survives a restart">D<//>`}
    ${of.auto_delete && html`<${Badge} title="auto-delete: deleted when it is no longer used">AD<//>`}
    ${of.exclusive && html`<${Badge} title="exclusive to one connection">Excl<//>`}
    ${of.internal && html`<${Badge} title="internal: clients cannot publish to it">I<//>`}
    ${Object.entries(of.arguments ?? {}).filter(([key]) => key !== "x-queue-type").slice(0, 4).map(([key, given]) => html`<${Badge} key=${key} title=${`${key}: ${value(given)}`}>${ABBREVIATIONS[key] ?? key.replace(/^x-/, "")}<//>`)}
    ${of.inert && html`<${Badge} kind="bad" title=${of.inert}>inert<//>`}
  </span>`;
}

const ABBREVIATIONS = {
  "x-message-ttl": "TTL", "x-expires": "Exp", "x-max-length": "Lim", "x-max-length-bytes": "Lim B", "x-overflow": "Ovfl",
  "x-dead-letter-exchange": "DLX", "x-dead-letter-routing-key": "DLK", "x-max-priority": "Pri",
  "x-single-active-consumer": "SAC", "alternate-exchange": "AE", "x-delayed-type": "delayed",
};

/** An error in plain text. A missing permission is no fault, so it is shown calmly. */
export function ErrorNotice({ error }) {
  if (!error) return null;
  const title = error.status === 404 ? "There is no such object." : error.message;
  return html`<div class="notice bad" role="alert">${title}</div>`;
}

/** The content of a request: its error, a placeholder while it loads, or what `children` makes of its data. */
export function Loaded({ from, children }) {
  if (from.data === null) {
    return from.error ? html`<${ErrorNotice} error=${from.error} />` : html`<div class="empty" aria-busy="true">Loading …</div>`;
  }
  return html`${from.error && html`<div class="notice warn stale" role="status">Not updated: ${from.error.message}</div>`}${children(from.data)}`;
}

/** A JSON value in readable form. */
export function Json({ of }) {
  return html`<pre class="code">${typeof of === "string" ? of : JSON.stringify(of, null, 2)}</pre>`;
}
