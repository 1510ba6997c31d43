/** One user: permissions, topic permissions, limits, password and tags, and what the user may do. */
import { html, useState } from "../../lib/html.js";
import { usePolling } from "../../lib/polling.js";
import { path, put, remove } from "../../lib/api.js";
import { session } from "../../lib/session.js";
import { go } from "../../lib/router.js";
import { Badge, Loaded, Page, Panel } from "../../components/basics.js";
import { useTabs } from "../../components/tabs.js";
import { confirm } from "../../components/dialogs.js";
import { Field, Form, useForm } from "../../components/forms.js";
import { Limits, USER_LIMITS } from "../../components/limits.js";
import { act, notify } from "../../components/toasts.js";
import { PermissionCheck } from "./permission-check.js";
import { Permissions, TopicPermissions } from "./permissions.js";
import { TagChoice } from "./users.js";

export function User({ name }) {
  const user = usePolling(path`/users/${name}`, { columns: "name,tags,limits,password_hash,hashing_algorithm" });
  const [tab, tabs] = useTabs(["Permissions", "What may this user do?", "Password and tags", "Limits"], "User");
  return html`<${Page} title=${name} crumbs=${[["Users", "#/users"]]}
    badges=${user.data?.tags.map((tag) => html`<${Badge} key=${tag} kind=${tag === "administrator" ? "warn" : ""}>${tag}<//>`)}
    actions=${user.data && html`<button class="danger" onClick=${() => deleteUser(name)}>Delete</button>`}>
    ${tabs}
    <${Loaded} from=${user}>${(data) => html`
      ${tab === "Permissions" && html`<${Permissions} user=${name} /><${TopicPermissions} user=${name} />`}
      ${tab === "What may this user do?" && html`<${PermissionCheck} user=${name} />`}
      ${tab === "Password and tags" && html`<${Credentials} user=${data} refresh=${user.refresh} />`}
      ${tab === "Limits" && html`<${Limits} path=${path`/user-limits/${name}`} limits=${data.limits ?? {}} names=${USER_LIMITS} refresh=${user.refresh} />`}
    `}<//>
  <//>`;
}

async function deleteUser(name) {
  const text = "Its connections are closed, and its permissions are deleted. This cannot be undone.";
  if (!await confirm({ title: `Delete user '${name}'?`, text, action: "Delete", isDanger: true })) return;
  if (await act(() => remove(path`/users/${name}`), `User '${name}' is deleted.`)) go("#/users");
}

function Credentials({ user, refresh }) {
  const { values, change, field } = useForm({ password: "", again: "" });
  const [tags, setTags] = useState(user.tags);
  const save = async () => {
    if (values.password !== values.again) throw new Error("The two passwords differ.");
    const { password_hash, hashing_algorithm } = user;
    const former = { password_hash, hashing_algorithm, tags: user.tags.join() };
    const credential = values.password ? { password: values.password } : { password_hash, hashing_algorithm };
    await put(path`/users/${user.name}`, { ...credential, tags: tags.join() });
    const undo = async () => {
      await put(path`/users/${user.name}`, former);
      setTags(user.tags);
      refresh();
    };
    notify(`User '${user.name}' is changed. Open sessions of the web UI end.`, user.name === session.get().user.name ? {} : { undo });
    change({ password: "", again: "" });
    refresh();
  };
  return html`<${Panel} title="Password and tags"><${Form} action="Save" onSubmit=${save}>
    <div class="fields">
      <${Field} label="New password" kind="password" autocomplete="new-password" hint="Empty keeps the password" ...${field("password")} />
      <${Field} label="New password again" kind="password" autocomplete="new-password" ...${field("again")} />
      <${TagChoice} tags=${tags} onChange=${setTags} />
    </div>
  <//><//>`;
}
