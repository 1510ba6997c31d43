/** The retained messages of a virtual host as a tree of topic levels. */
import { html, useMemo, useState } from "../../lib/html.js";
import { usePolling } from "../../lib/polling.js";
import { path, remove } from "../../lib/api.js";
import { bytes, count, plural } from "../../lib/format.js";
import { Loaded, Page, Panel } from "../../components/basics.js";
import { OneVhost } from "../../components/one-vhost.js";
import { confirm } from "../../components/dialogs.js";
import { act } from "../../components/toasts.js";

const MOST = 500;

export function Retained() {
  return html`<${Page} title="Retained messages"><${OneVhost}>${(vhost) => html`<${Tree} key=${vhost} vhost=${vhost} />`}<//><//>`;
}

function Tree({ vhost }) {
  const [filter, setFilter] = useState("");
  const listing = usePolling(path`/mqtt/retained/${vhost}`, { page: 1, page_size: MOST, name: filter });
  const removeTopic = async (topic) => {
    if (!await confirm({ title: "Delete a retained message?", text: html`New subscribers no longer get the last message of <b>${topic}</b>. This cannot be undone.`, action: "Delete", isDanger: true })) return;
    await act(() => remove(path`/mqtt/retained/${vhost}/${topic}`), `The retained message of '${topic}' is deleted.`);
    listing.refresh();
  };
  return html`<${Panel} isPadded=${false}>
    <div class="tools" role="search"><input type="search" data-filter aria-label="Filter topics" placeholder="Filter topics" value=${filter} onInput=${(event) => setFilter(event.target.value)} />
      <span class="count" role="status">${listing.data && plural(listing.data.filtered_count, "message")}</span></div>
    <${Loaded} from=${listing}>${(page) => html`<div class="body">
      ${page.items.length === 0 && html`<div class="empty">There are no retained messages${filter ? " with this topic" : ""}.</div>`}
      <${Levels} messages=${page.items} onRemove=${removeTopic} />
      ${page.items.some((message) => !message.may_delete) && html`<p class="soft">You may delete only messages of topics to which you may publish.</p>`}
      ${page.filtered_count > MOST && html`<p class="soft">${count(page.filtered_count - MOST)} more: filter by topic.</p>`}
    </div>`}<//>
  <//>`;
}

function Levels({ messages, onRemove }) {
  const root = useMemo(() => treeOf(messages), [messages]);
  return html`<ul class="tree">${[...root.children.values()].map((node) => html`<${Level} key=${node.level} node=${node} depth=${0} onRemove=${onRemove} />`)}</ul>`;
}

/** Return the levels of topics: each has a name, its children, and the message of the topic that ends there. */
function treeOf(messages) {
  const root = { children: new Map() };
  for (const message of messages) {
    let node = root;
    for (const level of message.topic.split("/")) {
      if (!node.children.has(level)) node.children.set(level, { level, children: new Map(), size: 0 });
      node = node.children.get(level);
      node.size += 1;
    }
    node.message = message;
  }
  return root;
}

function Level({ node, depth, onRemove }) {
  const [isOpen, setIsOpen] = useState(depth < 2);
  const children = [...node.children.values()];
  return html`<li>
    <div class="row">
      ${children.length > 0
        ? html`<button class="quiet small" aria-expanded=${isOpen} onClick=${() => setIsOpen(!isOpen)}>${isOpen ? "▾" : "▸"} <bdi>${node.level || "(empty)"}</bdi> <span class="soft">${count(node.size)}</span></button>`
        : html`<span class="leaf"><bdi>${node.level || "(empty)"}</bdi></span>`}
      ${node.message && html`<span class="soft">${bytes(node.message.payload_bytes)}${node.message.expires_at && `, expires ${node.message.expires_at}`}</span>
        ${node.message.may_delete && html`<button class="quiet small" aria-label=${`Delete ${node.message.topic}`} onClick=${() => onRemove(node.message.topic)}>Delete</button>`}`}
    </div>
    ${isOpen && children.length > 0 && html`<ul>${children.map((child) => html`<${Level} key=${child.level} node=${child} depth=${depth + 1} onRemove=${onRemove} />`)}</ul>`}
  </li>`;
}
