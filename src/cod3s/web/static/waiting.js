/** The seconds of a wait. They are hidden from screen readers, where they would drown out everything else. */

import { byId } from "./dom.js";
import { secondsWords } from "./words.js";

const TICK = 250; // milliseconds

export class Waiting {
  constructor() {
    this.start = null; // when the current wait began
    this.last = null; // how many seconds the last complete wait took
  }

  begin() {
    if (this.start !== null) return;
    this.start = performance.now();
    this.timer = setInterval(() => this.show(), TICK);
    this.show();
  }

  /** Ends the wait; `complete` if everything has arrived. */
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
