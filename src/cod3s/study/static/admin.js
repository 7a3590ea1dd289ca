/** The administrator's page: asks for the token, then shows the counts of the study and keeps them fresh. */

import { byId, make } from "./dom.js";
import { Refused } from "./request.js";
import { talk } from "./talk.js";

const REFRESH = 10000;
let token = location.hash.slice(1);
let timer = 0;

byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  token = byId("token").value.trim();
  refresh();
});
if (token) refresh();
else ask("");

function ask(message) {
  clearTimeout(timer);
  byId("ask").hidden = false;
  byId("progress").hidden = true;
  byId("refused").textContent = message;
  byId("token").focus();
}

async function refresh() {
  const onWait = () => { byId("when").textContent = "The server cannot be reached; trying again."; };
  try {
    show(await talk("api/admin/progress", { token, onWait }));
    timer = setTimeout(refresh, REFRESH);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    ask(error.status === 401 ? "This is not the admin token of the study." : error.message);
  }
}

function show(progress) {
  byId("ask").hidden = true;
  byId("progress").hidden = false;
  document.title = `${progress.name}: progress`;
  byId("study").textContent = progress.name;
  byId("when").textContent = `as of ${new Date().toLocaleTimeString()}`;
  byId("bar").value = progress.done;
  fillFigures(progress);
  fillRaters(progress.raters);
  fillMeans(progress.means);
}

function fillFigures(progress) {
  const finished = progress.raters.filter((rater) => rater.finished).length;
  const full = Object.entries(progress.coverage)
    .filter(([raters]) => Number(raters) >= progress.raters_per_item)
    .reduce((sum, [, items]) => sum + items, 0);
  const figures = [
    [`ratings, of ${progress.wanted} wanted`, progress.ratings],
    [`items with ${progress.raters_per_item} raters`, `${full} of ${progress.items}`],
    ["raters finished", `${finished} of ${progress.raters.length}`],
    ...(progress.unknown ? [["ratings of items that this study does not have, left out", progress.unknown]] : []),
  ];
  byId("figures").replaceChildren(...figures.map(([name, value]) =>
    make("div", {}, make("dt", { text: name }), make("dd", { text: value }))));
}

function fillRaters(raters) {
  fill("raters", ["rater", "from", "rated", "mean", "seconds per item", "checks failed", "state"], raters.map((rater) => [
    rater.name,
    rater.origin,
    rater.ratings,
    figure(rater.mean, 2),
    figure(rater.median_seconds, 1),
    `${rater.failed_checks} of ${rater.checks}`,
    rater.reasons.length ? `excluded: ${rater.reasons.join("; ")}` : rater.finished ? "finished" : "rating",
  ]));
}

function fillMeans(means) {
  fill("means", ["relation", "system", "mean", "ratings"], means.map((row) => [
    row.relation, row.system, figure(row.mean, 2), row.ratings,
  ]));
}

/** Rows of a table; columns of figures stand to the right. */
function fill(id, names, rows) {
  const isFigure = names.map((_, column) => rows.length > 0 && rows.every((row) => /^[\d.–]/.test(String(row[column]))));
  const line = (tag, values) => make("tr", {}, ...values.map((text, column) =>
    make(tag, { text, class: isFigure[column] && "figure", scope: tag === "th" && "col" })));
  byId(`${id}-head`).replaceChildren(line("th", names));
  byId(id).replaceChildren(...rows.map((row) => line("td", row)));
}

const figure = (value, digits) => (value === null ? "–" : value.toFixed(digits));
