/** The list of users, and the form that adds one. */
import { html, useState } from "../../lib/html.js";
import { find, put, path } from "../../lib/api.js";
import { to } from "../../lib/router.js";
import { value } from "../../lib/format.js";
import { Badge, FoldedPanel, Name, Page, Panel } from "../../components/basics.js";
import { PagedTable } from "../../components/tables.js";
import { Field, Form, useForm } from "../../components/forms.js";
import { notify } from "../../components/toasts.js";

/** The tags that mean something to the broker. */
export const TAGS = ["management", "policymaker", "monitoring", "administrator", "impersonator"];

const COLUMNS = [
  { title: "Name", sort: "name", isHeader: true, cell: (user) => html`<a href=${to("users", user.name)}><${Name} of=${user.name} /></a>` },
  { title: "Tags", cell: (user) => html`<span class="badges">${user.tags.map((tag) => html`<${Badge} key=${tag} kind=${tag === "administrator" ? "warn" : ""}>${tag}<//>`)}</span>` },
  { title: "Password", isExtra: true, cell: (user) => (user.password_hash ? user.hashing_algorithm.replace("rabbit_password_hashing_", "") : "none") },
  { title: "Limits", isExtra: true, cell: (user) => Object.entries(user.limits ?? {}).map(([key, given]) => `${key} ${value(given)}`).join(", ") },
];

export function Users() {
  const [reload, setReload] = useState(0);
  return html`<${Page} title="Users">
    <${Panel} isPadded=${false}><${PagedTable} path="/users" noun="users" columns=${COLUMNS} query=${{ columns: "name,tags,hashing_algorithm,password_hash,limits" }} reload=${reload} rowKey=${(user) => user.name} /><//>
    <${FoldedPanel} title="Add a user"><${NewUser} onDone=${() => setReload(reload + 1)} /><//>
  <//>`;
}

function NewUser({ onDone }) {
  const { values, change, field } = useForm({ name: "", password: "", again: "", tags: [] });
  const add = async () => {
    if (values.password !== values.again) throw new Error("The two passwords differ.");
    if (await find("/users?columns=name", (each) => each.name === values.name)) throw new Error(`There is a user '${values.name}' already.`);
    await put(path`/users/${values.name}`, { password: values.password, tags: values.tags.join() });
    notify(`User '${values.name}' is added. It needs permissions in a virtual host before it can connect.`);
    change({ name: "", password: "", again: "", tags: [] });
    onDone();
  };
  return html`<${Form} action="Add user" onSubmit=${add}>
    <div class="fields">
      <${Field} label="Name" required ...${field("name")} />
      <${Field} label="Password" kind="password" autocomplete="new-password" required ...${field("password")} />
      <${Field} label="Password again" kind="password" autocomplete="new-password" required ...${field("again")} />
      <${TagChoice} tags=${values.tags} onChange=${(tags) => change({ tags })} />
    </div>
  <//>`;
}

/** A check box for each tag. Tags that the broker does not know are kept. */
export function TagChoice({ tags, onChange }) {
  return html`<fieldset class="field wide"><legend class="label">Tags</legend><div class="row">
    ${[...new Set([...TAGS, ...tags])].map((tag) => html`<${Field} key=${tag} kind="check" label=${tag} value=${tags.includes(tag)}
      onChange=${(isOn) => onChange(isOn ? [...tags, tag] : tags.filter((each) => each !== tag))} />`)}
  </div></fieldset>`;
}
