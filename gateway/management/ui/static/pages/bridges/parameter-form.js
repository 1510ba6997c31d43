/** The form that sets a parameter of a bridge. */
import { html } from "../../lib/html.js";
import { find, path, put, remove } from "../../lib/api.js";
import { Panel } from "../../components/basics.js";
import { Field, Form, useForm } from "../../components/forms.js";
import { VhostField } from "../../components/vhost-field.js";
import { notify } from "../../components/toasts.js";
import { COMPONENTS } from "./bridges.js";

const EXAMPLES = {
  shovel: { "src-uri": "amqp://", "src-queue": "source", "dest-uri": "amqp://user:password@broker.example.org/%2F", "dest-queue": "target" },
  "federation-upstream": { uri: "amqp://user:password@broker.example.org/%2F" },
  "federation-upstream-set": [{ upstream: "name" }],
};

export function ParameterForm({ parameter, vhost, onDone }) {
  const { values, change, field } = useForm({
    component: parameter?.component ?? "shovel", vhost: parameter?.vhost ?? vhost, name: parameter?.name ?? "", text: JSON.stringify(parameter?.value ?? EXAMPLES.shovel, null, 2),
  });
  const chosen = (component) => change(parameter || !EXAMPLES[component] ? { component } : { component, text: JSON.stringify(EXAMPLES[component], null, 2) });
  const set = async () => {
    const { component, name } = values;
    const target = path`/parameters/${component}/${values.vhost}/${name}`;
    const wanted = { component, vhost: values.vhost, name, value: parsed(values.text) };
    const before = await find(path`/parameters/${component}/${values.vhost}`, (each) => each.name === name);
    await put(target, wanted);
    const undo = async () => {
      await (before ? put(target, before) : remove(target));
      onDone();
    };
    notify(`'${name}' is set.`, { undo });
    onDone();
  };
  return html`<${Panel} title=${parameter ? `Change '${parameter.name}'` : "Set a parameter"}><${Form} action="Set parameter" onSubmit=${set} extra=${parameter && html`<button type="button" onClick=${onDone}>Cancel</button>`}>
    <div class="fields">
      <${Field} label="Kind" kind="select" options=${COMPONENTS} value=${values.component} onChange=${chosen} />
      <${VhostField} ...${field("vhost")} />
      <${Field} label="Name" required readonly=${Boolean(parameter)} ...${field("name")} />
      <${Field} label="Value" kind="textarea" isWide rows="8" spellcheck="false" ...${field("text")} />
    </div>
  <//><//>`;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`The value is not JSON: ${error.message}`);
  }
}
