// Draws the report's charts with uPlot over the data in #charts. Without it the static drawings
// stay; on paper they are shown in any case.
"use strict";
(() => {
  const { hues, charts } = JSON.parse(document.getElementById("charts").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // Black is the one colour of the palette that a dark page swallows.
  const color = hue => (hues[hue].color === "#000000" ? css("--ink") : hues[hue].color);
  const short = v => (v == null ? "–" : String(+v.toPrecision(4)));
  const linePaths = {
    line: uPlot.paths.linear(),
    dashed: uPlot.paths.linear(),
    dotted: uPlot.paths.linear(),
    "line-marks": uPlot.paths.linear(),
    steps: uPlot.paths.stepped({ align: 1 }),
    marks: () => null,
  };

  function drawSpans(u, chart) {
    const { ctx, bbox } = u;
    ctx.save();
    for (const span of chart.spans) {
      const ends = [span.from, span.to].map(v => u.valToPos(v, "x", true));
      const left = Math.max(Math.min(...ends), bbox.left);
      const right = Math.min(Math.max(...ends), bbox.left + bbox.width);
      if (right <= left) continue;
      ctx.fillStyle = css("--span");
      ctx.fillRect(left, bbox.top, right - left, bbox.height);
      ctx.fillStyle = css("--faint");
      ctx.font = `${12 * uPlot.pxRatio}px sans-serif`;
      ctx.textAlign = "left";
      ctx.textBaseline = "top";
      ctx.fillText(span.label, left + 5 * uPlot.pxRatio, bbox.top + 4 * uPlot.pxRatio);
    }
    ctx.restore();
  }

  // Error bars and markers, which tell series apart without colour.
  function drawMarks(u, chart) {
    const { ctx, bbox } = u;
    const px = uPlot.pxRatio;
    const bottom = bbox.top + bbox.height;
    const yOf = v => Math.min(Math.max(u.valToPos(v, "y", true), bbox.top - 1e4), bottom);
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left - 6 * px, bbox.top - 6 * px, bbox.width + 12 * px, bbox.height + 12 * px);
    ctx.clip();
    chart.series.forEach((series, index) => {
      if (!u.series[index + 1].show) return;
      ctx.strokeStyle = ctx.fillStyle = color(series.hue);
      ctx.lineWidth = 1.5 * px;
      const all = series.style === "marks" || series.style === "line-marks";
      const some = chart.marked && (series.style === "line" || series.style === "steps");
      const every = all ? 0 : 110 * px;
      let last = bbox.left + (every * (series.hue % 4 - 4)) / 4;
      series.x.forEach((xValue, i) => {
        if (series.y[i] == null) return;
        const x = u.valToPos(xValue, "x", true);
        const low = series.low && series.low[i];
        const high = series.high && series.high[i];
        if (low != null && high != null) {
          const ends = [yOf(low), yOf(high)];
          ctx.beginPath();
          ctx.moveTo(x, ends[0]);
          ctx.lineTo(x, ends[1]);
          for (const y of ends) {
            ctx.moveTo(x - 4 * px, y);
            ctx.lineTo(x + 4 * px, y);
          }
          ctx.stroke();
        }
        if (!(all || some) || x < bbox.left - px || Math.abs(x - last) < every) return;
        last = x;
        const y = u.valToPos(series.y[i], "y", true);
        ctx.beginPath();
        for (const [dx, dy] of hues[series.hue].marker) ctx.lineTo(x + dx * 4 * px, y + dy * 4 * px);
        ctx.closePath();
        if (some) {
          // Stands out from a dense line of its own colour.
          ctx.strokeStyle = css("--paper");
          ctx.lineWidth = 3 * px;
          ctx.stroke();
        }
        ctx.fill();
      });
    });
    ctx.restore();
  }

  function options(chart, width) {
    const axis = (a, size) => ({
      label: a.label,
      labelSize: 24,
      size,
      font: "13px sans-serif",
      labelFont: "13px sans-serif",
      stroke: () => css("--ink"),
      grid: { stroke: () => css("--rule"), width: 1 },
      ticks: { stroke: () => css("--rule"), width: 1 },
      values: (u, splits) => splits.map(v => (v == null ? "" : short(v))),
    });
    const scale = (a, range) => ({ time: false, distr: a.log ? 3 : 1, dir: a.reversed ? -1 : 1, range });
    const { x, y } = chart;
    const xs = chart.series.flatMap(s => s.x);
    const first = xs.reduce((a, b) => Math.min(a, b));
    const end = xs.reduce((a, b) => Math.max(a, b));
    return {
      width,
      height: Math.round(Math.min(Math.max(width * 0.48, 240), 420)),
      scales: {
        // All of the data: the chart's own range. Zoomed in: what was selected.
        x: scale(x, (u, min, max) => (min <= first && max >= end ? [x.min, x.max] : [min, max])),
        y: scale(y, () => [y.min, y.max]),
      },
      axes: [axis(x, 34), axis(y, 56)],
      cursor: { points: { size: 7 } },
      legend: { markers: { width: 0, fill: (u, i) => (i ? color(chart.series[i - 1].hue) : null) } },
      series: [
        { label: x.label, value: (u, v) => short(v) },
        ...chart.series.map(s => ({
          label: s.name || y.label,
          stroke: () => color(s.hue),
          width: 1.75,
          dash: { dashed: [7, 5], dotted: [2, 4] }[s.style],
          paths: linePaths[s.style],
          points: { show: false },
          value: (u, v) => short(v),
        })),
      ],
      hooks: {
        drawClear: [u => drawSpans(u, chart)],
        draw: [u => drawMarks(u, chart)],
      },
    };
  }

  function saveButton(figure, chart) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Save as SVG";
    button.onclick = () => {
      const svg = figure.querySelector(".static svg").outerHTML;
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
      link.download = `${chart.id}.svg`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    };
    figure.append(button);
  }

  const plots = [];
  for (const chart of charts) {
    const figure = document.getElementById(`chart-${chart.id}`);
    const place = figure.querySelector(".live");
    if (!chart.series.some(s => s.x.length)) continue;
    try {
      const data = uPlot.join(chart.series.map(s => [s.x, s.y]));
      const width = () => Math.floor(figure.clientWidth);
      const plot = new uPlot(options(chart, width()), data, place);
      figure.classList.add("drawn");
      new ResizeObserver(() => {
        if (width() && width() !== plot.width) {
          const { height } = options(chart, width());
          plot.setSize({ width: width(), height });
        }
      }).observe(figure);
      saveButton(figure, chart);
      plots.push(plot);
    } catch (error) {
      place.replaceChildren();
      console.error(chart.id, error);
    }
  }
  // Paper cannot be unfolded.
  addEventListener("beforeprint", () => {
    document.querySelectorAll("main details").forEach(details => (details.open = true));
  });
  dark.addEventListener("change", () => plots.forEach(plot => plot.redraw(false)));
})();
