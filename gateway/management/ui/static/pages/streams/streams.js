/** The consumers of streams with their offsets, and the stored positions of each stream. */
import { html, useState } from "../../lib/html.js";
import { useStore } from "../../lib/store.js";
import { usePolling } from "../../lib/polling.js";
import { path, put, remove } from "../../lib/api.js";
import { listingPath, selectedVhost } from "../../lib/vhosts.js";
import { bytes, count } from "../../lib/format.js";
import { Loaded, Name, Page, Panel, QueueLink } from "../../components/basics.js";
import { ChannelLink } from "../../components/client-links.js";
import { Dialog } from "../../components/dialogs.js";
import { Field, Form, useForm } from "../../components/forms.js";
import { PagedTable, Table } from "../../components/tables.js";
import { act, notify } from "../../components/toasts.js";

const CONSUMER_COLUMNS = [
  { title: "Consumer", isHeader: true, cell: (each) => html`<${Name} of=${each.consumer_tag} />` },
  { title: "Stream", cell: (each) => html`<${QueueLink} ...${each.queue} />` },
  { title: "Channel", isExtra: true, cell: (each) => html`<${ChannelLink} ...${each.channel_details} />` },
  { title: "Offset", isNumber: true, cell: (each) => count(each.offset) },
  { title: "Behind", isNumber: true, cell: (each) => count(each.offset_lag) },
  { title: "Credit", isNumber: true, isExtra: true, cell: (each) => count(each.credits) },
  { title: "Consumed", isNumber: true, isExtra: true, cell: (each) => count(each.consumed) },
];

const FIELDS = "name,vhost,type,messages,message_bytes,first_offset,next_offset,segments,readers";

export function Streams() {
  const vhost = useStore(selectedVhost);
  const consumers = usePolling(listingPath("stream/consumers", vhost));
  const [shown, setShown] = useState(null);
  return html`<${Page} title="Streams">
    <${Panel} title="Streams" isPadded=${false}><${PagedTable} path=${listingPath("streams", vhost)} noun="streams" columns=${streamColumns(setShown)} query=${{ columns: FIELDS }} rowKey=${(each) => `${each.vhost}\n${each.name}`} /><//>
    <${Panel} title="Consumers" isPadded=${false}><${Loaded} from=${consumers}>${(rows) => html`
      <${Table} label="Consumers of streams" rows=${rows} columns=${CONSUMER_COLUMNS} rowKey=${(each) => `${each.channel_details.name} ${each.consumer_tag}`} empty="Nobody consumes from a stream." />`}<//><//>
    ${shown && html`<${Positions} key=${`${shown.vhost} ${shown.name}`} stream=${shown} onDone=${() => setShown(null)} />`}
  <//>`;
}

const streamColumns = (onPositions) => [
  { title: "Stream", sort: "name", isHeader: true, cell: (each) => html`<${QueueLink} ...${each} />` },
  { title: "Virtual host", sort: "vhost", isExtra: true, cell: (each) => html`<bdi>${each.vhost}</bdi>` },
  { title: "Messages", sort: "messages", isNumber: true, cell: (each) => count(each.messages) },
  { title: "Size", sort: "message_bytes", isNumber: true, isExtra: true, cell: (each) => bytes(each.message_bytes) },
  { title: "First", isNumber: true, isExtra: true, cell: (each) => count(each.first_offset) },
  { title: "Next", isNumber: true, isExtra: true, cell: (each) => count(each.next_offset) },
  { title: "Segments", isNumber: true, isExtra: true, cell: (each) => count(each.segments) },
  { title: "(Positions)", className: "actions-cell", cell: (each) => html`<button class="small quiet" onClick=${() => onPositions(each)}>Stored positions</button>` },
];

/** The dialog with the positions of named consumers, which are kept while they are away. */
function Positions({ stream: { vhost, name }, onDone }) {
  const target = path`/stream/${vhost}/${name}/tracking`;
  const tracking = usePolling(target);
  const { values, change, field } = useForm({ consumer: "", offset: "" });
  const set = async () => {
    const one = `${target}${path`/${values.consumer}`}`;
    const before = tracking.data?.offsets[values.consumer];
    await put(one, { offset: Number(values.offset) });
    const undo = async () => {
      await (before === undefined ? remove(one) : put(one, { offset: before }));
      tracking.refresh();
    };
    notify(`The position of '${values.consumer}' is set.`, { undo });
    change({ consumer: "", offset: "" });
    tracking.refresh();
  };
  const forget = async (consumer, offset) => {
    const one = `${target}${path`/${consumer}`}`;
    const undo = async () => {
      await put(one, { offset });
      tracking.refresh();
    };
    await act(() => remove(one), `The position of '${consumer}' is forgotten.`, { undo });
    tracking.refresh();
  };
  const columns = [
    { title: "Consumer", isHeader: true, cell: ([consumer]) => html`<${Name} of=${consumer} />` },
    { title: "Offset", isNumber: true, cell: ([, offset]) => count(offset) },
    { title: "Behind", isNumber: true, cell: ([consumer]) => count(tracking.data?.lags[consumer]) },
    { title: "(Actions)", className: "actions-cell", cell: ([consumer, offset]) => html`<button class="small quiet" onClick=${() => forget(consumer, offset)}>Forget</button>` },
  ];
  return html`<${Dialog} isWide onClose=${onDone}><div>
    <h2 id="dialog-title">Stored positions of '${name}'</h2>
    <${Loaded} from=${tracking}>${(data) => html`<${Table} label="Stored positions" rows=${Object.entries(data.offsets)} columns=${columns} rowKey=${([consumer]) => consumer} empty="No consumer has stored a position." />`}<//>
    <${Form} action="Set position" onSubmit=${set} extra=${html`<button type="button" onClick=${onDone}>Close</button>`}><div class="fields">
      <${Field} label="Consumer" required ...${field("consumer")} />
      <${Field} label="Last processed offset" kind="number" min="0" required ...${field("offset")} />
    </div><//>
  </div><//>`;
}
