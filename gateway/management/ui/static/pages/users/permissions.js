/** The permissions of a user in each virtual host, and those on topics. */
import { html, useState } from "../../lib/html.js";
import { usePolling } from "../../lib/polling.js";
import { find, path, put, remove } from "../../lib/api.js";
import { Loaded, Panel } from "../../components/basics.js";
import { Field, Form, useForm } from "../../components/forms.js";
import { Table } from "../../components/tables.js";
import { VhostField } from "../../components/vhost-field.js";
import { act, notify } from "../../components/toasts.js";

const pattern = (given) => (given ? html`<code>${given}</code>` : html`<span class="soft">nothing</span>`);

export function Permissions({ user }) {
  const list = usePolling(path`/users/${user}/permissions`);
  const [edited, setEdited] = useState(null);
  const columns = [
    { title: "Virtual host", isHeader: true, cell: (each) => html`<bdi>${each.vhost}</bdi>` },
    { title: "Configure", cell: (each) => pattern(each.configure) },
    { title: "Write", cell: (each) => pattern(each.write) },
    { title: "Read", cell: (each) => pattern(each.read) },
    { title: "(Actions)", className: "actions-cell", cell: (each) => html`<button class="small quiet" onClick=${() => setEdited(each)}>Edit</button>
      <button class="small quiet" onClick=${() => removePermission(each, list.refresh)}>Remove</button>` },
  ];
  return html`<${Panel} title="Permissions" isPadded=${false}>
    <${Loaded} from=${list}>${(rows) => html`<${Table} label="Permissions" rows=${rows} columns=${columns} rowKey=${(each) => each.vhost} empty="This user may not enter any virtual host." />`}<//>
    <div class="body"><${PermissionForm} key=${edited?.vhost} user=${user} given=${edited} onDone=${() => { setEdited(null); list.refresh(); }} /></div>
  <//>`;
}

function PermissionForm({ user, given, onDone }) {
  const { values, field } = useForm(given ?? { vhost: "", configure: ".*", write: ".*", read: ".*" });
  const set = async () => {
    const { vhost, configure, write, read } = values;
    const target = path`/permissions/${vhost}/${user}`;
    const before = await find(path`/users/${user}/permissions`, (each) => each.vhost === vhost);
    await put(target, { configure, write, read });
    const undo = async () => {
      await (before ? put(target, before) : remove(target));
      onDone();
    };
    notify(`The permissions of '${user}' in '${vhost}' are set.`, { undo });
    onDone();
  };
  return html`<${Form} action="Set permissions" onSubmit=${set}>
    <div class="fields">
      <${VhostField} ...${field("vhost")} />
      <${Field} label="Configure" hint="Patterns of names; empty is nothing" ...${field("configure")} />
      <${Field} label="Write" ...${field("write")} />
      <${Field} label="Read" ...${field("read")} />
    </div>
  <//>`;
}

async function removePermission({ user, vhost, configure, write, read }, refresh) {
  const target = path`/permissions/${vhost}/${user}`;
  const undo = async () => {
    await put(target, { configure, write, read });
    refresh();
  };
  await act(() => remove(target), `'${user}' may no longer enter '${vhost}'.`, { undo });
  refresh();
}

export function TopicPermissions({ user }) {
  const list = usePolling(path`/users/${user}/topic-permissions`);
  const { values, field } = useForm({ vhost: "", exchange: "amq.topic", write: ".*", read: ".*" });
  const set = async () => {
    const { vhost, exchange, write, read } = values;
    const target = path`/topic-permissions/${vhost}/${user}`;
    const before = list.data?.find((each) => each.vhost === vhost && each.exchange === exchange);
    await put(target, { exchange, write, read });
    const undo = async () => {
      await (before ? put(target, before) : remove(`${target}${path`/${exchange}`}`));
      list.refresh();
    };
    notify(`The topic permissions of '${user}' for '${exchange}' are set.`, { undo });
    list.refresh();
  };
  const columns = [
    { title: "Virtual host", isHeader: true, cell: (each) => html`<bdi>${each.vhost}</bdi>` },
    { title: "Exchange", cell: (each) => html`<bdi>${each.exchange}</bdi>` },
    { title: "Write keys", cell: (each) => pattern(each.write) },
    { title: "Read keys", cell: (each) => pattern(each.read) },
    { title: "(Actions)", className: "actions-cell", cell: (each) => html`<button class="small quiet" onClick=${() => removeTopicPermission(each, list.refresh)}>Remove</button>` },
  ];
  return html`<${Panel} title="Topic permissions" isPadded=${false}>
    <${Loaded} from=${list}>${(rows) => html`<${Table} label="Topic permissions" rows=${rows} columns=${columns} rowKey=${(each) => `${each.vhost}\n${each.exchange}`} empty="All routing keys are allowed." />`}<//>
    <div class="body"><${Form} action="Set topic permissions" onSubmit=${set}><div class="fields">
      <${VhostField} ...${field("vhost")} />
      <${Field} label="Exchange" required ...${field("exchange")} />
      <${Field} label="Write keys" hint="May contain {username}, {vhost}, {client_id}" ...${field("write")} />
      <${Field} label="Read keys" ...${field("read")} />
    </div><//></div>
  <//>`;
}

async function removeTopicPermission({ user, vhost, exchange, write, read }, refresh) {
  const undo = async () => {
    await put(path`/topic-permissions/${vhost}/${user}`, { exchange, write, read });
    refresh();
  };
  await act(() => remove(path`/topic-permissions/${vhost}/${user}/${exchange}`), `'${user}' may use all routing keys of '${exchange}'.`, { undo });
  refresh();
}
