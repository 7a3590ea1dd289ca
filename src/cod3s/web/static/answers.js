/** The list of answers: a card for each bin, in the order of their numbers, those that the user picked last.
 *
 * It makes no requests: its callbacks do (`onAsk`, `onCopy`, `onRemove`, `onHighlight`, `fetchBin`).
 */

import { make } from "./dom.js";
import { pattern } from "./signatures.js";
import { binWords, criticWords, plural, score } from "./words.js";

export class AnswerList {
  constructor(root, callbacks) {
    this.root = root;
    this.callbacks = callbacks;
    this.cards = [];
  }

  clear() {
    this.cards = [];
    this.root.replaceChildren();
  }

  /** Cards for chosen bins that have no answer yet. */
  expect(chosen, { picked = false } = {}) {
    for (const bin of chosen) {
      const card = { bin, answers: [], picked, open: false, element: make("li", {}) };
      this.cards.push(card);
      this.listen(card);
    }
    this.renumber();
  }

  /** Adds an answer to its bin's card, with what the server says about the bin. */
  fill(answer, caption) {
    const card = this.find(answer.signature);
    if (!card) return;
    card.answers.push(answer);
    card.caption ||= caption;
    this.render(card);
  }

  /** Makes the cards of these bins agree with the final record of their request. */
  settle(record, signatures) {
    for (const card of this.cards.filter(({ bin }) => signatures.has(bin.signature))) {
      const answers = record.answers.filter((answer) => answer.signature === card.bin.signature);
      const same = answers.map(({ text }) => text).join("\n") === card.answers.map(({ text }) => text).join("\n");
      card.answers = answers;
      if (!same) this.render(card);
    }
    this.dropEmpty(signatures);
  }

  /** Removes the cards of these bins that wait for an answer that will not come. */
  dropEmpty(signatures) {
    const empty = this.cards.filter(({ bin, answers }) => signatures.has(bin.signature) && !answers.length);
    empty.forEach((card) => this.drop(card));
    this.renumber();
  }

  remove(signature) {
    const card = this.find(signature);
    if (card) this.drop(card);
    this.renumber();
  }

  drop(card) {
    card.element.remove();
    this.cards.splice(this.cards.indexOf(card), 1);
  }

  find(signature) {
    return this.cards.find((card) => card.bin.signature === signature);
  }

  /** What the map lights up. */
  marks() {
    return this.cards.map(({ bin, answers, picked, number }) => ({ ...bin, number, picked, pending: !answers.length }));
  }

  /** All answers that are there, with what their cards show besides. */
  answers() {
    return this.cards.flatMap(({ answers, picked, caption }) => answers.map((answer) => ({ ...answer, picked, caption: caption ?? "" })));
  }

  /** Moves the focus to a bin's card. */
  goTo(signature) {
    const element = this.find(signature)?.element;
    element?.focus({ preventScroll: true });
    element?.scrollIntoView({ block: "nearest", behavior: calm() ? "auto" : "smooth" });
  }

  highlight(signature) {
    for (const { bin, element } of this.cards) element.classList.toggle("hot", bin.signature === signature);
  }

  // Cards

  listen(card) {
    const { element, bin } = card;
    for (const kind of ["pointerenter", "focusin"]) element.addEventListener(kind, () => this.callbacks.onHighlight(bin.signature));
    for (const kind of ["pointerleave", "focusout"]) element.addEventListener(kind, () => this.callbacks.onHighlight(null));
  }

  renumber() {
    this.cards.forEach((card, index) => {
      if (card.number === index + 1) return;
      card.number = index + 1;
      this.render(card);
    });
    this.root.append(...this.cards.map((card) => card.element).filter((element) => !element.isConnected));
  }

  render(card) {
    const { element, bin, answers, picked, number } = card;
    const focused = element.contains(document.activeElement) ? document.activeElement.dataset.action : null;
    element.className = ["bin", picked ? "picked" : "", answers.length ? "" : "pending"].filter(Boolean).join(" ");
    element.tabIndex = -1;
    element.dataset.signature = bin.signature;
    element.setAttribute("aria-busy", String(!answers.length));
    element.replaceChildren(
      make("span", { class: "number", "aria-hidden": "true", text: number }),
      make("div", { class: "body" }, ...this.texts(card), this.binLine(card), this.facts(card), this.actions(card), this.nearby(card)),
    );
    if (focused) element.querySelector(`[data-action="${focused}"]`)?.focus();
  }

  texts({ answers, picked }) {
    const badge = picked ? make("span", { class: "badge", text: "picked" }) : null;
    if (!answers.length) return [make("p", { class: "answer" }, make("span", { class: "writing", text: "writing…" }), badge)];
    return answers.map(({ text }, index) => make("p", { class: "answer" }, make("span", { class: "text", text }), index ? null : badge));
  }

  /** What the bin is like, if that tells something about the answer. */
  binLine({ caption }) {
    return caption ? make("p", { class: "like" }, "its bin is like: ", make("span", { class: "medoid", text: caption })) : null;
  }

  facts({ bin, answers }) {
    const scores = answers.map((answer) => criticWords(answer) || `score ${score(answer.score)}`).join(", ");
    return make("p", { class: "facts" },
      make("span", { class: "bits" }, pattern(bin.signature)),
      make("span", { text: plural(bin.count, "training sentence") }),
      answers.length ? make("span", { text: scores }) : null,
    );
  }

  actions(card) {
    const { bin, answers, picked, number, open } = card;
    if (!answers.length) return null;
    const copied = answers.map(({ text }) => text).join("\n");
    const button = (action, text, label, click, more) =>
      make("button", { type: "button", class: "small", "data-action": action, "aria-label": label, text, click, ...more });
    return make("div", { class: "actions" },
      button("copy", "Copy", `Copy answer ${number}`, (event) => this.callbacks.onCopy(copied, event.target)),
      button("nearby", "Nearby bins", `Bins near answer ${number}`, () => this.toggle(card), { "aria-expanded": String(open) }),
      picked ? button("remove", "Remove", `Remove answer ${number}`, () => this.callbacks.onRemove(bin.signature)) : null,
    );
  }

  // Neighboring bins: the map's keyboard equivalent

  nearby(card) {
    if (!card.open) return null;
    const box = make("div", { class: "nearby" });
    if (card.trouble) box.append(make("p", { class: "problem", text: card.trouble }));
    else if (!card.around) box.append(make("p", { class: "quiet", text: "Looking…" }));
    else box.append(...this.around(card.around));
    return box;
  }

  around({ samples, neighbors }) {
    const same = samples.length ? make("p", { class: "quiet", text: "In the same bin: " }, make("span", { class: "medoid", text: samples.join(" · ") })) : null;
    const asks = neighbors.length ? "Choose a bin to see an answer from there:" : "No other bins are near.";
    const list = make("ul", {}, ...neighbors.map((bin) => make("li", {}, this.neighbor(bin))));
    return [same, make("p", { class: "quiet", text: asks }), list].filter(Boolean);
  }

  neighbor(bin) {
    return make("button", { type: "button", class: "neighbor", "data-action": bin.signature, click: () => this.callbacks.onAsk(bin) },
      make("span", { class: "medoid", text: binWords(bin) }),
      make("span", { class: "quiet", text: `${plural(bin.hamming, "bit")} away, ${plural(bin.count, "sentence")}` }),
    );
  }

  async toggle(card) {
    card.open = !card.open;
    this.render(card);
    if (!card.open || card.around) return;
    try {
      card.trouble = "";
      card.around = await this.callbacks.fetchBin(card.bin.signature);
    } catch (trouble) {
      card.trouble = [trouble.message, trouble.hint].join(" ");
    }
    this.render(card);
  }
}

const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
