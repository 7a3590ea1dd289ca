/** Talking to the server: JSON in and out, answers as a stream of lines; every failure becomes a Trouble in words. */

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

export const fetchComparison = (body, signal) => request("/api/compare", { body, signal }).then(asJson);

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

async function request(path, { body, signal } = {}) {
  const options = body ? { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } } : {};
  let response;
  try {
    response = await fetch(path, { ...options, signal });
  } catch (error) {
    throw error.name === "AbortError" ? error : gone();
  }
  if (!response.ok) throw await refused(response);
  return response;
}

async function asJson(response) {
  try {
    return await response.json();
  } catch (error) {
    throw asTrouble(error);
  }
}

async function refused(response) {
  const said = await response.json().then((content) => content.error ?? {}, () => ({}));
  const busy = [429, 503, 504].includes(response.status);
  const wait = Number(response.headers.get("Retry-After")) || (busy ? 3 : 0);
  if (!busy) {
    return new Trouble(said.message ?? `The server answered ${response.status}.`, {
      hint: said.hint ?? "",
      retry: response.status >= 500,
    });
  }
  return new Trouble(said.message ?? "The server is busy with other requests.", {
    hint: said.hint || "Nothing is wrong with your sentence: wait a moment and try again.",
    retry: true,
    wait,
  });
}

function asTrouble(error) {
  if (error instanceof Trouble || error.name === "AbortError") return error;
  return error instanceof TypeError ? brokenOff() : new Trouble("The server's reply was not JSON.", { retry: true });
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
