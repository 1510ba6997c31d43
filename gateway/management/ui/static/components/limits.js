/** The limits of a user or a virtual host. */
import { html } from "../lib/html.js";
import { put, remove } from "../lib/api.js";
import { Panel } from "./basics.js";
import { Field, Form, useForm } from "./forms.js";
import { notify } from "./toasts.js";

export const USER_LIMITS = ["max-connections", "max-channels", "max-queues", "max-bindings", "max-consumers"];
export const VHOST_LIMITS = ["max-connections", "max-queues", "max-bindings", "max-consumers"];

/** @param {{path: string, limits: object, names: string[], refresh: () => void}} properties an empty field is no limit */
export function Limits({ path, limits, names, refresh }) {
  const { values, field } = useForm(Object.fromEntries(names.map((name) => [name, name in limits ? String(limits[name]) : ""])));
  const change = async (from, to) => {
    for (const name of names) {
      if (to[name] === from[name]) continue;
      if (to[name] === "") await remove(`${path}/${name}`);
      else await put(`${path}/${name}`, { value: Number(to[name]) });
    }
    refresh();
  };
  const save = async () => {
    const before = Object.fromEntries(names.map((name) => [name, name in limits ? String(limits[name]) : ""]));
    await change(before, values);
    notify("The limits are set.", { undo: () => change(values, before) });
  };
  return html`<${Panel} title="Limits"><${Form} action="Set limits" onSubmit=${save}>
    <div class="fields">${names.map((name) => html`<${Field} key=${name} label=${name} kind="number" min="0" placeholder="no limit" ...${field(name)} />`)}</div>
  <//><//>`;
}
