/** "Where is my message?": traces of messages, each as a timeline across protocols. */
import { html, useEffect, useState } from "../../lib/html.js";
import { useStore } from "../../lib/store.js";
import { usePolling } from "../../lib/polling.js";
import { path, put, remove } from "../../lib/api.js";
import { location_, setQuery } from "../../lib/router.js";
import { selectedVhost } from "../../lib/vhosts.js";
import { may } from "../../lib/session.js";
import { bytes, count, plural } from "../../lib/format.js";
import { Badge, Loaded, Page, Panel } from "../../components/basics.js";
import { OneVhost } from "../../components/one-vhost.js";
import { confirm } from "../../components/dialogs.js";
import { Choice, Field } from "../../components/forms.js";
import { act } from "../../components/toasts.js";
import { protocolName, Timeline } from "./timeline.js";

const SHOWN = 50;
const SAMPLES = [["0", "off"], ["0.001", "1 of 1,000"], ["0.01", "1 of 100"], ["0.1", "1 of 10"], ["1", "every message"]];
const FILTERS = [["message_id", "Message id"], ["exchange", "Exchange"], ["routing_key", "Routing key"], ["queue", "Queue"], ["user", "User"]];

export function Traces() {
  const { vhost: asked } = useStore(location_).query;
  useEffect(() => { if (asked) selectedVhost.set(asked); }, [asked]);
  return html`<${Page} title="Where is my message?"><${OneVhost}>${(vhost) => html`<${Search} key=${vhost} vhost=${vhost} />`}<//><//>`;
}

function Search({ vhost }) {
  const { query } = useStore(location_);
  const values = Object.fromEntries(FILTERS.map(([name]) => [name, query[name] ?? ""]));
  const target = path`/message-traces/${vhost}`;
  const traces = usePolling(target, { limit: SHOWN, ...values });
  return html`
    <${Loaded} from=${traces}>${(data) => html`<${Sampling} of=${data} target=${target} refresh=${traces.refresh} />`}<//>
    <${Panel} title="Find messages"><div class="fields">${FILTERS.map(([name, label]) => html`<${Field} key=${name} label=${label} value=${values[name]} onChange=${(text) => setQuery({ [name]: text })} />`)}</div><//>
    ${traces.data && html`<${Found} traces=${traces.data.traces} vhost=${vhost} isOn=${traces.data.sample > 0} />`}`;
}

function Sampling({ of, target, refresh }) {
  const set = async (sample) => {
    const before = of.sample;
    const change = (to) => async () => {
      await put(target, { sample: to });
      refresh();
    };
    await act(change(Number(sample)), Number(sample) ? "New messages are traced until the broker stops." : "No new messages are traced; the traces are kept.", { undo: change(before) });
  };
  const clear = async () => {
    if (!await confirm({ title: "Drop all traces?", text: "The messages themselves stay. This cannot be undone.", action: "Drop traces", isDanger: true })) return;
    await act(() => remove(target), "The traces are dropped.");
    refresh();
  };
  const chosen = String(of.sample);
  const options = SAMPLES.some(([key]) => key === chosen) ? SAMPLES : [...SAMPLES, [chosen, `${of.sample * 100} %`]];
  return html`<${Panel}><div class="row">
    <${Badge} kind=${of.sample > 0 ? "good" : ""}>${of.sample > 0 ? "tracing" : "off"}<//>
    ${may("administrator") && html`<label class="check">Trace <${Choice} aria-label="Trace" options=${options} value=${chosen} onChange=${set} /></label>`}
    <span class="soft">${plural(of.messages, "message")} of at most ${count(of.max_messages)}, ${bytes(of.bytes)} of ${bytes(of.max_bytes)}; ${count(of.evicted)} older ones were dropped</span>
    ${may("administrator") && html`<button class="small" disabled=${of.messages === 0} onClick=${clear}>Drop traces</button>`}
  </div><//>`;
}

/** How the state of a message in a queue is shown. */
const WHERE = { ready: "accent", unsettled: "warn", consumed: "good", delivered: "good" };

function Found({ traces, vhost, isOn }) {
  if (traces.length === 0) {
    return html`<div class="empty">${isOn ? "No traced message matches." : "No message matches. Tracing is off, so new messages are not found."}</div>`;
  }
  return html`<div class="stack">${traces.map((trace) => html`<${Trace} key=${trace.id} trace=${trace} vhost=${vhost} isOpen=${traces.length === 1} />`)}
    ${traces.length === SHOWN && html`<p class="soft">The latest ${count(SHOWN)} are shown: use the filters to find others.</p>`}</div>`;
}

function Trace({ trace, vhost, isOpen: isOpenAtFirst }) {
  const [isOpen, setIsOpen] = useState(isOpenAtFirst);
  return html`<section class="panel" aria-label=${`Message ${trace.message_id ?? trace.id}`}>
    <header class="trace-head">
      <button class="quiet small" aria-expanded=${isOpen} onClick=${() => setIsOpen(!isOpen)}>${isOpen ? "▾" : "▸"} <bdi>${trace.message_id ?? `${trace.exchange || "(AMQP default)"} / ${trace.routing_key}`}</bdi></button>
      <span class="soft small-text">${protocolsOf(trace).join(" → ")}, ${bytes(trace.body_size)}, ${timeOf(trace)}</span>
      <span class="badges actions">${trace.where.map((each) => html`<${Badge} key=${each.queue} kind=${WHERE[each.state] ?? "bad"}>${each.queue ? `${each.queue}: ` : ""}${each.state}<//>`)}</span>
    </header>
    ${isOpen && html`<${Timeline} trace=${trace} vhost=${vhost} />`}
  </section>`;
}

const timeOf = (trace) => trace.events[0]?.at.replace("T", " ").slice(0, 23);
const protocolsOf = (trace) => [...new Set(trace.events.map((event) => event.protocol).filter(Boolean).map(protocolName))];
