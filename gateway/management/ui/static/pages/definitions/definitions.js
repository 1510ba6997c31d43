/** Definitions: export, and a plan of what definitions change, which is then applied. */
import { html, useState } from "../../lib/html.js";
import { useStore } from "../../lib/store.js";
import { get, path, post, withQuery } from "../../lib/api.js";
import { selectedVhost } from "../../lib/vhosts.js";
import { Page, Panel } from "../../components/basics.js";
import { Field, Form, useForm, useId } from "../../components/forms.js";
import { act, notify } from "../../components/toasts.js";
import { Plan } from "./plan.js";

const target = (base, vhost) => (vhost === "" ? `/${base}` : `/${base}${path`/${vhost}`}`);
const scopeOf = (vhost) => (vhost === "" ? "the whole broker" : html`virtual host <b><bdi>${vhost}</bdi></b>`);

export function Definitions() {
  const vhost = useStore(selectedVhost);
  return html`<${Page} title="Definitions">
    <${Panel} title="Export"><p>${vhost === "" ? "Users, virtual hosts, permissions, policies" : "Policies"}, parameters, exchanges, queues and bindings of ${scopeOf(vhost)}. Messages are not included.</p>
      <div class="form-actions"><button class="primary" onClick=${() => act(() => download(vhost))}>Download definitions</button></div><//>
    <${Import} key=${vhost} vhost=${vhost} />
  <//>`;
}

/** Save the definitions as a file. */
async function download(vhost) {
  const definitions = await get(target("definitions", vhost));
  const address = URL.createObjectURL(new Blob([JSON.stringify(definitions, null, 2)], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = `gateway-definitions-${new Date().toISOString().slice(0, 10)}.json`;
  link.click();
  URL.revokeObjectURL(address);
}

function Import({ vhost }) {
  const { values, change, field } = useForm({ text: "", isPruned: false });
  const [plan, setPlan] = useState(null);
  const id = useId();
  const edit = (changes) => {
    change(changes);
    setPlan(null);
  };
  const edited = (name) => ({ ...field(name), onChange: (given) => edit({ [name]: given }) });
  const read = async (event) => {
    const [file] = event.target.files;
    if (file) edit({ text: await file.text() });
  };
  const compare = async () => {
    const wanted = parse(values.text);
    setPlan({ wanted, ...await post(withQuery(target("definitions-plan", vhost), { prune: values.isPruned }), wanted) });
  };
  const apply = async () => {
    await post(withQuery(target("definitions-apply", vhost), { prune: values.isPruned, plan: plan.plan }), plan.wanted);
    notify("The definitions are applied.");
    edit({ text: "" });
  };
  return html`
    <${Panel} title="Import"><${Form} action="Compare" onSubmit=${compare}>
      <p class="soft">Definitions are first compared with ${scopeOf(vhost)}, then applied as a whole or not at all. Select a virtual host in the header to import into that one only.</p>
      <div class="fields"><div class="field"><label for=${id}>File</label><input id=${id} type="file" accept=".json,application/json" onChange=${read} /></div>
        <${Field} label="Definitions" kind="textarea" isWide rows="8" required spellcheck="false" ...${edited("text")} />
        <div class="field wide"><${Field} label="Delete what they do not name" kind="check" ...${edited("isPruned")} />
          <span class="hint">Only objects of the kinds that they have: definitions without users delete no user. You stay, whatever they say.</span></div></div>
    <//><//>
    ${plan && html`<${Plan} plan=${plan} onApply=${apply} onCancel=${() => setPlan(null)} />`}`;
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`This is not JSON: ${error.message}`);
  }
}
