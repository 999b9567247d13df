// The charts of a report: values under the pointer, zoom along the x axis, series to hide, and the SVG as a file. The
// report's program drew the charts; this script moves the parts of a drawing and draws none itself.

const SVG = "http://www.w3.org/2000/svg";
const KEYS = "Plus and minus zoom, left and right move, 0 shows everything.";
/** Drawings are accurate to a tenth of a unit, so that greater factors would show steps. */
const ZOOM_MAX = 25;
const TEXT_WIDTH = 0.56;

/** An element with attributes and children. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Index of the number in ascending `values` that is nearest to `value`. */
function nearest(values, value) {
  let [low, high] = [0, values.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle + 1] - value <= value - values[middle]) low = middle + 1;
    else high = middle;
  }
  return low;
}

class Chart {
  constructor(data, figure) {
    Object.assign(this, data);
    this.figure = figure;
    this.svg = figure.querySelector("svg");
    this.file = this.fileText();
    [this.left, this.right, this.top, this.bottom] = data.frame;
    /** The shown part of the x axis: positions of its ends, 0 to 1. */
    this.shown = [0, 1];
    this.unit = /\(([^)]*)\)$/.exec(this.x.label)?.[1] ?? "";
    this.collectParts();
    this.clip();
    this.addControls();
    this.addCursor();
    this.listen();
  }

  /** The SVG without the names of its parts: the file that the program writes. */
  fileText() {
    const copy = this.svg.cloneNode(true);
    for (const part of copy.querySelectorAll("[data-part]")) delete part.dataset.part;
    return copy.outerHTML;
  }

  parts(name) {
    return [...this.svg.querySelectorAll(`[data-part="${name}"]`)];
  }

  /** The elements that move, each with its places in the whole drawing. */
  collectParts() {
    const points = of => of.getAttribute("points").split(" ").map(point => point.split(",").map(Number));
    const middle = of => points(of).reduce((sum, [x]) => sum + x, 0) / points(of).length;
    const inSeries = tag => this.series.flatMap((_, i) => this.parts(`series-${i}`).flatMap(part => [...part.querySelectorAll(tag)]));
    this.lines = inSeries("polyline").map(line => [line, points(line)]);
    const bars = inSeries("path").map(bar => [bar, parseFloat(bar.getAttribute("d").slice(1))]);
    this.marks = [...inSeries("polygon").map(mark => [mark, middle(mark)]), ...bars];
    this.spans = this.parts("span").map(span => {
      const x = Number(span.getAttribute("x"));
      return [span, x, x + Number(span.getAttribute("width") ?? 0)];
    });
    this.labels = this.parts("span-label").map(label => [label, Number(label.getAttribute("x"))]);
    this.tickParts = ["grid", "tick", "number"].map(name => {
      const all = this.parts(name);
      return { sample: all[0], place: all[0]?.parentNode, next: all.at(-1)?.nextSibling ?? null, all };
    });
  }

  /** Hides what zooming moves out of the plot. */
  clip() {
    const area = document.createElementNS(SVG, "clipPath");
    area.id = `clip-${this.id}`;
    const box = document.createElementNS(SVG, "rect");
    const room = 8;
    const place = { x: this.left - room, y: this.top - room, width: this.right - this.left + 2 * room, height: this.bottom - this.top + 2 * room };
    for (const [name, value] of Object.entries(place)) box.setAttribute(name, value);
    area.append(box);
    this.svg.prepend(area);
    for (const i of this.series.keys()) {
      for (const part of this.parts(`series-${i}`)) part.setAttribute("clip-path", `url(#${area.id})`);
    }
  }

  addControls() {
    this.readout = make("span", { class: "readout", "aria-hidden": "true" });
    this.focus = make("div", { tabindex: 0, role: "group", "aria-label": `Chart. ${KEYS}` });
    this.svg.setAttribute("aria-label", `${this.svg.getAttribute("aria-label")}. ${this.description()}`);
    const boxes = this.series.length > 1 ? this.series.map((series, i) => this.box(series, i)) : [];
    this.svg.replaceWith(this.focus);
    this.focus.append(this.svg);
    this.focus.before(make("div", { class: "keys" }, ...boxes), this.readout);
    const save = make("button", { type: "button" }, "Save as SVG");
    save.addEventListener("click", () => {
      const link = make("a", { href: URL.createObjectURL(new Blob([this.file], { type: "image/svg+xml" })), download: `${this.id}.svg` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    });
    this.figure.append(save);
  }

  /** A box that shows or hides a series. */
  box(series, i) {
    const box = make("input", { type: "checkbox" });
    box.checked = true;
    box.addEventListener("change", () => {
      for (const part of this.parts(`series-${i}`)) part.style.display = box.checked ? "" : "none";
      series.hidden = !box.checked;
    });
    return make("label", {}, box, make("i", { style: `background:var(--hue-${series.hue})` }), series.name);
  }

  /** The chart for a screen reader. */
  description() {
    const of = this.series.slice(0, 8).map(({ name, y }) => {
      const values = y.filter(value => value !== null);
      if (!values.length) return `${name}: nothing`;
      const sum = values.reduce((a, b) => a + b, 0);
      const most = values.reduce((a, b) => Math.max(a, b));
      return `${name || this.y.label}: mean ${short(sum / values.length)}, largest ${short(most)}`;
    });
    return of.join("; ");
  }

  addCursor() {
    this.cursor = document.createElementNS(SVG, "path");
    this.cursor.setAttribute("class", "cursor");
    this.selection = document.createElementNS(SVG, "rect");
    this.selection.setAttribute("class", "selection");
    this.selection.setAttribute("y", this.top);
    this.selection.setAttribute("height", this.bottom - this.top);
    this.svg.append(this.selection, this.cursor);
  }

  /** Position of an event along the shown part of the axis, 0 to 1. */
  position(event) {
    const box = this.svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * this.svg.viewBox.baseVal.width;
    return (x - this.left) / (this.right - this.left);
  }

  /** The same along the whole axis. */
  whole(position) {
    return this.shown[0] + position * (this.shown[1] - this.shown[0]);
  }

  /** Place in the drawing of what is at `x` in the whole drawing. */
  moved(x) {
    const width = this.right - this.left;
    const part = (x - this.left) / width;
    return this.left + ((part - this.shown[0]) / (this.shown[1] - this.shown[0])) * width;
  }

  /** Shows another part of the x axis: positions of its ends, 0 to 1. */
  show(from, to) {
    const span = Math.min(Math.max(to - from, 1 / ZOOM_MAX), 1);
    const start = Math.min(Math.max(from, 0), 1 - span);
    this.shown = [start, start + span];
    const tenth = x => Math.round(x * 10) / 10;
    for (const [line, points] of this.lines) {
      line.setAttribute("points", points.map(([x, y]) => `${tenth(this.moved(x))},${y}`).join(" "));
    }
    for (const [mark, x] of this.marks) mark.setAttribute("transform", `translate(${tenth(this.moved(x) - x)} 0)`);
    for (const [span, from, to] of this.spans) {
      const [left, right] = [from, to].map(x => Math.min(Math.max(this.moved(x), this.left), this.right));
      span.setAttribute("x", left);
      span.setAttribute("width", right - left);
    }
    for (const [label, x] of this.labels) {
      const at = this.moved(x);
      label.setAttribute("x", at);
      label.style.display = at < this.left || at > this.right ? "none" : "";
    }
    this.drawTicks();
    this.point(null);
  }

  /** Numbers along the x axis: as many as have room. */
  drawTicks() {
    const ends = this.shown.map(part => valueAt(this.x, part)).sort((a, b) => a - b);
    const scale = { ...this.x, min: ends[0], max: ends[1] };
    const size = this.svg.getAttribute("font-size");
    const place = tick => this.left + partOf(scale, tick) * (this.right - this.left);
    const fits = all => all.every((tick, i) => {
      const width = (short(tick).length + short(all[i - 1] ?? tick).length) / 2 * TEXT_WIDTH * size;
      return i === 0 || Math.abs(place(tick) - place(all[i - 1])) >= width + 0.7 * size;
    });
    const counts = [10, 9, 8, 7, 6, 5, 4, 3, 2];
    const all = counts.map(n => ticks(scale, n)).find(fits) ?? [];
    for (const part of this.tickParts) {
      if (!part.sample) continue;
      for (const old of part.all) old.remove();
      part.all = all.map(tick => {
        const copy = part.sample.cloneNode(true);
        for (const name of ["x", "x1", "x2"]) if (copy.hasAttribute(name)) copy.setAttribute(name, place(tick));
        if (copy.tagName === "text") copy.textContent = short(tick);
        return copy;
      });
      for (const copy of part.all) part.place.insertBefore(copy, part.next);
    }
  }

  /** Shows the values at a position of the whole axis, or none. */
  point(position) {
    const inside = position !== null && position >= this.shown[0] && position <= this.shown[1];
    const x = inside ? this.moved(this.left + position * (this.right - this.left)) : 0;
    this.cursor.setAttribute("d", inside ? `M${x} ${this.top}V${this.bottom}` : "");
    if (!inside) return this.readout.replaceChildren();
    const at = valueAt(this.x, position);
    const values = this.series.flatMap(series => {
      const value = series.y[nearest(series.x, at)];
      if (series.hidden || value === null || value === undefined) return [];
      return [make("span", {}, make("i", { style: `background:var(--hue-${series.hue})` }), short(value))];
    });
    this.readout.replaceChildren(`${short(at)} ${this.unit} `, ...values.slice(0, 8));
  }

  /** Moves the ends of the shown part by fractions of it. */
  by(from, to) {
    const [start, end] = this.shown;
    this.show(start + (end - start) * from, end + (end - start) * to);
  }

  listen() {
    const { svg } = this;
    let start = null;
    const within = event => Math.min(Math.max(this.position(event), 0), 1);
    svg.addEventListener("pointerdown", event => {
      start = within(event);
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointermove", event => {
      for (const chart of charts) if (chart.axis === this.axis) chart.point(this.whole(this.position(event)));
      if (start !== null) this.select(start, within(event));
    });
    svg.addEventListener("pointerup", event => {
      const ends = [start, within(event)].sort((a, b) => a - b).map(part => this.whole(part));
      if (start !== null && ends[1] - ends[0] > 0.01 * (this.shown[1] - this.shown[0])) this.show(...ends);
      start = null;
      this.select(0, 0);
    });
    svg.addEventListener("pointerleave", () => {
      for (const chart of charts) chart.point(null);
    });
    svg.addEventListener("dblclick", () => this.show(0, 1));
    svg.addEventListener("wheel", event => this.onWheel(event), { passive: false });
    this.focus.addEventListener("keydown", event => this.onKey(event));
  }

  /** Shades the stretch between two positions of the shown part. */
  select(from, to) {
    const width = this.right - this.left;
    this.selection.setAttribute("x", this.left + Math.min(from, to) * width);
    this.selection.setAttribute("width", Math.abs(to - from) * width);
  }

  onWheel(event) {
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
    event.preventDefault();
    if (event.shiftKey) {
      const step = (event.deltaY || event.deltaX) / 600;
      return this.by(step, step);
    }
    const factor = Math.exp(event.deltaY / 300);
    const at = this.position(event);
    this.by(at - at * factor, (1 - at) * (factor - 1));
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      "+": () => this.by(0.2, -0.2),
      "=": () => this.by(0.2, -0.2),
      "-": () => this.by(-0.35, 0.35),
      ArrowLeft: () => this.by(-0.1, -0.1),
      ArrowRight: () => this.by(0.1, 0.1),
      "0": () => this.show(0, 1),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }
}

const charts = [];
for (const data of JSON.parse(document.getElementById("charts").textContent)) {
  const figure = document.getElementById(`chart-${data.id}`);
  if (!data.series.some(series => series.x.length)) continue;
  try {
    charts.push(new Chart({ ...data, axis: JSON.stringify(data.x) }, figure));
    figure.classList.add("live");
  } catch (error) {
    console.error(data.id, error);
  }
}
// Paper can be neither unfolded nor zoomed.
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("main details")) details.open = true;
  for (const chart of charts) chart.show(0, 1);
});
