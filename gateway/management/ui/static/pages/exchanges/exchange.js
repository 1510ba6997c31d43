/** One exchange: its traffic, its bindings, and a form that publishes to it. */
import { html, useState } from "../../lib/html.js";
import { usePolling } from "../../lib/polling.js";
import { get, path, post, put, remove } from "../../lib/api.js";
import { usePermitted } from "../../lib/permitted.js";
import { sampleQuery } from "../../lib/samples.js";
import { go } from "../../lib/router.js";
import { count, rate, rateOf, value } from "../../lib/format.js";
import { Badge, Facts, Features, FoldedPanel, Loaded, Page, Panel, QueueLink, Tiles } from "../../components/basics.js";
import { Bindings, NewBinding } from "../../components/bindings.js";
import { ChannelLink } from "../../components/client-links.js";
import { RatesChart, SpanChoice } from "../../components/message-charts.js";
import { PublishForm } from "../../components/publish-form.js";
import { Table } from "../../components/tables.js";
import { useTabs } from "../../components/tabs.js";
import { confirm } from "../../components/dialogs.js";
import { act } from "../../components/toasts.js";

export function Exchange({ vhost, name }) {
  const [span, setSpan] = useState("10 min");
  const exchange = usePolling(path`/exchanges/${vhost}/${name}`, sampleQuery(span, "msg_rates"));
  const [tab, tabs] = useTabs(["Traffic", "Bindings", "Publish"], "Exchange");
  const real = name === "amq.default" ? "" : name;
  const isPermitted = usePermitted("exchange", vhost, name);
  const isOwn = real && !real.startsWith("amq.");
  return html`<${Page} title=${real || "(AMQP default)"} crumbs=${[["Exchanges", "#/exchanges"]]}
    badges=${exchange.data && html`<${Badge} kind="accent">${exchange.data.type}<//><${Features} of=${exchange.data} /><span class="soft">in <bdi>${vhost}</bdi></span>`}
    actions=${exchange.data && isOwn && isPermitted("configure") && html`<button class="danger" onClick=${() => deleteExchange(exchange.data)}>Delete</button>`}>
    ${tabs}
    <${Loaded} from=${exchange}>${(data) => html`
      ${tab === "Traffic" && html`<${Traffic} exchange=${data} span=${span} setSpan=${setSpan} />`}
      ${tab === "Bindings" && html`<${ExchangeBindings} vhost=${vhost} name=${name} real=${real} isPermitted=${isPermitted} />`}
      ${tab === "Publish" && !isPermitted("write") && html`<div class="notice">You lack the permission to publish to this exchange.</div>`}
      ${tab === "Publish" && isPermitted("write") && html`<${Panel} title="Publish a message"><${PublishForm} vhost=${vhost} exchange=${real} onDone=${exchange.refresh} /><//>`}
    `}<//>
  <//>`;
}

function Traffic({ exchange, span, setSpan }) {
  const stats = exchange.message_stats ?? {};
  return html`
    <${Tiles} figures=${[
      ["In", rate(rateOf(stats, "publish_in")), "/s"],
      ["Out", rate(rateOf(stats, "publish_out")), "/s"],
      ["Messages in", count(stats.publish_in ?? 0)],
      ["Messages out", count(stats.publish_out ?? 0)],
      exchange.messages_delayed !== undefined && ["Delayed", count(exchange.messages_delayed)],
    ]} />
    <${RatesChart} stats=${stats} actions=${html`<${SpanChoice} span=${span} onChange=${setSpan} most="10 min" />`} />
    <div class="columns">
      <${Panel} title="Who publishes" isPadded=${false}><${Table} label="Who publishes" rows=${exchange.incoming ?? []} columns=${INCOMING} rowKey=${(each) => each.channel_details.name} empty="No open channel has published." /><//>
      <${Panel} title="Where messages go" isPadded=${false}><${Table} label="Where messages go" rows=${exchange.outgoing ?? []} columns=${OUTGOING} rowKey=${(each) => each.queue.name} empty="No message has been routed to a queue." /><//>
    </div>
    <${Panel} title="Details"><${Facts} facts=${[
      ["Type", exchange.type],
      ["Policy", exchange.policy ?? "none"],
      exchange.inert && ["Without effect", html`<span class="bad-text">${exchange.inert}</span>`],
      ["Arguments", Object.keys(exchange.arguments).length > 0 && Object.entries(exchange.arguments).map(([key, given]) => html`<div key=${key}><code>${key}</code> = ${value(given)}</div>`)],
    ]} /><//>`;
}

const INCOMING = [
  { title: "Channel", isHeader: true, cell: ({ channel_details: channel }) => html`<${ChannelLink} ...${channel} />` },
  { title: "Messages", isNumber: true, cell: ({ stats }) => count(stats.publish) },
  { title: "Per second", isNumber: true, cell: ({ stats }) => rate(rateOf(stats, "publish")) },
];
const OUTGOING = [
  { title: "Queue", isHeader: true, cell: ({ queue }) => html`<${QueueLink} ...${queue} />` },
  { title: "Messages", isNumber: true, cell: ({ stats }) => count(stats.publish) },
  { title: "Per second", isNumber: true, cell: ({ stats }) => rate(rateOf(stats, "publish")) },
];

function ExchangeBindings({ vhost, name, real, isPermitted }) {
  if (!real) return html`<div class="notice">Each queue is bound to the default exchange with its name as routing key. These bindings cannot be changed.</div>`;
  return html`
    <${Bindings} title="From this exchange" path=${path`/exchanges/${vhost}/${name}/bindings/source`} canChange=${isPermitted("read")} />
    <${Bindings} title="To this exchange" path=${path`/exchanges/${vhost}/${name}/bindings/destination`} isFrom canChange=${isPermitted("write")} />
    ${isPermitted("read") && html`<${NewBinding} vhost=${vhost} source=${name} />`}`;
}

/** Delete an exchange; it can be undone, with its bindings. */
async function deleteExchange({ vhost, name, type, durable, auto_delete, internal, arguments: table }) {
  const target = path`/exchanges/${vhost}/${name}`;
  const bindings = [...await get(`${target}/bindings/source`), ...await get(`${target}/bindings/destination`)];
  const text = `Its ${bindings.length} bindings are removed too; publishers get an error. You can undo this.`;
  if (!await confirm({ title: `Delete '${name}'?`, text, action: "Delete", isDanger: true })) return;
  const undo = async () => {
    await put(target, { type, durable, auto_delete, internal, arguments: table });
    for (const binding of bindings) {
      const kind = binding.destination_type === "queue" ? "q" : "e";
      await post(path`/bindings/${vhost}/e/${binding.source}/${kind}/${binding.destination}`, { routing_key: binding.routing_key, arguments: binding.arguments });
    }
  };
  if (await act(() => remove(target), `Exchange '${name}' is deleted.`, { undo })) go("#/exchanges");
}
