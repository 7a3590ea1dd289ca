/** Talking to the server, patiently: what may work later is tried again. */

import { Refused, send } from "./request.js";

const LONGEST_WAIT = 8000;
const TIMEOUT = 20000;

/**
 * The server's answer. Lost connections, a busy server and a full disk are tried again until they pass, the same
 * request each time; `onWait` is called before every new attempt.
 */
export async function talk(path, { onWait = () => {}, ...request } = {}) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const response = await send(path, { ...request, signal: AbortSignal.timeout(TIMEOUT) });
      return await response.json();
    } catch (error) {
      if (error instanceof Refused && error.status < 500 && !error.busy) throw error;
      onWait();
      await pause(Math.min(LONGEST_WAIT, 400 * 2 ** attempt));
    }
  }
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
