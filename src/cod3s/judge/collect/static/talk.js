/** Talking to the server: JSON in and out; what cannot be done is a Refused, what may work later is tried again. */

/** The server understood and said no; `message` is for people. */
export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

const LONGEST_WAIT = 8000;

/**
 * The server's answer. Lost connections, a busy server and a full disk are tried again until they pass, the same
 * request each time; `onWait` is told before every new attempt, with its number.
 */
export async function talk(path, { token = "", method = "GET", body, onWait = () => {} } = {}) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await once(path, { token, method, body });
    } catch (error) {
      if (error instanceof Refused) throw error;
      onWait(attempt);
      await pause(Math.min(LONGEST_WAIT, 400 * 2 ** attempt));
    }
  }
}

async function once(path, { token, method, body }) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const content = body === undefined ? undefined : JSON.stringify(body);
  const response = await fetch(path, { method, headers, body: content, signal: AbortSignal.timeout(20000) });
  if (response.ok) return response.json();
  const said = await response.json().then((answer) => answer.error?.message, () => "");
  if (response.status >= 500 || response.status === 429) throw new Error(said);
  throw new Refused(said || `The server answered ${response.status}.`, response.status);
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
