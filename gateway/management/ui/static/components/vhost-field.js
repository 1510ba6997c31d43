/** The field of a form that names the virtual host: the selected one, or a choice. */
import { html, useEffect } from "../lib/html.js";
import { usePolling } from "../lib/polling.js";
import { Field } from "./forms.js";

export function VhostField({ value, onChange }) {
  const vhosts = usePolling("/vhosts", { columns: "name" }, { interval: 0 });
  const names = vhosts.data?.map((each) => each.name) ?? [];
  useEffect(() => { if (!value && names.length) onChange(names.includes("/") ? "/" : names[0]); }, [vhosts.data, value]);
  return html`<${Field} label="Virtual host" kind="select" hint=${vhosts.data?.length === 0 ? "You have permissions in no virtual host." : undefined} options=${value && !names.includes(value) ? [value, ...names] : names} value=${value} onChange=${onChange} />`;
}
