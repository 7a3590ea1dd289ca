/** Taking answers along: as text, as a JSON record, as CSV; to the clipboard or as a file. Makes no request. */

import { make } from "./dom.js";

const COLUMNS = ["number", "text", "asked", "score", "signature", "count", "medoid", "source", "relation"];
const FORMULA = /^[=+\-@\t\r]/; // what a spreadsheet would run

/** The record of `cod3s generate --json`; answers that were asked for are marked. */
export function asRecord(record, answers) {
  return { ...record, answers };
}

/** One row an answer, with a line of column names. */
export function asCsv({ source, relation }, answers) {
  const rows = answers.map((answer, place) => {
    const values = { ...answer, number: place + 1, source, relation };
    return COLUMNS.map((name) => cell(values[name])).join(",");
  });
  return [COLUMNS.join(","), ...rows, ""].join("\r\n");
}

function cell(value) {
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = String(value ?? "");
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}

/** Offers a text as a file. */
export function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** Copies a text; where the browser has no clipboard for this page (plain http on another host), by a selection. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

function copyBySelection(text) {
  const before = document.activeElement;
  const area = make("textarea", { class: "unseen", "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  before?.focus();
  return done;
}
