/** One plugin in a virtual host: enable, disable, change settings, reload, roll back; the time of its calls. */
import { html } from "../../lib/html.js";
import { usePolling } from "../../lib/polling.js";
import { path, post, put, remove, request } from "../../lib/api.js";
import { count, value } from "../../lib/format.js";
import { Badge, Facts, Loaded, Page, Panel } from "../../components/basics.js";
import { confirm } from "../../components/dialogs.js";
import { Field, Form, useForm } from "../../components/forms.js";
import { Table } from "../../components/tables.js";
import { act, notify } from "../../components/toasts.js";
import { microseconds, STATES } from "./plugins.js";

const TIME_COLUMNS = [
  { title: "Part", isHeader: true, cell: (each) => each.part },
  { title: "Call", cell: (each) => html`<code>${each.method}</code>` },
  { title: "Measured calls", isNumber: true, cell: (each) => count(each.measured_calls) },
  { title: "Mean", isNumber: true, cell: (each) => microseconds(each.mean_us) },
  { title: "Longest", isNumber: true, cell: (each) => microseconds(each.longest_us) },
];

export function Plugin({ vhost, name }) {
  const target = path`/plugins/${vhost}/${name}`;
  const state = usePolling(target);
  const all = usePolling("/plugins", {}, { interval: 0 });
  const plugin = all.data?.find((each) => each.name === name);
  const isEnabled = state.data && state.data.state !== "disabled";
  return html`<${Page} title=${name} crumbs=${[["Plugins", "#/plugins"]]}
    badges=${state.data && html`<${Badge} kind=${STATES[state.data.state] ?? "warn"}>${state.data.state}<//><span class="soft">in <bdi>${vhost}</bdi></span>`}
    actions=${state.data && plugin && html`
      ${isEnabled && html`<button onClick=${() => reload(target, name, state.refresh)}>Reload</button>`}
      ${state.data.former_version !== undefined && html`<button onClick=${() => rollBack(target, name, state.refresh)}>Roll back</button>`}
      ${!plugin.always_enabled && isEnabled && html`<button class="danger" onClick=${() => disable(target, state)}>Disable</button>`}`}>
    <${Loaded} from=${state}>${(data) => html`
      ${data.reason && html`<div class="notice bad">${data.reason}</div>`}
      <${Panel} title="State"><${Facts} facts=${[
        ["Description", plugin?.description], ["Source", plugin?.source], ["Set by", data.set_by], ["Version", data.version], ["Version before", data.former_version],
        ["Exchange types", data.exchange_types?.join(", ")], ["Queue settings", data.queue_settings?.join(", ")],
        ["Faults", count(data.faults)], ["Last fault", data.last_fault && value(data.last_fault)],
      ]} /><//>
      ${plugin?.takes_settings && html`<${Settings} key=${JSON.stringify(data.settings)} plugin=${plugin} state=${data} target=${target} isEnabled=${isEnabled} refresh=${state.refresh} />`}
      ${plugin && !plugin.takes_settings && !isEnabled && html`<${Panel} title="Enable"><${Form} action="Enable" onSubmit=${async () => { await request("PUT", target); notify(`'${name}' is enabled.`); state.refresh(); }}><p>This plugin has no settings.</p><//><//>`}
      <${Panel} title="Time of its calls" isPadded=${false}><${Table} label="Time of its calls" rows=${data.times} columns=${TIME_COLUMNS} rowKey=${(each) => `${each.part} ${each.method}`} empty="No call has been measured." /><//>
    `}<//>
  <//>`;
}

/** What the API shows instead of a secret. */
const HIDDEN = "********";
const hasSecrets = (settings = {}) => Object.values(settings).includes(HIDDEN);

/** A form with a field for each setting; empty fields have the default. Settings that have structure are JSON. */
function Settings({ plugin, state, target, isEnabled, refresh }) {
  const names = [...new Set([...(plugin.settings ?? []).map((setting) => setting.name), ...Object.keys(state.settings ?? {})])];
  const { values, field } = useForm(Object.fromEntries(names.map((name) => [name, state.settings?.[name] === undefined || state.settings[name] === HIDDEN ? "" : value(state.settings[name])])));
  const save = async () => {
    const given = Object.fromEntries(names.filter((name) => values[name] !== "").map((name) => [name, parsed(values[name])]));
    const before = state.settings ?? {};
    await put(target, given);
    const undo = async () => {
      await put(target, before);
      refresh();
    };
    notify(`'${plugin.name}' ${isEnabled ? "has other settings" : "is enabled"}.`, isEnabled && !hasSecrets(before) ? { undo } : {});
    refresh();
  };
  const described = Object.fromEntries((plugin.settings ?? []).map((setting) => [setting.name, setting]));
  return html`<${Panel} title="Settings"><${Form} action=${isEnabled ? "Change settings" : "Enable"} label="Settings" onSubmit=${save}>
    <div class="fields">${names.map((name) => html`<${Field} key=${name} label=${name} isWide placeholder=${placeholderOf(described[name])} required=${state.settings?.[name] === HIDDEN}
      hint=${`${state.settings?.[name] === HIDDEN ? "A secret that is set: enter it again. " : ""}${hintOf(described[name])}`} ...${field(name)} />`)}</div>
    ${names.length === 0 && html`<p>All settings have their defaults.</p>`}
  <//><//>`;
}

const placeholderOf = (setting) => (setting?.default === undefined ? "" : `default: ${value(setting.default)}`);
const hintOf = (setting) => (setting === undefined ? "" : `${(setting.description ?? "").replaceAll("``", "")} Allowed: ${setting.allowed}.`);

/** Return the JSON of a text, or the text itself. */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

async function reload(target, name, refresh) {
  const undo = async () => {
    await post(`${target}/rollback`);
    refresh();
  };
  await act(() => post(`${target}/reload`), `'${name}' is reloaded.`, { undo });
  refresh();
}

async function rollBack(target, name, refresh) {
  if (!await confirm({ title: `Roll '${name}' back?`, text: "The version before the last reload is used again.", action: "Roll back" })) return;
  await act(() => post(`${target}/rollback`), `'${name}' runs the version before.`);
  refresh();
}

async function disable(target, { data, refresh }) {
  const canUndo = !hasSecrets(data.settings);
  const text = `Exchanges and queues that need it no longer work, and refuse messages. ${canUndo ? "You can undo this." : "Its secrets must be entered again to enable it."}`;
  if (!await confirm({ title: `Disable '${data.name}'?`, text, action: "Disable", isDanger: true })) return;
  const undo = async () => {
    await put(target, data.settings ?? {});
    refresh();
  };
  await act(() => remove(target), `'${data.name}' is disabled.`, canUndo ? { undo } : {});
  refresh();
}
