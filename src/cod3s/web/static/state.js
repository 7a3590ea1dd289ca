/** What the page is asked to show, as one value, and that value as the part of a link after `#`.
 *
 * It stands after `#` so that a user's sentence is in no server's log. Whatever a link says is checked.
 */

export const MOST_SEED = 2 ** 31 - 1;

/** The state that a fresh page starts with, from the server's defaults. */
export function firstState(info) {
  const { k, min_hamming, sentence_weight, search, seed } = info.decoding;
  return {
    text: "",
    relation: info.relations[0].name,
    k: Math.min(k, info.limits.k),
    min_hamming,
    sentence_weight,
    search,
    seed,
    compare: false,
    asked: [],
  };
}

/** The state that a link holds; what it leaves out or says wrongly is as on a fresh page. */
export function readState(hash, info) {
  const first = firstState(info);
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const relation = given.get("relation");
  const bin = new RegExp(`^[01]{${info.bits}}$`);
  const asked = (given.get("ask") ?? "").split(",").filter((signature) => bin.test(signature));
  return {
    text: given.get("text") ?? "",
    relation: info.relations.some((one) => one.name === relation) ? relation : first.relation,
    k: within(given.get("k"), 1, info.limits.k, first.k),
    min_hamming: within(given.get("min_hamming"), 0, info.bits, first.min_hamming),
    sentence_weight: within(given.get("sentence_weight"), 0, 10, first.sentence_weight, false),
    search: ["beam", "sample"].includes(given.get("search")) ? given.get("search") : first.search,
    seed: within(given.get("seed"), 0, MOST_SEED, first.seed),
    compare: given.get("compare") === "1",
    asked: [...new Set(asked)].slice(0, info.limits.k),
  };
}

/** The part of a link after `#` that brings this state back. */
export function writeState(state) {
  const { text, relation, k, min_hamming, sentence_weight, search, seed } = state;
  const given = new URLSearchParams({ text, relation, k, min_hamming, sentence_weight, search });
  if (search === "sample") given.set("seed", seed);
  if (state.compare) given.set("compare", "1");
  if (state.asked.length) given.set("ask", state.asked.join(","));
  return `#${given}`;
}

/** The body of a request for these answers. */
export function requestBody(state) {
  const { text, relation, k, min_hamming, sentence_weight, search, seed } = state;
  return { text, relation, k, min_hamming, sentence_weight, search, seed };
}

/** `given` as a number between two bounds, or `otherwise` where it is none. */
export function within(given, least, most, otherwise, whole = true) {
  const number = given === null || given.trim() === "" ? NaN : Number(given);
  if (!Number.isFinite(number)) return otherwise;
  return Math.min(most, Math.max(least, whole ? Math.round(number) : number));
}
