/** Copying to the clipboard. */

import { make } from "./dom.js";

const SHOWN = 1500; // milliseconds

/** Copies a text, and returns what its button says for a moment: that it is copied, or `failure`. */
export async function copyBy(button, text, failure) {
  const label = button.textContent;
  button.textContent = (await copy(text)) ? "Copied" : failure;
  setTimeout(() => (button.textContent = label), SHOWN);
  return button.textContent;
}

/** Where the browser has no clipboard for this page (plain http on another host), a selection is copied. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

function copyBySelection(text) {
  const focused = document.activeElement;
  const area = make("textarea", { class: "unseen", "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  focused?.focus();
  return done;
}
