// Replaces each picture that has its numbers beside it by a plot of uPlot: drag to zoom, double-click to see all again.
(() => {
  "use strict";
  const HEIGHT = 300;

  // Outliers do not flatten the whole plot; a part that was zoomed into is shown completely.
  const range = (plot) => (chart, low, high) => {
    const [first, last] = plot.ends;
    const { min, max } = chart.scales.x;
    const whole = min == null || (min <= first && max >= last);
    if (whole && plot.range) return plot.range;
    if (low == null) return [0, 1];
    return uPlot.rangeNum(low, high, 0.1, true);
  };

  // Points at one time are in the middle of ten minutes: uPlot itself would show the thousand days after it.
  const AROUND = 300;
  const xrange = (plot) => (_, low, high) => {
    const [first, last] = plot.ends;
    const zoomed = low < high && high - low <= 2 * AROUND;
    return first < last || zoomed ? [low, high] : [first - AROUND, first + AROUND];
  };

  const draw = (figure) => {
    const plot = JSON.parse(figure.querySelector("script").textContent);
    const tables = plot.series.map((each) => [each.x, each.y, ...(each.band || [])]);
    const data = uPlot.join(tables);
    const xs = data[0];
    plot.ends = [xs[0], xs[xs.length - 1]];
    const series = [{ label: plot.time ? "time (UTC)" : plot.xunit || "x" }];
    const bands = [];
    for (const each of plot.series) {
      const at = series.length;
      const points = { show: plot.points || each.x.length <= 60, size: plot.points ? 5 : 6, fill: each.colour };
      series.push({
        label: each.label, stroke: each.colour, width: 1.5, spanGaps: true, points,
        ...(plot.points ? { paths: () => null } : {}),
      });
      if (each.band) {
        const edge = { stroke: each.colour + "55", width: 0.5, spanGaps: true, points: { show: false }, class: "edge" };
        series.push({ ...edge, label: each.label + " min" }, { ...edge, label: each.label + " max" });
        bands.push({ series: [at + 2, at + 1], fill: each.colour + "22" });
      }
    }
    const grid = { stroke: "#e6e9ee", width: 1 };
    const unit = plot.unit ? { label: plot.unit, labelSize: 22 } : {};
    const options = {
      width: figure.clientWidth, height: HEIGHT, series, bands,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
      scales: { x: { time: plot.time, range: xrange(plot) }, y: { range: range(plot) } },
      axes: [{ grid, stroke: "#66707f" }, { grid, stroke: "#66707f", size: 70, ...unit }],
      cursor: { drag: { x: true, y: false }, focus: { prox: 24 } },
    };
    const place = document.createElement("div");
    figure.querySelector("svg").replaceWith(place);
    const chart = new uPlot(options, data, place);
    figure.querySelector("figcaption").hidden = false;
    addEventListener("resize", () => chart.setSize({ width: figure.clientWidth, height: HEIGHT }));
    addEventListener("beforeprint", () => chart.setSize({ width: Math.min(figure.clientWidth, 680), height: HEIGHT }));
  };

  document.querySelectorAll("figure.zoom").forEach(draw);
})();
