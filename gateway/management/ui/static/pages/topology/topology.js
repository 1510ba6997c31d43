/** The drawn topology: which exchanges feed which queues, with live rates on the arrows. */
import { html, useMemo } from "../../lib/html.js";
import { useStore } from "../../lib/store.js";
import { usePolling } from "../../lib/polling.js";
import { path } from "../../lib/api.js";
import { go, location_, setQuery, to, toQuery } from "../../lib/router.js";
import { count, rate } from "../../lib/format.js";
import { Badge, Loaded, Page, Panel } from "../../components/basics.js";
import { Choice, Field, Form, useForm } from "../../components/forms.js";
import { OneVhost } from "../../components/one-vhost.js";
import { layout, NODE_HEIGHT, NODE_WIDTH } from "./layout.js";

/** The distance of two edges at their common target, so that their rates can be read. */
const ARRIVAL_GAP = 16;

const LIMITS = ["30", "60", "120", "300"];

export function Topology() {
  return html`<${Page} title="Topology"><${OneVhost}>${(vhost) => html`<${Drawing} key=${vhost} vhost=${vhost} />`}<//><//>`;
}

function Drawing({ vhost }) {
  const { exchange, queue, limit = "60" } = useStore(location_).query;
  const topology = usePolling(path`/topology/${vhost}`, { exchange, queue, limit });
  const selected = exchange ?? queue;
  return html`<${Panel} isPadded=${false}>
    <div class="tools">
      <${Around} />
      ${selected && html`<span>Around <b><bdi>${selected}</bdi></b> <button class="small" onClick=${() => setQuery({ exchange: "", queue: "" })}>Show all</button></span>`}
      <label class="check">At most <${Choice} options=${LIMITS} value=${limit} onChange=${(chosen) => setQuery({ limit: chosen === "60" ? "" : chosen })} /> objects</label>
      ${topology.data?.is_partial && html`<${Badge} kind="warn">not all objects are drawn<//>`}
    </div>
    <${Loaded} from=${topology}>${(data) => (data.nodes.length ? html`<${Graph} of=${data} vhost=${vhost} selected=${selected} />` : html`<div class="empty">No exchange has bindings.</div>`)}<//>
    <footer><span class="legend-exchange">exchange</span><span class="legend-queue">queue</span><span>Arrows show messages per second that reach a queue; ≤ (dashed): at most, because they may take several ways. Select an object to draw what is around it.</span></footer>
  <//>`;
}

function Around() {
  const { values, field } = useForm({ kind: "exchange", name: "" });
  const draw = () => setQuery({ exchange: "", queue: "", [values.kind]: values.name });
  return html`<${Form} action="Draw" label="Draw around one object" onSubmit=${draw}><div class="row">
    <${Field} label="Around" kind="select" options=${["exchange", "queue"]} ...${field("kind")} /><${Field} label="Name" required ...${field("name")} /></div><//>`;
}

const idOf = (kind, name) => `${kind}\n${name}`;

function Graph({ of, vhost, selected }) {
  const edges = of.edges.map((edge) => ({ ...edge, from: idOf("exchange", edge.source), to: idOf(edge.destination_type, edge.destination) }));
  const nodes = of.nodes.map((node) => ({ ...node, id: idOf(node.kind, node.name) }));
  const shape = JSON.stringify([nodes.map((node) => node.id), edges.map((edge) => [edge.from, edge.to])]);
  const { places, bends, width, height } = useMemo(() => layout(nodes, edges), [shape]);
  const arrivals = useMemo(() => arrivalsOf(edges, places), [shape]);
  return html`<div class="drawing" tabindex="0" role="group" aria-label="Drawing of exchanges and queues">
    <svg viewBox=${`0 0 ${width} ${height}`} width=${width} height=${height} role="group" aria-label=${`${nodes.length} objects, ${edges.length} connections`}>
      <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto" markerUnits="userSpaceOnUse"><path d="M0 0 8 4 0 8Z" class="arrow-head" /></marker></defs>
      ${edges.map((edge) => html`<${Edge} key=${keyOf(edge)} edge=${edge} stops=${stopsOf(edge, places, bends, arrivals)} />`)}
      ${nodes.map((node) => html`<${Node} key=${node.id} node=${node} at=${places.get(node.id)} vhost=${vhost} isSelected=${node.name === selected} />`)}
      ${edges.map((edge) => edge.at_most > 0 && html`<${Rate} key=${keyOf(edge)} edge=${edge} stops=${stopsOf(edge, places, bends, arrivals)} />`)}
    </svg></div>`;
}

const keyOf = (edge) => `${edge.from}\n${edge.to}`;

/** Return the points that an edge passes: the side of its source, its bends, the side of its target. */
function stopsOf(edge, places, bends, arrivals) {
  const [source, target] = [places.get(edge.from), places.get(edge.to)];
  const passed = bends.get(keyOf(edge)) ?? [];
  const through = passed.flatMap(({ x, y }) => [{ x, y }, { x: x + NODE_WIDTH, y }]);
  return [{ x: source.x + NODE_WIDTH, y: source.y }, ...through, { x: target.x - 2, y: target.y + arrivals.get(keyOf(edge)) }];
}

/** Return where each edge ends, from the middle of its target: apart from others, in the order of their sources. */
function arrivalsOf(edges, places) {
  const arriving = new Map();
  for (const edge of edges) arriving.set(edge.to, [...(arriving.get(edge.to) ?? []), edge]);
  const offsets = new Map();
  for (const together of arriving.values()) {
    together.sort((one, other) => places.get(one.from).y - places.get(other.from).y);
    const gap = Math.min(ARRIVAL_GAP, (NODE_HEIGHT - 8) / together.length);
    together.forEach((edge, index) => offsets.set(keyOf(edge), (index - (together.length - 1) / 2) * gap));
  }
  return offsets;
}

function Edge({ edge, stops }) {
  const isBusy = edge.at_most > 0;
  const keys = `${edge.routing_keys.map((key) => key || "(empty)").join(", ")}${edge.bindings > edge.routing_keys.length ? ` and ${edge.bindings - edge.routing_keys.length} more` : ""}`;
  return html`<g class=${`edge ${isBusy ? "busy" : ""} ${edge.rate === null ? "bounded" : ""}`}>
    <title>${`${edge.source} → ${edge.destination}: ${keys}; ${shown(edge)}`}</title>
    <path d=${curve(stops)} stroke-width=${isBusy ? Math.min(6, 1.5 + Math.log10(1 + edge.at_most)) : 1.2} marker-end="url(#arrow)" />
  </g>`;
}

/** Return a smooth path through the points: curves between layers, straight lines across them. */
function curve(stops) {
  return stops.slice(1).reduce((path, { x, y }, index) => {
    const from = stops[index];
    const bend = Math.max(30, Math.abs(x - from.x) / 2);
    return y === from.y ? `${path}L${x} ${y}` : `${path}C${from.x + bend} ${from.y} ${x - bend} ${y} ${x} ${y}`;
  }, `M${stops[0].x} ${stops[0].y}`);
}

/** The rate of an edge, near its target, where edges are apart. */
function Rate({ edge, stops }) {
  const { x, y } = stops.at(-1);
  return html`<text class="rate" x=${x - 14} y=${y - 6} text-anchor="end">${shown(edge)}</text>`;
}

/** The rate of an edge; where several ways lead to the same queues, only what it is at most is known. */
const shown = (edge) => `${edge.rate === null ? "≤ " : ""}${rate(edge.at_most)}/s`;

function Node({ node, at, vhost, isSelected }) {
  const isQueue = node.kind === "queue";
  const figures = isQueue ? `${count(node.messages)} ready · ${rate(node.out)}/s out` : `${node.type} · ${rate(node.in)}/s in`;
  const address = isSelected ? to(isQueue ? "queues" : "exchanges", vhost, node.name) : toQuery(to("topology"), { [node.kind]: node.name });
  return html`<a href=${address} class=${`node ${node.kind} ${isSelected ? "selected" : ""}`}
    transform=${`translate(${at.x} ${at.y - NODE_HEIGHT / 2})`} onDblClick=${() => go(to(isQueue ? "queues" : "exchanges", vhost, node.name))}>
    <title>${`${node.name}: ${figures}`}</title>
    <rect width=${NODE_WIDTH} height=${NODE_HEIGHT} rx=${isQueue ? 6 : 24} />
    <text x=${isQueue ? 12 : 20} y="20" class="node-name">${shortened(node.name, isQueue ? 21 : 19)}</text>
    <text x=${isQueue ? 12 : 20} y="37" class="node-figures">${figures}</text>
  </a>`;
}

const shortened = (name, most) => (name.length > most ? `${name.slice(0, most - 1)}…` : name);
