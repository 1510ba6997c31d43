/** The message workbench of a queue: find messages without a trace, and move, copy, edit, delete or requeue them. */
import { html, useState } from "../../lib/html.js";
import { path, post } from "../../lib/api.js";
import { count, plural } from "../../lib/format.js";
import { Badge, Panel } from "../../components/basics.js";
import { Field, Form, useForm } from "../../components/forms.js";
import { Message } from "../../components/messages.js";
import { act } from "../../components/toasts.js";
import { MessageAction } from "./message-action.js";
import { Undoable } from "./undoable.js";

const STATES = [["", "any"], ["ready", "ready"], ["unacknowledged", "unacknowledged"], ["delayed", "delayed"]];
const FOUND = 50;

/** Return the filter of the API for the fields of the form. */
function filterOf({ state, key, header, header_value: text, message_id: id, body }) {
  return {
    ...(state ? { states: [state] } : {}), ...(key ? { key: { contains: key } } : {}), ...(body ? { body: { contains: body } } : {}),
    ...(header ? { headers: { [header]: text ? { contains: text } : null } } : {}), ...(id ? { properties: { message_id: { contains: id } } } : {}),
  };
}

export function QueueWorkbench(properties) {
  if (!properties.isPermitted("read")) return html`<div class="notice">You lack the permission to read this queue.</div>`;
  return html`<${Workbench} ...${properties} />`;
}

function Workbench({ queue, refresh }) {
  const { vhost, name } = queue;
  const target = path`/workbench/${vhost}/${name}`;
  const { values, field } = useForm({ state: "", key: "", header: "", header_value: "", message_id: "", body: "" });
  const [found, setFound] = useState(null);
  const [chosen, setChosen] = useState([]);
  const [version, setVersion] = useState(0);
  const search = async (cursor = null) => {
    const answer = await post(`${target}/search`, { filter: filterOf(values), limit: FOUND, truncate: 4096, cursor });
    setFound((before) => ({ ...answer, messages: cursor ? [...before.messages, ...answer.messages] : answer.messages, filter: filterOf(values) }));
    if (!cursor) setChosen([]);
  };
  const done = () => {
    setVersion(version + 1);
    refresh();
    act(() => search());
  };
  return html`
    <${Panel} title="Find messages"><${Form} action="Find messages" onSubmit=${() => search()}>
      <p class="soft">A search leaves no trace: messages keep their order, and are not marked as redelivered.</p>
      <div class="fields">
        <${Field} label="State" kind="select" options=${STATES} ...${field("state")} />
        <${Field} label="Routing key contains" ...${field("key")} />
        <${Field} label="Header" ...${field("header")} />
        <${Field} label="Header contains" ...${field("header_value")} />
        <${Field} label="Message id contains" ...${field("message_id")} />
        <${Field} label="Body contains" ...${field("body")} />
      </div>
    <//><//>
    ${found && html`<${Found} vhost=${vhost} found=${found} chosen=${chosen} setChosen=${setChosen} onMore=${() => act(() => search(found.cursor))} />`}
    ${found && html`<${MessageAction} key=${version} queue=${queue} target=${target} filter=${found.filter} ids=${chosen} onDone=${done} />`}
    <${Undoable} key=${`undo ${version}`} vhost=${vhost} name=${name} onDone=${done} />`;
}

function Found({ vhost, found, chosen, setChosen, onMore }) {
  const toggle = (id) => setChosen(chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id]);
  return html`<${Panel} title="Found messages" isPadded=${false} actions=${html`<span class="soft" role="status">${plural(found.messages.length, "message")}, ${count(found.examined)} examined</span>`}
    footer=${found.cursor && html`<button class="small" onClick=${onMore}>Find more</button>`}>
    ${found.messages.length === 0 && html`<div class="empty">No message matches.</div>`}
    ${found.messages.map((message) => html`<${Message} key=${`${message.state} ${message.id}`} message=${message} vhost=${vhost} actions=${html`
      <${Badge} kind=${message.state === "ready" ? "accent" : "warn"}>${message.state}<//><span class="soft">${message.enqueued_at ?? message.due_at ?? ""}</span>
      <label class="check small-text"><input type="checkbox" checked=${chosen.includes(message.id)} onChange=${() => toggle(message.id)} />Choose</label>`} />`)}
  <//>`;
}
