/** The two charts of everything that has messages: how many wait, and how fast they pass. */
import { html, useMemo } from "../lib/html.js";
import { gauge, rates, SPANS } from "../lib/samples.js";
import { count, rate, rateOf } from "../lib/format.js";
import { Panel } from "./basics.js";
import { Chart } from "./chart.js";
import { Choice } from "./forms.js";

const LENGTHS = [["messages_ready", "Ready"], ["messages_unacknowledged", "Unacknowledged"]];

export const RATES = [
  ["publish", "Publish"], ["publish_in", "In"], ["publish_out", "Out"], ["confirm", "Confirm"], ["deliver_get", "Deliver and get"], ["ack", "Acknowledge"],
  ["redeliver", "Redeliver"], ["return_unroutable", "Returned"], ["drop_unroutable", "Unroutable dropped"],
];

/** A chart of waiting messages. */
export function LengthsChart({ totals, actions }) {
  const series = useMemo(() => LENGTHS.map(([name, label]) => ({ label, latest: count(totals?.[name]), ...gauge(totals?.[`${name}_details`]) })), [totals]);
  return html`<${Panel} title="Messages waiting" actions=${actions}><${Chart} label="Messages waiting" isWhole times=${series[0].times} series=${series} /><//>`;
}

/** A chart of message rates; counters that never counted are left out. */
export function RatesChart({ stats = {}, title = "Messages per second", actions }) {
  const series = useMemo(() => {
    const present = RATES.filter(([name], index) => stats[name] || index === 0 && `${name}_details` in stats).slice(0, 6);
    return present.map(([name, label]) => ({ label, latest: rate(rateOf(stats, name)), ...rates(stats[`${name}_details`]) }));
  }, [stats]);
  const isEmpty = series.length === 0 || series[0].times.length === 0;
  return html`<${Panel} title=${title} actions=${actions}>
    ${isEmpty ? html`<div class="chart empty">No message has passed yet.</div>` : html`<${Chart} label=${title} times=${series[0].times} series=${series} />`}
  <//>`;
}

/** The choice of a span. */
export function SpanChoice({ span, onChange, most = "24 h" }) {
  const names = Object.keys(SPANS);
  const offered = names.slice(0, names.indexOf(most) + 1);
  return html`<${Choice} aria-label="Time span" options=${offered} value=${span} onChange=${onChange} />`;
}
