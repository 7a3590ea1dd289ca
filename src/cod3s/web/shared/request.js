/** JSON requests to the server that sent the page. */

const BUSY = [429, 503, 504];

/** The server understood and said no; `message` and `hint` are for people, `wait` is in seconds. */
export class Refused extends Error {
  constructor(status, { message, hint }, wait) {
    super(message || (BUSY.includes(status) ? "The server is busy with other requests." : `The server answered ${status}.`));
    this.status = status;
    this.hint = hint ?? "";
    this.wait = wait;
    this.busy = BUSY.includes(status);
  }
}

/** The response to a request: GET, or POST with a `body`. An error status throws Refused. */
export async function send(path, { body, token, signal, method = body ? "POST" : "GET" } = {}) {
  const headers = {};
  if (body) headers["Content-Type"] = "application/json";
  if (token) headers.Authorization = `Bearer ${token}`;
  const response = await fetch(path, { method, headers, signal, body: body && JSON.stringify(body) });
  if (response.ok) return response;
  const error = await response.json().then((reply) => reply.error, () => null);
  throw new Refused(response.status, error ?? {}, Number(response.headers.get("Retry-After")));
}
