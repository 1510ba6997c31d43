/** The samples that the API returns with counters and gauges. */

/** Spans that a chart can show: seconds, and the seconds between two samples. */
export const SPANS = { "1 min": [60, 5], "10 min": [600, 10], "1 h": [3600, 60], "8 h": [28800, 300], "24 h": [86400, 600] };

/** Return the query that asks for samples of a span, for counts of messages and rates. */
export function sampleQuery(span, ...families) {
  const [age, increment] = SPANS[span];
  return Object.fromEntries(families.flatMap((family) => [[`${family}_age`, age], [`${family}_incr`, increment]]));
}

/**
 * Return a gauge over time.
 * @returns {{times: number[], values: number[]}} oldest first
 */
export function gauge(details) {
  const samples = [...(details?.samples ?? [])].reverse();
  return { times: samples.map((each) => each.timestamp / 1000), values: samples.map((each) => each.sample) };
}

/** Return the rate of a counter over time; each value is the mean since the sample before. */
export function rates(details) {
  const { times, values } = gauge(details);
  const changes = values.map((value, index) => (index ? Math.max(0, value - values[index - 1]) / (times[index] - times[index - 1] || 1) : null));
  return { times: times.slice(1), values: changes.slice(1) };
}
