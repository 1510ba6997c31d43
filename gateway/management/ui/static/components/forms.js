/** Forms: fields by description, tables of arguments, and errors at the form that caused them. */
import { html, useState } from "../lib/html.js";
import { ErrorNotice } from "./basics.js";

let lastId = 0;

/** Return an identifier for a field and its label, the same while the component lives. */
export function useId() {
  const [id] = useState(() => `field-${(lastId += 1)}`);
  return id;
}

/** A choice of options: texts, or pairs of value and text. */
export function Choice({ options, value, onChange, ...rest }) {
  return html`<select ...${rest} onChange=${(event) => onChange(event.target.value)}>${options.map((option) => {
    const [key, text] = Array.isArray(option) ? option : [option, option];
    return html`<option key=${key} value=${key} selected=${key === value}>${text}</option>`;
  })}</select>`;
}

/**
 * A field with its label.
 * @param {{label: string, value: any, onChange: (value: any) => void, kind?: string, options?: Array<string | [string, string]>,
 *   hint?: string, isWide?: boolean}} properties `kind` is text, password, number, textarea, select or check
 */
export function Field({ label, value, onChange, kind = "text", options = [], hint, isWide, ...rest }) {
  const id = useId();
  const described = hint ? { "aria-describedby": `${id}-hint` } : {};
  if (kind === "check") {
    return html`<label class="check"><input type="checkbox" checked=${value} onChange=${(event) => onChange(event.target.checked)} ...${rest} />${label}</label>`;
  }
  const common = { id, value, ...described, ...rest };
  const changed = (event) => onChange(event.target.value);
  return html`<div class=${`field ${isWide ? "wide" : ""}`}>
    <label for=${id}>${label}</label>
    ${kind === "select" && html`<${Choice} ...${common} options=${options} onChange=${onChange} />`}
    ${kind === "textarea" && html`<textarea rows="4" ...${common} onInput=${changed}></textarea>`}
    ${kind !== "select" && kind !== "textarea" && html`<input type=${kind} autocomplete="off" ...${common} onInput=${changed} />`}
    ${hint && html`<span class="hint" id=${`${id}-hint`}>${hint}</span>`}
  </div>`;
}

/**
 * A form. `onSubmit` may throw; the error is shown below the fields. While it runs, the button is disabled.
 */
export function Form({ action, onSubmit, isDanger, children, extra, label }) {
  const [error, setError] = useState(null);
  const [isBusy, setIsBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    setIsBusy(true);
    setError(null);
    try {
      await onSubmit();
    } catch (caught) {
      setError(caught);
    } finally {
      setIsBusy(false);
    }
  };
  return html`<form onSubmit=${submit} aria-label=${label ?? action}>
    ${children}
    ${error && html`<div class="form-actions"><${ErrorNotice} error=${error} /></div>`}
    <div class="form-actions"><button class=${`primary ${isDanger ? "danger" : ""}`} disabled=${isBusy}>${action}</button>${extra}</div>
  </form>`;
}

/** Return the state of a form: its values, and a function that returns the properties of a field. */
export function useForm(initial) {
  const [values, setValues] = useState(initial);
  const change = (changes) => setValues((before) => ({ ...before, ...changes }));
  const field = (name) => ({ value: values[name], onChange: (given) => change({ [name]: given }) });
  return { values, change, field, reset: () => setValues(initial) };
}

const KINDS = ["string", "number", "boolean", "list"];

/** Return the kind of a value for `Pairs`. */
export function kindOf(given) {
  return Array.isArray(given) || (typeof given === "object" && given !== null) ? "list" : typeof given;
}

/** Return the rows of `Pairs` for an object. */
export function toPairs(object = {}) {
  return Object.entries(object).map(([key, given]) => ({ key, kind: kindOf(given), value: typeof given === "string" ? given : JSON.stringify(given) }));
}

/** Return the object for the rows of `Pairs`. @throws {Error} naming the row that is invalid */
export function fromPairs(pairs) {
  return Object.fromEntries(pairs.filter((pair) => pair.key).map((pair) => [pair.key, typed(pair)]));
}

function typed({ key, kind, value }) {
  if (kind === "string") return value;
  if (kind === "number") {
    const number = Number(value);
    if (value.trim() === "" || Number.isNaN(number)) throw new Error(`'${key}' must be a number, not '${value}'.`);
    return number;
  }
  if (kind === "boolean") {
    if (value !== "true" && value !== "false") throw new Error(`'${key}' must be true or false, not '${value}'.`);
    return value === "true";
  }
  try {
    return JSON.parse(value);
  } catch {
    throw new Error(`'${key}' must be JSON, such as ["a", "b"] or {"a": 1}.`);
  }
}

/** A table of arguments: key, value and type. `keys` are offered while typing. */
export function Pairs({ label, pairs, onChange, keys = [] }) {
  const id = useId();
  const rows = [...pairs, { key: "", kind: "string", value: "" }];
  const change = (index, changes) => {
    const next = rows.map((row, at) => (at === index ? { ...row, ...changes } : row));
    onChange(next.filter((row) => row.key || row.value));
  };
  const pick = (index, key) => {
    const known = keys.find(([name]) => name === key);
    change(index, known && !rows[index].value ? { key, kind: known[1] } : { key });
  };
  return html`<fieldset class="field wide"><legend class="label">${label}</legend>
    ${rows.map((row, index) => html`<div class="pairs" key=${index}>
      <input aria-label=${`${label}: key ${index + 1}`} placeholder="key" list=${`${id}-keys`} value=${row.key} autocomplete="off" onInput=${(event) => pick(index, event.target.value)} />
      <input aria-label=${`${label}: value ${index + 1}`} placeholder="value" value=${row.value} autocomplete="off" onInput=${(event) => change(index, { value: event.target.value })} />
      <${Choice} aria-label=${`${label}: type ${index + 1}`} options=${KINDS} value=${row.kind} onChange=${(kind) => change(index, { kind })} />
      <button type="button" class="small quiet" disabled=${!row.key && !row.value} aria-label=${`Remove ${row.key || "row"}`} onClick=${() => onChange(pairs.filter((_, at) => at !== index))}>Remove</button>
    </div>`)}
    <datalist id=${`${id}-keys`}>${keys.map(([name]) => html`<option key=${name} value=${name} />`)}</datalist>
  </fieldset>`;
}
