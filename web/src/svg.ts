// A canvas that writes SVG, for papers and slides: the charts of the screen are drawn on it by the same code.

const rounded = (value: number): number => Math.round(value * 100) / 100;
const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");

/** Stands for `Path2D`. */
class Outline {
  d: string;

  constructor(from?: Outline) {
    this.d = from?.d ?? "";
  }

  moveTo(x: number, y: number): void {
    this.d += `M${rounded(x)} ${rounded(y)}`;
  }

  lineTo(x: number, y: number): void {
    this.d += `${this.d ? "L" : "M"}${rounded(x)} ${rounded(y)}`;
  }

  closePath(): void {
    this.d += "Z";
  }

  rect(x: number, y: number, width: number, height: number): void {
    this.moveTo(x, y);
    this.d += `h${rounded(width)}v${rounded(height)}h${rounded(-width)}Z`;
  }

  /** A whole circle. */
  arc(x: number, y: number, radius: number): void {
    const r = rounded(radius);
    this.moveTo(x - radius, y);
    this.d += `a${r} ${r} 0 0 0 ${2 * r} 0a${r} ${r} 0 0 0 ${-2 * r} 0Z`;
  }
}

const STATE = {
  fillStyle: "#000",
  strokeStyle: "#000",
  lineWidth: 1,
  lineDash: [] as number[],
  font: "10px sans-serif",
  textAlign: "left",
  textBaseline: "alphabetic",
  x: 0,
  y: 0,
  degrees: 0,
  clipped: "",
};
const ANCHOR: Record<string, string> = { center: "middle", right: "end" };
/** Distance of the baseline below the given point, in sizes of the font. */
const BASELINE: Record<string, number> = { top: 0.85, middle: 0.35, bottom: -0.2 };

/** The part of a canvas's 2D context that the charts use. */
class Context extends Outline {
  readonly canvas: HTMLCanvasElement;
  readonly #sheet: Sheet;
  #out = "";
  #state = { ...STATE };
  #saved: (typeof STATE)[] = [];

  constructor(canvas: HTMLCanvasElement, sheet: Sheet) {
    super();
    this.canvas = canvas;
    this.#sheet = sheet;
    for (const name of ["fillStyle", "strokeStyle", "lineWidth", "font", "textAlign", "textBaseline"] as const) {
      Object.defineProperty(this, name, { set: value => Object.assign(this.#state, { [name]: value }) });
    }
  }

  get content(): string {
    return this.#out;
  }

  save(): void {
    this.#saved.push({ ...this.#state });
  }

  restore(): void {
    this.#state = this.#saved.pop() ?? { ...STATE };
  }

  translate(x: number, y: number): void {
    this.#state.x += x;
    this.#state.y += y;
  }

  rotate(angle: number): void {
    this.#state.degrees += (angle * 180) / Math.PI;
  }

  setLineDash(dash: number[]): void {
    this.#state.lineDash = dash;
  }

  beginPath(): void {
    this.d = "";
  }

  clip({ d }: Outline = this): void {
    const id = `clip-${++this.#sheet.clips}`;
    this.#out += `<clipPath id="${id}"${this.#state.clipped}><path d="${d}"/></clipPath>`;
    this.#state.clipped = ` clip-path="url(#${id})"`;
  }

  stroke({ d }: Outline = this): void {
    const { strokeStyle, lineWidth, lineDash } = this.#state;
    const dash = lineDash.length ? ` stroke-dasharray="${lineDash.join(" ")}"` : "";
    this.#draw(`path d="${d}" fill="none" stroke-width="${rounded(lineWidth)}"${dash}${paint("stroke", strokeStyle)}`);
  }

  fill({ d }: Outline = this): void {
    this.#draw(`path d="${d}"${paint("fill", this.#state.fillStyle)}`);
  }

  strokeRect(x: number, y: number, width: number, height: number): void {
    const outline = new Outline();
    outline.rect(x, y, width, height);
    this.stroke(outline);
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    const outline = new Outline();
    outline.rect(x, y, width, height);
    this.fill(outline);
  }

  clearRect(): void {
    this.#out = "";
  }

  fillText(text: string, x: number, y: number): void {
    if (!text) return;
    const { font, textAlign, textBaseline, fillStyle } = this.#state;
    const [, weight, size = 10] = /(?:(\d+) )?([\d.]+)px/.exec(font) ?? [];
    const below = Number(size) * (BASELINE[textBaseline] ?? 0);
    const bold = weight ? ` font-weight="${weight}"` : "";
    const anchor = ANCHOR[textAlign] ? ` text-anchor="${ANCHOR[textAlign]}"` : "";
    const at = `x="${rounded(x)}" y="${rounded(y + below)}"`;
    this.#draw(`text ${at} font-size="${size}"${bold}${anchor}${paint("fill", fillStyle)}`, escaped(text));
  }

  /** Another canvas that writes SVG. */
  drawImage(canvas: HTMLCanvasElement, x: number, y: number): void {
    this.#out += `<g transform="translate(${rounded(x)} ${rounded(y)})">${this.#sheet.of(canvas).content}</g>`;
  }

  #draw(tag: string, text = ""): void {
    const { x, y, degrees, clipped } = this.#state;
    const moved = x || y ? `translate(${rounded(x)} ${rounded(y)})` : "";
    const turned = degrees ? `rotate(${rounded(degrees)})` : "";
    const transform = moved || turned ? ` transform="${moved}${turned}"` : "";
    this.#out += `<${tag}${transform}${clipped}>${text}</${tag.slice(0, 4)}>`;
  }
}

/** A colour as programs without CSS read it. */
function paint(name: string, color: string): string {
  const [, rgb, opacity] = /^rgba\((.*), ([\d.]+)\)$/.exec(color) ?? [];
  return rgb ? ` ${name}="rgb(${rgb})" ${name}-opacity="${opacity}"` : ` ${name}="${color}"`;
}

/** The canvases that are drawn together. */
class Sheet {
  clips = 0;
  readonly #contexts = new Map<HTMLCanvasElement, Context>();

  of(canvas: HTMLCanvasElement): Context {
    const context = this.#contexts.get(canvas) ?? new Context(canvas, this);
    this.#contexts.set(canvas, context);
    return context;
  }
}

/** SVG of the canvas that `draw` returns. Each canvas that it draws on writes SVG; `px` of its pixels are one of CSS. */
export function asSvg(draw: () => HTMLCanvasElement, px: number): string {
  const sheet = new Sheet();
  const { getContext } = HTMLCanvasElement.prototype;
  const { Path2D } = globalThis;
  try {
    Object.assign(HTMLCanvasElement.prototype, {
      getContext(this: HTMLCanvasElement): Context {
        return sheet.of(this);
      },
    });
    Object.assign(globalThis, { Path2D: Outline });
    const canvas = draw();
    const { width, height } = canvas;
    const size = `viewBox="0 0 ${width} ${height}" width="${rounded(width / px)}" height="${rounded(height / px)}"`;
    return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="system-ui, sans-serif">${sheet.of(canvas).content}</svg>`;
  } finally {
    Object.assign(HTMLCanvasElement.prototype, { getContext });
    Object.assign(globalThis, { Path2D });
  }
}
