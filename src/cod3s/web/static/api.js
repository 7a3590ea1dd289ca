/** Talking to the server: JSON in and out, answers as a stream of lines; every failure becomes a Trouble in words. */

import { Refused, send } from "./request.js";

/** What went wrong and the way out. `retry` says whether the same request may work later, after `wait` seconds. */
export class Trouble extends Error {
  constructor(message, { hint = "", retry = false, wait = 0 } = {}) {
    super(message);
    this.hint = hint;
    this.retry = retry;
    this.wait = wait;
  }
}

export const fetchInfo = () => request("/api/info").then(asJson);

export const fetchMap = (relation) => request(`/api/map?${new URLSearchParams({ relation })}`).then(asJson);

export const fetchBin = (signature, relation) =>
  request(`/api/bins/${encodeURIComponent(signature)}?${new URLSearchParams({ relation })}`).then(asJson);

/** Calls `onEvent` with each event of the stream as it arrives; ends after the last, with the final record. */
export async function streamAnswers(body, { signal, onEvent }) {
  const response = await request("/api/stream", { body, signal });
  let record = null;
  try {
    for await (const line of lines(response.body)) {
      const event = JSON.parse(line);
      if (event.event === "error") throw new Trouble(event.message, { hint: event.hint ?? "", retry: true });
      if (event.event === "done") record = event.record;
      onEvent(event);
    }
  } catch (error) {
    throw asTrouble(error);
  }
  if (record === null) throw brokenOff();
  return record;
}

async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    yield* parts.filter((part) => part.trim());
  }
  if (rest.trim()) yield rest;
}

async function request(path, options) {
  try {
    return await send(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw error instanceof Refused ? refusal(error) : gone();
  }
}

async function asJson(response) {
  try {
    return await response.json();
  } catch (error) {
    throw asTrouble(error);
  }
}

function refusal({ status, message, hint, wait, busy }) {
  if (!busy) return new Trouble(message, { hint, retry: status >= 500 });
  const patience = "Nothing is wrong with your sentence: wait a moment and try again.";
  return new Trouble(message, { hint: hint || patience, retry: true, wait: wait || 3 });
}

function asTrouble(error) {
  if (error instanceof Trouble || error.name === "AbortError") return error;
  return error instanceof TypeError ? brokenOff() : new Trouble("The server's reply was not JSON.", { retry: true });
}

/** An error for users: a bug, which the console gets, becomes `otherwise`. */
export function troubleOf(error, otherwise) {
  if (error instanceof Trouble) return error;
  console.error(error);
  return otherwise;
}

const gone = () =>
  new Trouble("The server is not responding.", {
    hint: "Check the terminal where `cod3s serve` is running, restart it if it has stopped, and try again.",
    retry: true,
  });

const brokenOff = () =>
  new Trouble("The connection broke off before all answers had arrived.", {
    hint: "What arrived is kept. Check that `cod3s serve` is still running, then try again.",
    retry: true,
  });
