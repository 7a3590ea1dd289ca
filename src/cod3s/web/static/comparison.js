/** The column beside the answers: those of plain beam search, and how many of each mean something different. */

import { byId, make, say } from "./dom.js";
import { score, thresholdWords, verdictWords } from "./words.js";

export class Comparison {
  clear() {
    for (const id of ["verdict-cod3s", "verdict-s2s", "plain-note"]) say(byId(id), "");
    byId("plain-progress").textContent = "";
    byId("plain-answers").replaceChildren();
  }

  /** Shows the column, or hides it. */
  open(wanted) {
    byId("plain").hidden = !wanted;
    byId("stage").classList.toggle("comparing", wanted);
    if (!wanted) this.clear();
  }

  wait() {
    this.clear();
    byId("plain-progress").textContent = "asking…";
  }

  /** No answer will come. */
  halt() {
    byId("plain-progress").textContent = "";
  }

  show({ cod3s, s2s, distinct }) {
    byId("plain-progress").textContent = "";
    byId("plain-answers").replaceChildren(...s2s.answers.map(plainCard));
    say(byId("verdict-cod3s"), verdictWords(distinct.cod3s, cod3s.answers.length));
    say(byId("verdict-s2s"), verdictWords(distinct.s2s, s2s.answers.length));
    say(byId("plain-note"), thresholdWords(distinct.threshold));
  }
}

function plainCard(answer, index) {
  return make("li", { class: "bin" },
    make("span", { class: "number", "aria-hidden": "true", text: index + 1 }),
    make("div", { class: "body" },
      make("p", { class: "answer" }, make("span", { class: "text", text: answer.text })),
      make("p", { class: "facts" }, make("span", { text: `score ${score(answer.score)}` }))));
}
