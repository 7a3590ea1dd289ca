/** The line that says what is being done and for how long. The seconds tick for the eye only: read aloud, they would
 * drown everything else.
 */

import { byId } from "./dom.js";
import { secondsWords } from "./words.js";

const TICK = 250; // milliseconds

export class Waiting {
  constructor() {
    this.start = null; // when the present wait began
    this.last = null; // how many seconds the last full wait took
  }

  begin() {
    if (this.start !== null) return;
    this.start = performance.now();
    this.timer = setInterval(() => this.show(), TICK);
    this.show();
  }

  /** Ends the wait; `complete` when everything came that was waited for. */
  end({ complete }) {
    if (this.start === null) return;
    if (complete) this.last = this.seconds();
    clearInterval(this.timer);
    this.start = null;
    byId("elapsed").textContent = "";
  }

  seconds() {
    return (performance.now() - this.start) / 1000;
  }

  show() {
    byId("elapsed").textContent = secondsWords(this.seconds(), this.last);
  }
}
