/** The box that says what went wrong and offers the way out. */

import { byId, make } from "./dom.js";

/** Shows a trouble; `again` is called by its button where trying again may help. */
export function warn(trouble, again = null) {
  const box = byId("notice");
  const hint = [trouble.hint, trouble.wait ? `Wait about ${trouble.wait} s.` : ""].filter(Boolean).join(" ");
  const parts = [make("p", { class: "message", text: trouble.message })];
  if (hint) parts.push(make("p", { text: hint }));
  if (again && trouble.retry) parts.push(make("button", { type: "button", id: "again", text: "Try again", click: again }));
  box.replaceChildren(...parts);
  box.hidden = false;
}

export function unwarn() {
  byId("notice").hidden = true;
  byId("notice").replaceChildren();
}
