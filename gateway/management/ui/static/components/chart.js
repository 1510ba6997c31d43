/** A chart over time, drawn by uPlot. */
import { html, useEffect, useRef } from "../lib/html.js";
import { whenColoursChange } from "../lib/theme.js";
import { shortCount } from "../lib/format.js";
import uPlot from "../vendor/uplot/uPlot.esm.js";

const HEIGHT = 212;

/**
 * A chart with its legend.
 * @param {{label: string, times: number[], series: Array<{label: string, values: number[], latest: string}>}} properties
 *   `times` are seconds since 1970; `latest` is the last value as text
 */
export function Chart({ label, times, series, isWhole }) {
  const place = useRef(null);
  const plot = useRef(null);
  const data = [times, ...series.map((each) => each.values)];
  const labels = series.map((each) => each.label).join();

  useEffect(() => {
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(optionsOf(place.current, series.length, isWhole), data, place.current);
    };
    draw();
    const watch = new ResizeObserver(() => plot.current.setSize({ width: place.current.clientWidth, height: HEIGHT }));
    watch.observe(place.current);
    const endColours = whenColoursChange(draw);
    return () => {
      watch.disconnect();
      endColours();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [labels]);

  useEffect(() => plot.current?.setData(data), [times, series]);

  return html`<div>
    <div class="chart-legend">${series.map((each, index) => html`<span key=${each.label}><span class=${`swatch series-${index + 1}`}></span>${each.label} <b>${each.latest}</b></span>`)}</div>
    <div class="chart" ref=${place} role="img" aria-label=${`${label}: ${series.map((each) => `${each.label} ${each.latest}`).join(", ")}`}></div>
  </div>`;
}

function optionsOf(place, amount, isWhole) {
  const axis = { stroke: colourOf(place, "axis-probe"), grid: { stroke: colourOf(place, "grid-probe"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  return {
    width: place.clientWidth || 300,
    height: HEIGHT,
    padding: [10, 20, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 5 } },
    scales: { y: { range: (_, low, high) => [0, Math.max(high * 1.1, 1)] } },
    axes: [{ ...axis, size: 28, space: 64, incrs: MINUTES, values: clockTimes }, { ...axis, size: 46, values: (_, splits) => splits.map(shortCount), ...(isWhole ? { incrs: WHOLE } : {}) }],
    series: [{}, ...Array.from({ length: amount }, (_, index) => ({ stroke: colourOf(place, `series-${index + 1}`), width: 1.6, points: { show: false } }))],
  };
}

/** Distances of grid lines in time: their labels have no seconds. */
const MINUTES = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440].map((minutes) => minutes * 60);

/** Distances of grid lines for counts, which have no fractions. */
const WHOLE = Array.from({ length: 13 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

const HOURS = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

function clockTimes(_, splits) {
  return splits.map((seconds) => HOURS.format(seconds * 1000));
}

/** Return the colour of a class as the browser computes it in the current theme. */
function colourOf(place, name) {
  const probe = document.createElement("span");
  probe.className = name;
  place.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
