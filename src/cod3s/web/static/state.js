/** What the page shows, as one value, and that value as the part of a link after `#`.
 *
 * Browsers do not send that part, so a user's sentence is in no server's log. Whatever a link says is checked.
 */

export const MOST_SEED = 2 ** 31 - 1;

/** Check boxes for options of decoding: the element of each, and its option. */
const SWITCHES = [
  { id: "doubtful", option: "show_doubtful" },
  { id: "sensitive", option: "sensitive" },
];

/** The check boxes whose options the server has. */
export const switchesOf = ({ decoding }) => SWITCHES.filter(({ option }) => option in decoding);

/** The state that a link holds; what is missing or wrong in it is as the server's defaults say. */
export function readState(hash, info) {
  const defaults = info.decoding;
  const linked = Object.fromEntries(new URLSearchParams(hash.replace(/^#/, "")));
  const bin = new RegExp(`^[01]{${info.bits}}$`);
  const picked = (linked.bins ?? "").split(",").filter((signature) => bin.test(signature));
  return {
    text: linked.text ?? "",
    relation: info.relations.some(({ name }) => name === linked.relation) ? linked.relation : info.relations[0].name,
    k: within(linked.k, 1, info.limits.k, Math.min(defaults.k, info.limits.k)),
    min_hamming: within(linked.min_hamming, 0, info.bits, defaults.min_hamming),
    sentence_weight: within(linked.sentence_weight, 0, 10, defaults.sentence_weight, false),
    search: ["beam", "sample"].includes(linked.search) ? linked.search : defaults.search,
    seed: within(linked.seed, 0, MOST_SEED, defaults.seed),
    ...Object.fromEntries(switchesOf(info).map(({ option }) => [option, linked[option] ? linked[option] === "true" : defaults[option]])),
    picked: [...new Set(picked)].slice(0, info.limits.k),
  };
}

/** The part of a link after `#` that brings this state back. */
export function writeState({ picked, seed, ...state }) {
  const linked = new URLSearchParams(state);
  if (state.search === "sample") linked.set("seed", seed);
  if (picked.length) linked.set("bins", picked.join(","));
  return `#${linked}`;
}

/** The body of a request for these answers. */
export function requestBody({ picked, ...body }) {
  return body;
}

/** A text as a number between two bounds, or `otherwise` if it is no number. */
export function within(text, least, most, otherwise, whole = true) {
  const number = text?.trim() ? Number(text) : NaN;
  if (!Number.isFinite(number)) return otherwise;
  return Math.min(most, Math.max(least, whole ? Math.round(number) : number));
}
