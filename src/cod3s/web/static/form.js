/** The form: the sentence, the relation and the settings as a state, and errors beside the fields. */

import { byId, make } from "./dom.js";
import { MOST_SEED, switchesOf, within } from "./state.js";
import { apartWords, countWords, relationWords, searchWords, settingsWords, specificWords, textProblem } from "./words.js";

const SLIDERS = ["k", "min_hamming", "sentence_weight"];

export class Form {
  constructor(info, callbacks) {
    this.info = info;
    this.text = byId("text");
    this.callbacks = callbacks;
    this.switches = switchesOf(info);
    for (const { id } of this.switches) byId(`${id}-row`).hidden = false;
    this.offerRelations();
    byId("k").max = info.limits.k;
    byId("seed").max = MOST_SEED;
    byId("min_hamming").max = Math.max(1, Math.floor(info.bits / 2) - 1);
    byId("sentence_weight-control").hidden = info.critic; // which ranks in place of MMI, whose weight this is
    byId("settings").open = matchMedia("(min-width: 50rem)").matches;
    this.listen();
  }

  offerRelations() {
    const choices = this.info.relations.map((relation) =>
      make("label", {},
        make("input", { type: "radio", name: "relation", value: relation.name, change: () => this.relationChanged() }),
        make("span", { text: relationWords(relation).label })),
    );
    byId("relations").replaceChildren(...choices);
  }

  listen() {
    const submit = (event) => {
      event.preventDefault();
      this.callbacks.onSubmit();
    };
    byId("ask").addEventListener("submit", submit);
    this.text.addEventListener("keydown", (event) => event.key === "Enter" && !event.isComposing && submit(event));
    this.text.addEventListener("input", () => this.describe());
    for (const id of SLIDERS) byId(id).addEventListener("input", () => this.describe());
    for (const id of [...SLIDERS, "search-beam", "search-sample", "seed", ...this.switches.map(({ id }) => id)]) {
      byId(id).addEventListener("change", () => {
        this.describe();
        this.callbacks.onChange();
      });
    }
  }

  relationChanged() {
    this.describe();
    this.offerExamples();
    this.callbacks.onRelation();
  }

  offerExamples() {
    const examples = relationWords(this.relation()).examples;
    const buttons = examples.map((text) => make("button", { type: "button", class: "example", text, click: () => this.take(text) }));
    byId("examples").replaceChildren(...buttons);
    byId("examples").parentElement.hidden = !examples.length;
  }

  take(text) {
    this.text.value = text;
    this.describe();
    this.callbacks.onSubmit();
  }

  relation() {
    const name = document.querySelector("[name=relation]:checked").value;
    return this.info.relations.find((relation) => relation.name === name);
  }

  /** What the form says now; `picked` is not in the form. */
  read() {
    return {
      text: this.text.value.trim(),
      relation: this.relation().name,
      k: Number(byId("k").value),
      min_hamming: Number(byId("min_hamming").value),
      sentence_weight: Number(byId("sentence_weight").value),
      search: byId("search-sample").checked ? "sample" : "beam",
      seed: within(byId("seed").value, 0, MOST_SEED, this.info.decoding.seed),
      ...Object.fromEntries(this.switches.map(({ id, option }) => [option, byId(id).checked])),
    };
  }

  write(state) {
    this.text.value = state.text;
    document.querySelector(`[name=relation][value="${CSS.escape(state.relation)}"]`).checked = true;
    for (const id of SLIDERS) byId(id).value = state[id];
    byId(`search-${state.search}`).checked = true;
    byId("seed").value = state.seed;
    for (const { id, option } of this.switches) byId(id).checked = state[option];
    this.offerExamples();
    this.describe();
  }

  describe() {
    const state = this.read();
    const { bits, limits } = this.info;
    byId("k-words").textContent = state.k;
    byId("min_hamming-words").textContent = apartWords(state.min_hamming, bits);
    byId("sentence_weight-words").textContent = specificWords(state.sentence_weight);
    byId("settings-words").textContent = settingsWords(state);
    byId("search-words").textContent = searchWords(state.search);
    byId("seed-row").hidden = state.search !== "sample";
    byId("text-label").textContent = relationWords(this.relation()).field;
    byId("text-count").textContent = countWords(this.text.value, limits.text);
    if (this.text.getAttribute("aria-invalid") === "true" && !textProblem(this.text.value, limits.text)) this.complain("");
  }

  /** Whether the sentence can be answered; if not, says why beside it. */
  valid() {
    const problem = textProblem(this.text.value, this.info.limits.text);
    this.complain(problem);
    if (problem) this.text.focus();
    return !problem;
  }

  complain(problem) {
    byId("text-problem").textContent = problem;
    this.text.setAttribute("aria-invalid", String(Boolean(problem)));
  }
}
