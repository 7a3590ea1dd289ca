/** The page: joins the form, the list, the map and the comparison, and keeps the link in the address bar up to date. */

import { AnswerList } from "./answers.js";
import { Trouble, fetchBin, fetchComparison, fetchInfo, fetchMap, streamAnswers, troubleOf } from "./api.js";
import { copyBy } from "./clipboard.js";
import { Comparison } from "./comparison.js";
import { byId, make, say } from "./dom.js";
import { Form } from "./form.js";
import { MeaningMap } from "./map.js";
import { unwarn, warn } from "./notice.js";
import { readState, requestBody, writeState } from "./state.js";
import { asCsv, download } from "./take.js";
import { Waiting } from "./waiting.js";
import { emptyWords, fillTemplate, introWords, progressWords } from "./words.js";

const SETTLE = 500; // milliseconds that a slider must rest before its change is asked for

class Explorer {
  constructor(info) {
    this.info = info;
    this.state = readState(location.hash, info);
    this.record = null; // of the last run
    this.work = new Set(); // what can be stopped
    this.maps = new Map();
    this.form = new Form(info, {
      onSubmit: () => this.submit(),
      onChange: () => this.changeSettings(),
      onCompare: (wanted) => this.changeComparison(wanted),
      onRelation: () => this.changeRelation(),
    });
    this.list = new AnswerList(byId("answers"), {
      onAsk: (bin) => this.askFor(bin),
      onCopy: (text, button) => this.copied(text, button),
      onRemove: (signature) => this.forget(signature),
      onHighlight: (signature) => this.map.highlight(signature),
      fetchBin: (signature) => fetchBin(signature, this.state.relation),
    });
    this.map = new MeaningMap(byId("map"), byId("map-speech"), {
      onAsk: (bin) => this.askFor(bin),
      onChoose: (signature) => this.list.goTo(signature),
      onHover: (signature) => this.list.highlight(signature),
    });
    this.comparison = new Comparison();
    this.waiting = new Waiting();
    this.listen();
    byId("about").textContent = `Bundle ${info.name} · ${info.bits} bits of ${info.encoder} · cod3s ${info.version}`;
    this.restore();
  }

  listen() {
    byId("stop").addEventListener("click", () => this.stop());
    byId("to-map").addEventListener("click", () => {
      byId("map").focus({ preventScroll: true });
      byId("map-title").scrollIntoView();
    });
    byId("copy-all").addEventListener("click", (event) => this.copied(this.allTexts(), event.target));
    byId("copy-link").addEventListener("click", (event) => this.copied(location.href, event.target));
    byId("export-json").addEventListener("click", () => this.exportJson());
    byId("export-csv").addEventListener("click", () => this.exportCsv());
    window.addEventListener("popstate", () => this.restore());
  }

  /** Shows what the link says, and runs it if it has a sentence. */
  restore() {
    const linked = readState(location.hash, this.info);
    this.form.write(linked);
    this.state = { ...this.form.read(), asked: linked.asked }; // what the sliders could take of it
    this.stop();
    this.comparison.open(this.state.compare);
    this.loadMap();
    if (this.state.text && this.form.valid()) this.run();
    else this.wipe();
  }

  // What users do

  submit() {
    if (!this.form.valid()) return;
    const { text, relation, asked } = this.state;
    const wanted = this.form.read();
    this.state = { ...wanted, asked: wanted.text === text && wanted.relation === relation ? asked : [] };
    history.pushState(null, "", writeState(this.state));
    this.run();
  }

  /** A moved slider runs the last question again, once it rests. */
  changeSettings() {
    clearTimeout(this.resting);
    if (this.state.text) this.resting = setTimeout(() => this.submit(), SETTLE);
  }

  /** The answers stay; a run that is still at work looks at the switch when it ends. */
  changeComparison(wanted) {
    this.state.compare = wanted;
    this.comparison.open(wanted);
    if (this.state.text) history.replaceState(null, "", writeState(this.state));
    if (wanted && this.record) this.working((signal) => this.compare(signal), () => this.changeComparison(true));
  }

  /** Bins belong to a relation, so the answers do not hold for another. */
  changeRelation() {
    const ran = this.state.text;
    this.state = { ...this.form.read(), text: "", asked: [] };
    this.stop();
    this.wipe();
    this.loadMap();
    if (ran && this.form.text.value.trim()) this.submit();
  }

  stop() {
    for (const work of this.work) work.abort();
    this.work.clear();
    this.waiting.end({ complete: false });
    this.comparison.halt();
    this.refresh();
  }

  /** Asks for an answer from this bin. */
  askFor({ signature, count, medoid }) {
    if (this.list.find(signature)) {
      this.list.goTo(signature);
      return;
    }
    if (!this.state.text) {
      if (!this.form.valid()) return;
      this.state = { ...this.form.read(), asked: [signature] };
      history.pushState(null, "", writeState(this.state));
      this.run();
      return;
    }
    this.state.asked.push(signature);
    history.replaceState(null, "", writeState(this.state));
    this.writeFrom({ signature, count, medoid });
  }

  forget(signature) {
    this.state.asked = this.state.asked.filter((asked) => asked !== signature);
    history.replaceState(null, "", writeState(this.state));
    this.list.remove(signature);
    this.refresh();
    byId("answers-title").focus();
  }

  // What the server is asked

  /** The answers to the state's sentence, then those asked for, then the comparison. */
  async run() {
    this.stop();
    this.wipe();
    clearTimeout(this.resting);
    const state = this.state;
    const { template } = this.info.relations.find(({ name }) => name === state.relation);
    byId("answers-title").textContent = fillTemplate(template, state.text, "…");
    document.title = `${state.text} – cod3s explorer`;
    await this.working(async (signal) => {
      if (state.compare) this.comparison.wait();
      this.waiting.begin();
      this.record = await this.stream(requestBody(state), { signal, asked: false });
      this.waiting.end({ complete: true });
      this.showRemarks(this.record);
      if (state.asked.length) await this.askAgain(state.asked, signal);
      if (state.compare) await this.compare(signal);
    }, () => this.run());
  }

  async compare(signal) {
    this.comparison.wait();
    const comparison = await fetchComparison(requestBody(this.state), signal);
    if (this.state.compare && !signal.aborted) this.comparison.show(comparison);
  }

  /** The bins that a link asks for, of which only the signatures are known. */
  async askAgain(signatures, signal) {
    const missing = signatures.filter((signature) => !this.list.find(signature));
    if (missing.length) await this.stream({ ...requestBody(this.state), signatures: missing, k: missing.length }, { signal, asked: true });
  }

  writeFrom(bin) {
    this.list.expect([bin], { asked: true });
    this.refresh();
    this.list.goTo(bin.signature);
    const body = { ...requestBody(this.state), signatures: [bin.signature], k: 1 };
    this.working((signal) => this.stream(body, { signal, asked: true }), () => this.writeFrom(bin));
  }

  async stream(body, { signal, asked }) {
    const awaited = new Set(body.signatures); // bins whose cards wait for this stream
    const onEvent = (event) => !signal.aborted && this.take(event, { asked, awaited });
    try {
      const record = await streamAnswers(body, { signal, onEvent });
      this.list.settle(record, awaited);
      return record;
    } catch (error) {
      this.list.dropEmpty(awaited);
      throw error;
    } finally {
      this.refresh();
    }
  }

  take(event, { asked, awaited }) {
    if (event.event === "signatures") {
      for (const { signature } of event.signatures) awaited.add(signature);
      this.list.expect(event.signatures.filter(({ signature }) => !this.list.find(signature)), { asked });
    } else if (event.event === "answer") {
      this.list.fill(event.answer, event.caption);
      const { number } = this.list.find(event.answer.signature) ?? {};
      byId("announcer").append(make("span", { text: `Answer ${number}: ${event.answer.text}. ` }));
    }
    this.refresh();
  }

  /** Runs work that can be stopped; if it fails, says so and offers to try `again`. */
  async working(work, again) {
    const controller = new AbortController();
    this.work.add(controller);
    this.refresh();
    unwarn();
    try {
      await work(controller.signal);
    } catch (error) {
      if (this.work.has(controller)) this.failed(error, again);
    } finally {
      this.work.delete(controller);
      this.refresh();
    }
  }

  failed(error, again) {
    this.waiting.end({ complete: false });
    this.comparison.halt();
    warn(troubleOf(error, new Trouble("Something on this page failed.", { hint: "Reload it." })), again);
  }

  async loadMap() {
    const { relation } = this.state;
    try {
      if (!this.maps.has(relation)) this.maps.set(relation, (await fetchMap(relation)).bins);
    } catch (trouble) {
      byId("map-facts").textContent = `The map could not be loaded: ${trouble.message}`;
      return;
    }
    if (relation !== this.state.relation) return; // the user has gone on
    const bins = this.maps.get(relation);
    byId("map-facts").textContent = `the ${bins.length.toLocaleString("en")} largest bins`;
    this.map.show(bins);
  }

  // What is shown

  wipe() {
    this.record = null;
    this.list.clear();
    this.comparison.clear();
    byId("announcer").replaceChildren();
    byId("answers-title").textContent = "Answers";
    say(byId("remarks"), "");
    unwarn();
    this.refresh();
  }

  refresh() {
    const busy = this.work.size > 0;
    const marks = this.list.marks();
    const arrived = this.list.answers().length;
    if (busy) replace(byId("find"), byId("stop"));
    else replace(byId("stop"), byId("find"));
    byId("tools").hidden = !arrived;
    byId("progress").textContent = progressWords({ busy, arrived, wanted: marks.length });
    say(byId("nothing"), marks.length || busy ? "" : this.record ? emptyWords : introWords);
    this.map.light(marks);
  }

  showRemarks({ remarks }) {
    byId("remarks").replaceChildren(...remarks.map((text) => make("li", { text })));
    byId("remarks").hidden = !remarks.length;
  }

  // Copies and files

  allTexts() {
    return this.list.answers().map(({ text }) => text).join("\n");
  }

  async copied(text, button) {
    const result = await copyBy(button, text, "Could not copy");
    byId("announcer").append(make("span", { text: `${result}. ` }));
  }

  exportJson() {
    const record = { ...this.taken(), answers: this.list.answers() };
    download("answers.json", "application/json", `${JSON.stringify(record, null, 2)}\n`);
  }

  exportCsv() {
    download("answers.csv", "text/csv", asCsv(this.taken(), this.list.answers()));
  }

  /** The record of the run; if it was stopped, what is known of it. */
  taken() {
    const { text, relation } = this.state;
    return this.record ?? { source: text, relation, system: "cod3s", settings: requestBody(this.state), remarks: ["stopped before the end"] };
  }
}

/** Shows one button in place of another, without losing the focus. */
function replace(gone, shown) {
  const focused = document.activeElement === gone;
  shown.hidden = false;
  gone.hidden = true;
  if (focused) shown.focus();
}

async function start() {
  try {
    new Explorer(await fetchInfo());
    unwarn();
  } catch (error) {
    warn(troubleOf(error, new Trouble("The page could not start.", { retry: true })), start);
  }
}

start();
