/** The rater's page: join, read the instructions, rate statement by statement, leave and come back. */

import { copyBy } from "./clipboard.js";
import { byId, make } from "./dom.js";
import { talk } from "./talk.js";

const SETTLE = 250; // milliseconds in which a second click or key still means the statement before
const UNCOPIED = "Please copy it manually";

let study = null; // what the server says of the study
let token = ""; // from the link, after the #
let standing = null; // how far the rater has come
let shown = null; // the statement on the page: position, statement, score, assigned_at
let clock = { since: 0, spent: 0 }; // how long it has been in view
let saving = false;

begin().catch(explain);

async function begin() {
  study = await talk("api/study");
  document.title = study.name;
  byId("study").textContent = study.name;
  byId("welcome-total").textContent = study.total;
  fillInstructions();
  fillScores();
  listen();
  token = location.hash.slice(1);
  if (token) await enter();
  else if (study.prolific) await joinFromProlific();
  else welcome();
}

/* Joining */

function welcome() {
  const earlier = remembered();
  byId("again").hidden = !earlier;
  byId("go-on").onclick = () => {
    token = earlier;
    enter().catch(explain);
  };
  show("welcome");
  byId("name").focus();
}

async function joinFromProlific() {
  const parameters = new URLSearchParams(location.search);
  const [pid, id, session] = ["PROLIFIC_PID", "STUDY_ID", "SESSION_ID"].map((name) => parameters.get(name) ?? "");
  if (!pid) throw new Error("Please open this study from its page on Prolific.");
  await join({ prolific_pid: pid, study_id: id, session_id: session });
}

async function join(entry) {
  ({ token } = await talk("api/raters", { body: entry }));
  await enter();
}

/** With a token: to the instructions first, later straight to where the rater stopped. */
async function enter() {
  standing = await talk("api/standing", { token });
  remember();
  // The link in the address bar is now the rater's own: a reload or a bookmark comes back here.
  history.replaceState(null, "", `${location.pathname}#${token}`);
  byId("who").textContent = standing.name;
  byId("link").value = location.href;
  if (standing.ending) finish();
  else if (standing.rated === 0) show("instructions");
  else open(standing.current);
}

/* Rating */

function open(statement) {
  shown = statement;
  clock = { since: performance.now(), spent: 0 };
  byId("statement").textContent = shown.statement;
  byId("bar").max = standing.total;
  byId("bar").value = standing.rated;
  byId("count").textContent = `${shown.position} of ${standing.total}`;
  byId("back").disabled = shown.position === 1;
  byId("forward").disabled = shown.score === null;
  mark(shown.score);
  say(shown.score === null ? "" : `You chose ${shown.score}. Choose again to change it.`);
  show("rating", byId("statement"));
}

async function choose(score) {
  if (saving || shown === null || secondsInView() * 1000 < SETTLE) return;
  saving = true;
  mark(score);
  say("Saving …");
  const seconds = Math.min(86400, Math.round(secondsInView() * 100) / 100);
  const body = { score, seconds, assigned_at: shown.assigned_at, key: randomKey() };
  try {
    const onWait = () => say("Not saved yet: the server cannot be reached. Trying again; please leave this page open.", true);
    standing = await talk(`api/statements/${shown.position}`, { method: "PUT", token, body, onWait });
    saving = false;
    await step(1);
    if (shown?.score === null) say("Saved.");
  } catch (error) {
    say("");
    if (error.status === 409) await showAnew(error.message).catch(explain);
    else explain(error);
  } finally {
    saving = false;
  }
}

/** The statement was taken back while it was open: shows the one that is in its place. */
async function showAnew(reason) {
  standing = await talk("api/standing", { token });
  if (standing.ending) return finish();
  open(standing.current);
  say(`Not saved: ${reason}. Here is another.`, true);
}

/** Goes back, or forward: to what was rated before, on to the next statement, or to the end. */
async function step(by) {
  if (saving) return;
  const position = shown.position + by;
  if (position < 1) return;
  if (standing.current?.position === position) open(standing.current);
  else if (position > standing.rated) finish();
  else open(await talk(`api/statements/${position}`, { token }));
}

function finish() {
  shown = null;
  byId("done-text").textContent = `You rated ${standing.rated} statements, and every rating is saved.`;
  byId("code").textContent = standing.ending.code;
  byId("return").hidden = !standing.ending.link;
  if (standing.ending.link) byId("return-link").href = standing.ending.link;
  byId("look-back").hidden = standing.rated === 0;
  show("done");
}

function mark(score) {
  for (const [number, button] of [...byId("scores").children].entries()) {
    button.setAttribute("aria-pressed", String(number === score));
  }
}

function say(text, urgent = false) {
  byId("saving").textContent = text;
  byId("saving").classList.toggle("problem", urgent);
}

/** Time in a hidden tab is not time spent on the statement. */
function secondsInView() {
  const running = document.hidden ? 0 : performance.now() - clock.since;
  return (clock.spent + running) / 1000;
}

/** Browsers have randomUUID only for pages that come over https or from the same machine. */
function randomKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/* The page */

function show(name, focus) {
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== name;
  (focus ?? document.querySelector(`#${name} h1`)).focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

function explain(error) {
  byId("trouble-text").textContent = error.status === 401
    ? "This link does not belong to the study. Please check that it is complete, or start again from the study's address."
    : error.message;
  show("trouble");
}

function fillInstructions() {
  for (const id of ["instructions-text", "reminder-text"]) {
    byId(id).replaceChildren(...study.instructions.map((text) => make("p", { text })));
  }
  byId("instructions-scale").replaceChildren(...study.scale.map((label, score) => make("li", {}, ...scalePoint(score, label))));
  for (const key of document.querySelectorAll(".highest")) key.textContent = study.scale.length - 1;
  byId("question").textContent = study.question;
}

function fillScores() {
  byId("scores").replaceChildren(...study.scale.map((label, score) =>
    make("button", { type: "button", click: () => choose(score) }, ...scalePoint(score, label))));
}

const scalePoint = (score, label) => [make("span", { class: "number", text: score }), " ", make("span", { text: label })];

function listen() {
  byId("join").addEventListener("submit", (event) => {
    event.preventDefault();
    const name = byId("name").value.trim();
    if (name) join({ name }).catch(explain);
  });
  byId("start").addEventListener("click", () => open(standing.current));
  byId("back").addEventListener("click", () => step(-1).catch(explain));
  byId("forward").addEventListener("click", () => step(1).catch(explain));
  byId("help").addEventListener("click", () => byId("reminder").showModal());
  byId("pause").addEventListener("click", () => !saving && show("paused"));
  byId("resume").addEventListener("click", () => open(shown));
  byId("look-back").addEventListener("click", () => lookBack().catch(explain));
  byId("copy-link").addEventListener("click", (event) => copyBy(event.target, byId("link").value, UNCOPIED));
  byId("copy-code").addEventListener("click", (event) => copyBy(event.target, byId("code").textContent, UNCOPIED));
  document.addEventListener("keydown", onKey);
  document.addEventListener("visibilitychange", onVisibility);
  window.addEventListener("beforeunload", (event) => saving && event.preventDefault());
}

async function lookBack() {
  open(await talk(`api/statements/${standing.rated}`, { token }));
}

function onKey(event) {
  if (byId("rating").hidden || byId("reminder").open || event.repeat) return;
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "ArrowLeft" && !byId("back").disabled) step(-1).catch(explain);
  else if (event.key === "ArrowRight" && !byId("forward").disabled) step(1).catch(explain);
  else if (/^[0-9]$/.test(event.key) && Number(event.key) < study.scale.length) choose(Number(event.key));
}

function onVisibility() {
  if (document.hidden) clock.spent += performance.now() - clock.since;
  clock.since = performance.now();
}

/* The browser remembers the link, where it may, so that the study's address alone leads back. */

const memory = () => `cod3s-study-${study.id}`;

function remember() {
  try {
    localStorage.setItem(memory(), token);
  } catch { /* storage is switched off: the link still works */ }
}

function remembered() {
  try {
    return localStorage.getItem(memory()) ?? "";
  } catch {
    return "";
  }
}
