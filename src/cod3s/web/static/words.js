/** Everything that the page says, from values. */

const RELATIONS = {
  effect: {
    label: "What happened next?",
    field: "Something that happened",
    examples: ["the power went out during dinner", "the baker overslept", "she forgot her umbrella on the bus"],
  },
  cause: {
    label: "Why?",
    field: "Something that happened",
    examples: ["the shop closed early", "he could not fall asleep", "nobody came to the rehearsal"],
  },
};

/** How a relation is offered: its question, the label of the field, sentences to try. */
export function relationWords({ name, template }) {
  return RELATIONS[name] ?? { label: `${name}: ${fillTemplate(template, "…", "…")}`, field: "Your sentence", examples: [] };
}

/** The statement that a source and an answer make. */
export const fillTemplate = (template, source, target) =>
  template.replace("{source}", () => source).replace("{target}", () => target);

export const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

export const score = (value) => (value === null ? "–" : value.toFixed(2).replace("-", "−"));

/** How plausible the critic finds an answer, from 0 to 1, in words; "" without a critic. */
export const criticWords = ({ plausibility }) =>
  (plausibility === null || plausibility === undefined ? "" : `critic ${plausibility.toFixed(2)}`);

/** What a bin is, in words: the sentence that stands for it, or that it is empty. */
export const binWords = ({ medoid, count }) => (count ? medoid || "its typical sentence is not shown" : "no training sentence has this signature");

export const apartWords = (minHamming, bits) => (minHamming === 0 ? "any distance" : `over ${minHamming} of ${bits} bits`);

export const specificWords = (weight) => (weight === 0 ? "up to the model" : `weight ${weight.toFixed(1)}`);

const SEARCHES = {
  beam: "The likeliest sentence of each bin; the same every time.",
  sample: "Sentences drawn at random in each bin; another seed draws others.",
};

export const searchWords = (search) => SEARCHES[search];

// What a remark of the library calls an option, and the control of this page that sets it.
const CONTROLS = [
  [/`cod3s generate --show-doubtful`(?:, or \w+=\w+,)?/g, "“Show doubtful answers” in the settings"],
  [/`cod3s generate --sensitive`(?:, or \w+=\w+,)?|`?--sensitive`?/g, "“Answer sensitive sentences” in the settings"],
  [/`?--min-hamming`?/g, "“How far apart”"],
];

/** A remark in the words of this page. */
export const remarkWords = (remark) => CONTROLS.reduce((text, [option, control]) => text.replace(option, control), remark);

export function settingsWords(state) {
  const writing = state.search === "beam" ? "beam" : `sample, seed ${state.seed}`;
  const apart = state.min_hamming ? `over ${plural(state.min_hamming, "bit")} apart` : "any distance";
  return [plural(state.k, "answer"), apart, writing].join(" · ");
}

/** What is wrong with a sentence before it is sent, or "". */
export function textProblem(text, most) {
  const length = [...text].length;
  if (!text.trim()) return "Write a sentence first, or try one of the examples.";
  if (length > most) return `That is ${length} characters, but at most ${most} are allowed: shorten it to one sentence.`;
  return "";
}

/** How close the length of a text is to the limit; "" while there is room. */
export function countWords(text, most) {
  const length = [...text].length;
  return length > 0.8 * most ? `${length} of ${most} characters` : "";
}

/** What is being done: the stage that the server names, or how many answers have arrived. */
export function progressWords({ busy, stage, arrived, wanted }) {
  if (!busy) return arrived ? plural(arrived, "answer") : "";
  if (!arrived || arrived >= wanted) return `${stage || "waiting for a turn"}…`;
  return `writing: ${arrived} of ${plural(wanted, "answer")}`;
}

/** What the server does next, as its stream names it. */
export const stageWords = ({ name, bins }) => (bins ? `${name} in ${plural(bins, "bin")}` : name);

/** How long a wait has taken so far, and how long the last one took. */
export function secondsWords(seconds, last) {
  const before = last === null ? "" : ` (last time ${Math.max(1, Math.round(last))} s)`;
  return `${Math.floor(seconds)} s${before}`;
}

export const emptyWords = "There is no answer to show. Fewer bits apart, or sampling, give the search more room.";

export const introWords =
  "Answers appear here, each from a different region of meaning, and light up on the map.";
