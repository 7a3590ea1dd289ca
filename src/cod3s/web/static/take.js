/** Taking answers along as a file. Makes no request. */

import { make } from "./dom.js";

const COLUMNS = ["number", "text", "picked", "plausibility", "score", "signature", "count", "caption", "medoid", "source", "relation"];
const FORMULA = /^[=+\-@\t\r]/; // what a spreadsheet would run

/** A row per answer, below a row of column names. */
export function asCsv({ source, relation }, answers) {
  const rows = answers.map((answer, index) => {
    const values = { ...answer, number: index + 1, source, relation };
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
