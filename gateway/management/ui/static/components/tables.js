/** Tables: `PagedTable` shows one page of a listing that the server filters, sorts and pages; `Table` shows given rows. */
import { html, useEffect, useState } from "../lib/html.js";
import { usePolling } from "../lib/polling.js";
import { location_, setQuery } from "../lib/router.js";
import { useStore } from "../lib/store.js";
import { count, plural } from "../lib/format.js";
import { ErrorNotice } from "./basics.js";
import { Choice } from "./forms.js";

/**
 * @typedef {object} Column
 * @property {string} title
 * @property {(row: any) => any} cell
 * @property {string} [sort] field of the API by which the server sorts
 * @property {boolean} [isNumber]
 * @property {boolean} [isExtra] not shown on a phone
 * @property {boolean} [isMinor] not shown on a narrow screen either
 * @property {boolean} [isHeader] the cell names the row
 * @property {string} [className]
 */

const SIZES = ["25", "50", "100", "250", "500"];
const TYPING_MS = 250;

/**
 * A page of a listing. Page, order and filter are part of the address, so the back button and bookmarks keep them.
 * @param {{path: string, noun: string, columns: Column[], rowKey: (row: any) => string, query?: object, tools?: any,
 *   empty?: any, reload?: number}} properties `reload` changes to request the page again
 */
export function PagedTable({ path, noun, columns, rowKey, query = {}, tools, empty, reload = 0 }) {
  const { page = "1", size = "50", name = "", regex, sort, desc } = useStore(location_).query;
  const listing = usePolling(path, { ...query, page, page_size: size, name, use_regex: regex, sort, sort_reverse: desc, pagination: true });
  useEffect(() => { if (reload) listing.refresh(); }, [reload]);
  useEffect(() => { if (listing.error?.error === "page_out_of_range") setQuery({ page: "" }); }, [listing.error]);
  const [last, setLast] = useState(null);
  useEffect(() => { if (listing.data) setLast(listing.data); }, [listing.data]);
  const shown = listing.data ?? last;
  const onSort = (field) => setQuery({ sort: field, desc: sort === field && !desc ? "true" : "", page: "" });

  return html`
    <div class="tools" role="search">
      <${Filter} noun=${noun} name=${name} />
      <label class="check"><input type="checkbox" checked=${regex === "true"} onChange=${(event) => setQuery({ regex: event.target.checked ? "true" : "", page: "" })} />Pattern</label>
      ${tools}
      <span class="count" role="status">${shown && counted(shown, noun)}</span>
    </div>
    ${listing.error && html`<div class="body"><${ErrorNotice} error=${listing.error} /></div>`}
    ${shown === null && !listing.error && html`<div class="empty" aria-busy="true">Loading …</div>`}
    ${shown && html`<${Rows} rows=${shown.items} columns=${columns} rowKey=${rowKey} label=${noun} sort=${sort} isDescending=${Boolean(desc)} onSort=${onSort}
      isBusy=${listing.data === null} empty=${name ? `No ${noun} match the filter.` : empty ?? `There are no ${noun}.`} />`}
    ${shown && html`<footer><${Pager} page=${shown} /></footer>`}`;
}

function counted({ filtered_count: filtered, total_count: total }, noun) {
  const one = noun.replace(/s$/, "");
  return filtered === total ? plural(total, one, noun) : `${count(filtered)} of ${plural(total, one, noun)}`;
}

function Filter({ noun, name }) {
  const [typed, setTyped] = useState(name);
  useEffect(() => setTyped(name), [name]);
  useEffect(() => {
    if (typed === name) return undefined;
    const timer = setTimeout(() => setQuery({ name: typed, page: "" }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return html`<input type="search" data-filter aria-label=${`Filter ${noun} by name`} placeholder="Filter by name" value=${typed} onInput=${(event) => setTyped(event.target.value)} />`;
}

/** The buttons that turn the pages, which are part of the address. */
export function Pager({ page }) {
  const last = Math.max(page.page_count, 1);
  const move = (target) => setQuery({ page: target === 1 ? "" : String(target) });
  return html`
    <label class="check">Rows <${Choice} options=${SIZES} value=${String(page.page_size)} onChange=${(size) => setQuery({ size, page: "" })} /></label>
    <nav class="pager" aria-label="Pages of the list">
      <button class="small" disabled=${page.page <= 1} onClick=${() => move(1)} aria-label="First page">«</button>
      <button class="small" disabled=${page.page <= 1} onClick=${() => move(page.page - 1)} aria-label="Previous page">‹</button>
      <span>${count(page.page)} of ${count(last)}</span>
      <button class="small" disabled=${page.page >= last} onClick=${() => move(page.page + 1)} aria-label="Next page">›</button>
      <button class="small" disabled=${page.page >= last} onClick=${() => move(last)} aria-label="Last page">»</button>
    </nav>`;
}

/** Rows that the page has, at most `limit` of them at first. */
export function Table({ rows, columns, rowKey, label, empty, limit = 200 }) {
  const [shown, setShown] = useState(limit);
  return html`
    <${Rows} rows=${rows.slice(0, shown)} columns=${columns} rowKey=${rowKey} label=${label} empty=${empty} />
    ${rows.length > shown && html`<footer>${plural(rows.length - shown, "more row")} <button class="small" onClick=${() => setShown(shown + limit)}>Show more</button></footer>`}`;
}

function Rows({ rows, columns, rowKey, label, empty = "Nothing here.", sort, isDescending, onSort, isBusy }) {
  if (rows.length === 0) return html`<div class="empty">${empty}</div>`;
  return html`<div class=${`table-scroll ${isBusy ? "busy" : ""}`} tabindex="0" role="group" aria-label=${label}><table>
    <thead><tr>${columns.map((column) => html`<${Head} key=${column.title} column=${column} isSorted=${sort && sort === column.sort} isDescending=${isDescending} onSort=${onSort} />`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${rowKey(row)}>${columns.map((column) => html`<${Cell} key=${column.title} column=${column} row=${row} />`)}</tr>`)}</tbody>
  </table></div>`;
}

function Head({ column, isSorted, isDescending, onSort }) {
  const className = classOf(column);
  const text = column.title.startsWith("(") ? html`<span class="visually-hidden">${column.title.slice(1, -1)}</span>` : column.title;
  if (!column.sort || !onSort) return html`<th scope="col" class=${className}>${text}</th>`;
  const order = isSorted ? (isDescending ? "descending" : "ascending") : "none";
  return html`<th scope="col" class=${className} aria-sort=${order}>
    <button class="sort" data-order=${isSorted ? order : undefined} onClick=${() => onSort(column.sort)}>${text}</button>
  </th>`;
}

function Cell({ column, row }) {
  const content = column.cell(row);
  const className = `${classOf(column)} ${column.isNumber && (content === "0" || content === "–") ? "zero" : ""}`;
  if (column.isHeader) return html`<th scope="row" class=${className}>${content}</th>`;
  return html`<td class=${className}>${content}</td>`;
}

function classOf({ isNumber, isExtra, isMinor, className = "" }) {
  return [isNumber && "number", isExtra && "hide-on-phone", isMinor && "hide-when-narrow", className].filter(Boolean).join(" ");
}
