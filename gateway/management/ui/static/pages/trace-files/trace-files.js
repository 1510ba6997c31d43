/** Traces in files: the running traces, a form that starts one, and the files. */
import { html, useEffect, useRef, useState } from "../../lib/html.js";
import { useStore } from "../../lib/store.js";
import { usePolling } from "../../lib/polling.js";
import { get, path, put, remove } from "../../lib/api.js";
import { selectedVhost } from "../../lib/vhosts.js";
import { bytes, count } from "../../lib/format.js";
import { Badge, Loaded, Name, Page, Panel } from "../../components/basics.js";
import { confirm, Dialog } from "../../components/dialogs.js";
import { Field, Form, useForm } from "../../components/forms.js";
import { Table } from "../../components/tables.js";
import { act, notify } from "../../components/toasts.js";
import { VhostField } from "../../components/vhost-field.js";

/** How much of a file is shown, in bytes. */
const SHOWN = 64 * 1024;

export function TraceFiles() {
  const vhost = useStore(selectedVhost);
  const traces = usePolling(vhost === "" ? "/traces" : path`/traces/${vhost}`);
  const files = usePolling("/trace-files");
  const refresh = () => {
    traces.refresh();
    files.refresh();
  };
  return html`<${Page} title="Trace files">
    <${Panel} title="Running traces" isPadded=${false}><${Loaded} from=${traces}>${(rows) => html`
      <${Table} label="Running traces" rows=${rows} columns=${traceColumns(refresh)} rowKey=${(each) => each.name} empty="No trace is running. A trace writes messages to a file until it is stopped or the broker stops." />`}<//><//>
    <${Start} key=${vhost} vhost=${vhost} refresh=${refresh} />
    <${Files} files=${files} running=${traces} />
  <//>`;
}

const traceColumns = (refresh) => [
  { title: "Trace", isHeader: true, cell: (each) => html`<${Name} of=${each.name} />` },
  { title: "Virtual host", isExtra: true, cell: (each) => html`<bdi>${each.vhost}</bdi>` },
  { title: "Pattern", className: "wrap", cell: (each) => html`<code>${each.pattern}</code>` },
  { title: "Format", isExtra: true, cell: (each) => each.format },
  { title: "Lines", isNumber: true, cell: (each) => html`${count(each.lines)}${each.left_out > 0 && html` <${Badge} kind="warn" title="The file is full, or the disk is slow">${count(each.left_out)} left out<//>`}${each.error && html` <${Badge} kind="bad" title=${each.error}>${each.error}<//>`}` },
  { title: "(Actions)", className: "actions-cell", cell: (each) => html`<button class="small" aria-label=${`Stop ${each.name}`} onClick=${() => stop(each, refresh)}>Stop</button>` },
];

async function stop(trace, refresh) {
  const target = path`/traces/${trace.vhost}/${trace.name}`;
  const undo = async () => {
    const { format, pattern, max_payload_bytes } = trace;
    await put(target, { format, pattern, max_payload_bytes });
    refresh();
  };
  await act(() => remove(target), `Trace '${trace.name}' is stopped; its file stays.`, { undo });
  refresh();
}

function Start({ vhost, refresh }) {
  const { values, change, field } = useForm({ vhost, name: "", pattern: "#", format: "text", limit: "1000" });
  const start = async () => {
    const limit = values.limit === "" ? {} : { max_payload_bytes: Number(values.limit) };
    await put(path`/traces/${values.vhost}/${values.name}`, { format: values.format, pattern: values.pattern, ...limit });
    notify(`Messages are written to ${values.name}.log.`);
    change({ name: "" });
    refresh();
  };
  return html`<${Panel} title="Start a trace"><${Form} action="Start trace" onSubmit=${start}><div class="fields">
    <${VhostField} ...${field("vhost")} />
    <${Field} label="Name" required hint="The file is NAME.log" ...${field("name")} />
    <${Field} label="Pattern" required hint="publish.EXCHANGE or deliver.QUEUE; # is any rest" ...${field("pattern")} />
    <${Field} label="Format" kind="select" options=${["text", "json"]} ...${field("format")} />
    <${Field} label="Bytes of each body" kind="number" min="0" hint="Empty: whole bodies" ...${field("limit")} />
  </div><//><//>`;
}

function Files({ files, running }) {
  const [shown, setShown] = useState(null);
  const isRunning = (file) => (running.data ?? []).some((trace) => `${trace.name}.log` === file.name);
  const columns = [
    { title: "File", isHeader: true, cell: (each) => html`<${Name} of=${each.name} /> ${isRunning(each) && html`<${Badge} kind="good">being written<//>`}` },
    { title: "Size", isNumber: true, cell: (each) => bytes(each.size) },
    { title: "(Actions)", className: "actions-cell", cell: (each) => html`
      <button class="small" aria-label=${`View ${each.name}`} onClick=${() => view(each, setShown)}>View</button>
      <a class="button small" href=${`/api${path`/trace-files/${each.name}`}`} download=${each.name} aria-label=${`Download ${each.name}`}>Download</a>
      <button class="small danger" disabled=${isRunning(each)} title=${isRunning(each) ? "Stop the trace first" : undefined} aria-label=${`Delete ${each.name}`} onClick=${() => deleteFile(each, files.refresh)}>Delete</button>` },
  ];
  return html`<${Panel} title="Files" isPadded=${false}><${Loaded} from=${files}>${(rows) => html`
    <${Table} label="Files" rows=${rows} columns=${columns} rowKey=${(each) => each.name} empty="There are no files." />`}<//><//>
    ${shown && html`<${Content} of=${shown} onClose=${() => setShown(null)} />`}`;
}

async function view(file, show) {
  await act(async () => {
    const text = await get(path`/trace-files/${file.name}`, { tail: SHOWN });
    show({ ...file, text: file.size > SHOWN ? text.slice(text.indexOf("\n") + 1) : text ?? "" });
  });
}

function Content({ of, onClose }) {
  const content = useRef(null);
  useEffect(() => { content.current.scrollTop = content.current.scrollHeight; }, []);
  return html`<${Dialog} isWide onClose=${onClose}><div>
    <h2 id="dialog-title"><bdi>${of.name}</bdi></h2>
    ${of.size > SHOWN && html`<p class="soft">The last ${bytes(SHOWN)} of ${bytes(of.size)}.</p>`}
    <pre class="code" tabindex="0" ref=${content}>${of.text || "The file is empty."}</pre>
    <div class="buttons"><button onClick=${onClose}>Close</button></div>
  </div><//>`;
}

async function deleteFile(file, refresh) {
  if (!await confirm({ title: `Delete ${file.name}?`, text: `It has ${bytes(file.size)}. This cannot be undone.`, action: "Delete file", isDanger: true })) return;
  await act(() => remove(path`/trace-files/${file.name}`), `${file.name} is deleted.`);
  refresh();
}
