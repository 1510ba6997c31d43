/** For pages that show one virtual host: the selected one; if all are selected, a choice on the page. */
import { html, useState } from "../lib/html.js";
import { useStore } from "../lib/store.js";
import { selectedVhost } from "../lib/vhosts.js";
import { VhostField } from "./vhost-field.js";

export function OneVhost({ children }) {
  const selected = useStore(selectedVhost);
  const [chosen, setChosen] = useState("");
  const vhost = selected || chosen;
  return html`
    ${selected === "" && html`<div class="one-vhost"><${VhostField} value=${chosen} onChange=${setChosen} /></div>`}
    ${vhost && children(vhost)}`;
}
