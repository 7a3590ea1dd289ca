/** The picture of the meaning space: thousands of faint dots on a canvas, chosen bins as numbered marks over them.
 *
 * Its callbacks decide what a choice does: `onAsk` for a bin, `onChoose` and `onHover` for the mark of an answer.
 */

import { make, makeSvg } from "./dom.js";
import { fitPlaces, hamming } from "./signatures.js";
import { spread } from "./spread.js";
import { binWords, plural } from "./words.js";

const MARGIN = 18;
const REACH = 14; // how near a pointer must come to a dot, in pixels
const MARK = 10; // radius of a numbered mark
const NEAR_BITS = 2; // dots this many bits from the pointed one are shown with it
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class MeaningMap {
  constructor(root, speech, callbacks) {
    this.root = root;
    this.speech = speech;
    this.callbacks = callbacks;
    [this.canvas, this.overlay, this.tip] = root.children;
    this.bins = [];
    this.marks = [];
    this.seen = new Set(); // signatures of the marks that are drawn already
    this.pointed = null;
    this.place = fitPlaces([]);
    new ResizeObserver(() => this.draw()).observe(root);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    this.listen();
  }

  /** Shows these bins; the marks stay. */
  show(bins) {
    this.bins = bins;
    this.place = fitPlaces(bins);
    this.pointed = null;
    this.draw();
    this.showTip();
  }

  /** Lights up chosen bins: `{signature, number, picked, pending, count, medoid}` each. */
  light(marks) {
    this.marks = marks;
    this.drawMarks();
  }

  /** Highlights the mark of a bin, or none. */
  highlight(signature) {
    for (const mark of this.overlay.querySelectorAll(".mark")) {
      mark.classList.toggle("hot", mark.dataset.signature === signature);
    }
  }

  // Drawing

  draw() {
    const { width, height } = this.root.getBoundingClientRect();
    if (!width) return;
    const sharpness = window.devicePixelRatio || 1;
    this.size = { width, height };
    this.canvas.width = Math.round(width * sharpness);
    this.canvas.height = Math.round(height * sharpness);
    this.overlay.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const context = this.canvas.getContext("2d");
    context.scale(sharpness, sharpness);
    this.drawDots(context);
    this.drawMarks();
  }

  drawDots(context) {
    const colors = getComputedStyle(this.root);
    const [faint, strong] = [colors.getPropertyValue("--dot"), colors.getPropertyValue("--dot-near")];
    const most = Math.max(1, ...this.bins.map((bin) => bin.count));
    for (const bin of this.bins) {
      const near = this.pointed && hamming(bin.signature, this.pointed.signature) <= NEAR_BITS;
      const { x, y } = this.pixels(bin);
      context.beginPath();
      context.arc(x, y, radius(bin.count, most) + (near ? 1 : 0), 0, 2 * Math.PI);
      context.fillStyle = near ? strong : faint;
      context.fill();
    }
  }

  drawMarks() {
    if (!this.size) return;
    const dots = this.marks.map((mark) => this.pixels(mark));
    const places = spread(dots, 2 * MARK + 2, { ...this.size, margin: MARK + 2 });
    const leads = this.marks.map((mark, i) =>
      makeSvg("line", { class: classOf("lead", mark), x1: dots[i].x, y1: dots[i].y, x2: places[i].x, y2: places[i].y }),
    );
    const marks = this.marks.map((mark, i) => this.drawMark(mark, places[i]));
    this.overlay.replaceChildren(...leads, ...marks, ...this.ring());
    this.seen = new Set(this.marks.map(({ signature }) => signature));
  }

  drawMark(mark, { x, y }) {
    const inner = makeSvg("g", { class: this.seen.has(mark.signature) ? null : "pop" },
      makeSvg("circle", { r: MARK }),
      makeSvg("text", { text: mark.number, "text-anchor": "middle", dy: "0.35em" }));
    return makeSvg("g", { class: classOf("mark", mark), transform: `translate(${x} ${y})`, "data-signature": mark.signature }, inner);
  }

  ring() {
    if (!this.pointed) return [];
    const { x, y } = this.pixels(this.pointed);
    return [makeSvg("circle", { class: "ring", cx: x, cy: y, r: 7 })];
  }

  pixels({ signature }) {
    const { x, y } = this.place(signature);
    const { width, height } = this.size;
    return { x: MARGIN + x * (width - 2 * MARGIN), y: MARGIN + y * (height - 2 * MARGIN) };
  }

  // Pointing

  listen() {
    this.root.addEventListener("pointermove", (event) => event.pointerType !== "touch" && this.hover(event));
    this.root.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && this.point(null));
    this.root.addEventListener("click", (event) => this.click(event));
    this.root.addEventListener("keydown", (event) => this.key(event));
    this.root.addEventListener("focus", () => this.root.matches(":focus-visible") && this.point(this.firstBin(), { speak: true }));
    this.root.addEventListener("blur", () => this.point(null));
  }

  hover(event) {
    const signature = event.target.closest(".mark")?.dataset.signature ?? null;
    this.callbacks.onHover(signature);
    this.highlight(signature);
    this.point(signature ? this.marked(signature) : this.under(event));
  }

  /** A click asks at once. A finger covers the dots, so a first tap shows what it touched, and a second asks. */
  click(event) {
    const mark = event.target.closest(".mark");
    if (mark) {
      this.callbacks.onChoose(mark.dataset.signature);
      return;
    }
    const touch = event.pointerType === "touch";
    const bin = this.under(event, touch ? 2 * REACH : REACH);
    const first = touch && bin?.signature !== this.pointed?.signature;
    this.point(bin, { touch });
    if (bin && !first) this.callbacks.onAsk(bin);
  }

  key(event) {
    if (event.key in ARROWS) this.point(this.towards(ARROWS[event.key]), { speak: true });
    else if (event.key === "Enter" && this.pointed) this.callbacks.onAsk(this.pointed);
    else if (event.key === "Escape") this.point(null);
    else return;
    event.preventDefault();
  }

  under(event, reach = REACH) {
    const box = this.root.getBoundingClientRect();
    const at = { x: event.clientX - box.left, y: event.clientY - box.top };
    return nearest(this.bins, (bin) => {
      const { x, y } = this.pixels(bin);
      const away = Math.hypot(x - at.x, y - at.y);
      return away <= reach ? away : Infinity;
    });
  }

  marked(signature) {
    return this.marks.find((mark) => mark.signature === signature) ?? null;
  }

  firstBin() {
    return this.marks[0] ?? this.bins[0] ?? null;
  }

  /** The nearest dot or mark in a direction; distance to the side counts double. */
  towards([right, down]) {
    if (!this.pointed) return this.firstBin();
    const from = this.pixels(this.pointed);
    const next = nearest([...this.marks, ...this.bins], (bin) => {
      const { x, y } = this.pixels(bin);
      const ahead = (x - from.x) * right + (y - from.y) * down;
      const aside = Math.abs((x - from.x) * down) + Math.abs((y - from.y) * right);
      return ahead > 3 ? ahead + 2 * aside : Infinity;
    });
    return next ?? this.pointed;
  }

  point(bin, { speak = false, touch = false } = {}) {
    if (bin?.signature === this.pointed?.signature) return;
    this.pointed = bin;
    this.draw();
    this.showTip(touch);
    if (speak && bin) this.speech.textContent = `${binWords(bin)}, ${plural(bin.count, "sentence")}`;
  }

  showTip(touch = false) {
    this.tip.hidden = !this.pointed;
    if (!this.pointed) return;
    const mark = this.marked(this.pointed.signature);
    const ask = mark ? `answer ${mark.number}` : `${touch ? "Tap again" : "Click"} for an answer from here`;
    this.tip.replaceChildren(
      make("span", { class: "medoid", text: binWords(this.pointed) }),
      make("span", { class: "quiet", text: `${plural(this.pointed.count, "sentence")} · ${ask}` }),
    );
    this.placeTip();
  }

  placeTip() {
    const { x, y } = this.pixels(this.pointed);
    const { offsetWidth, offsetHeight } = this.tip;
    const left = Math.min(Math.max(4, x - offsetWidth / 2), this.size.width - offsetWidth - 4);
    const above = y - offsetHeight - 14;
    this.tip.style.transform = `translate(${left}px, ${above > 4 ? above : y + 14}px)`;
  }
}

const radius = (count, most) => 0.9 + 2.6 * Math.sqrt(count / most);

const classOf = (name, { picked, pending }) => [name, picked ? "picked" : "", pending ? "pending" : ""].filter(Boolean).join(" ");

/** The bin with the least distance, or null if every distance is infinite. */
function nearest(bins, distance) {
  let best = null;
  let least = Infinity;
  for (const bin of bins) {
    const away = distance(bin);
    if (away < least) [best, least] = [bin, away];
  }
  return best;
}
