/** The bindings of a queue. */
import { html } from "../../lib/html.js";
import { path } from "../../lib/api.js";
import { Bindings, NewBinding } from "../../components/bindings.js";

export function QueueBindings({ queue, isPermitted }) {
  const { vhost, name } = queue;
  return html`<${Bindings} title="Bindings to this queue" path=${path`/queues/${vhost}/${name}/bindings`} isFrom canChange=${isPermitted("write")} />
    ${isPermitted("write") && html`<${NewBinding} vhost=${vhost} destination=${name} destinationType="queue" />`}`;
}
