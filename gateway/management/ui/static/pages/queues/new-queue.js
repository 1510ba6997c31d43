/** The form that declares a queue or a stream. */
import { html, useEffect } from "../../lib/html.js";
import { path, put } from "../../lib/api.js";
import { QUEUE_ARGUMENTS } from "../../lib/known-arguments.js";
import { FoldedPanel } from "../../components/basics.js";
import { Field, Form, fromPairs, Pairs, useForm } from "../../components/forms.js";
import { VhostField } from "../../components/vhost-field.js";
import { notify } from "../../components/toasts.js";

const TYPES = ["classic", "quorum", "stream"];

export function NewQueue({ vhost, onDone }) {
  const { values, change, field } = useForm({ vhost, name: "", type: "classic", durable: true, auto_delete: false, pairs: [] });
  useEffect(() => change({ vhost }), [vhost]);
  const declare = async () => {
    const declared = fromPairs(values.pairs);
    if (values.type !== "classic") declared["x-queue-type"] = values.type;
    await put(path`/queues/${values.vhost}/${values.name}`, { durable: values.durable, auto_delete: values.auto_delete, arguments: declared });
    notify(`Queue '${values.name}' is declared.`);
    change({ name: "" });
    onDone();
  };
  return html`<${FoldedPanel} title="Declare a queue">
    <${Form} action="Declare" label="Declare a queue" onSubmit=${declare}>
      <div class="fields">
        <${VhostField} ...${field("vhost")} />
        <${Field} label="Name" required ...${field("name")} />
        <${Field} label="Type" kind="select" options=${TYPES} ...${field("type")} />
        <div class="field wide row"><${Field} kind="check" label="Durable" ...${field("durable")} /><${Field} kind="check" label="Auto-delete" ...${field("auto_delete")} /></div>
        <${Pairs} label="Arguments" keys=${QUEUE_ARGUMENTS} pairs=${values.pairs} onChange=${(pairs) => change({ pairs })} />
      </div>
    <//>
  <//>`;
}
