/** The page: joins the form, the list and the map, and keeps the link in the address bar up to date. */

import { AnswerList } from "./answers.js";
import { Trouble, fetchBin, fetchInfo, fetchMap, streamAnswers, troubleOf } from "./api.js";
import { copyBy } from "./clipboard.js";
import { byId, make, say } from "./dom.js";
import { Form } from "./form.js";
import { MeaningMap } from "./map.js";
import { unwarn, warn } from "./notice.js";
import { readState, requestBody, writeState } from "./state.js";
import { asCsv, download } from "./take.js";
import { Waiting } from "./waiting.js";
import { emptyWords, fillTemplate, introWords, progressWords, remarkWords, stageWords } from "./words.js";

const SETTLE = 500; // milliseconds that a slider must rest before it takes effect

class Explorer {
  constructor(info) {
    this.info = info;
    this.state = readState(location.hash, info);
    this.record = null; // of the last run
    this.stage = ""; // what the server is doing
    this.bins = 0; // that were chosen for the last run
    this.work = new Set(); // what can be stopped
    this.maps = new Map();
    this.form = new Form(info, {
      onSubmit: () => this.submit(),
      onChange: () => this.changeSettings(),
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
    this.state = { ...this.form.read(), picked: linked.picked }; // what the sliders could take of it
    this.stop();
    this.loadMap();
    if (this.state.text && this.form.valid()) this.run();
    else {
      this.wipe();
      if (matchMedia("(pointer: fine)").matches) this.form.text.focus(); // a phone would open its keyboard
    }
  }

  // What users do

  submit() {
    if (!this.form.valid()) return;
    const { text, relation, picked } = this.state;
    const wanted = this.form.read();
    this.state = { ...wanted, picked: wanted.text === text && wanted.relation === relation ? picked : [] };
    history.pushState(null, "", writeState(this.state));
    this.run();
  }

  /** A moved slider runs the last question again, once it rests. */
  changeSettings() {
    clearTimeout(this.resting);
    if (this.state.text) this.resting = setTimeout(() => this.submit(), SETTLE);
  }

  /** Bins belong to a relation, so the answers do not hold for another. */
  changeRelation() {
    const ran = this.state.text;
    this.state = { ...this.form.read(), text: "", picked: [] };
    this.stop();
    this.wipe();
    this.loadMap();
    if (ran && this.form.text.value.trim()) this.submit();
  }

  stop() {
    for (const work of this.work) work.abort();
    this.work.clear();
    this.waiting.end({ complete: false });
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
      this.state = { ...this.form.read(), picked: [signature] };
      history.pushState(null, "", writeState(this.state));
      this.run();
      return;
    }
    this.state.picked.push(signature);
    history.replaceState(null, "", writeState(this.state));
    this.writeFrom({ signature, count, medoid });
  }

  forget(signature) {
    this.state.picked = this.state.picked.filter((picked) => picked !== signature);
    history.replaceState(null, "", writeState(this.state));
    this.list.remove(signature);
    this.refresh();
    byId("answers-title").focus();
  }

  // Requests to the server

  /** The answers to the state's sentence, then those in the bins that the user picked. */
  async run() {
    this.stop();
    this.wipe();
    clearTimeout(this.resting);
    const state = this.state;
    const { template } = this.info.relations.find(({ name }) => name === state.relation);
    byId("answers-title").textContent = fillTemplate(template, state.text, "…");
    document.title = `${state.text} – cod3s explorer`;
    await this.working(async (signal) => {
      this.waiting.begin();
      this.record = await this.stream(requestBody(state), { signal, picked: false });
      this.waiting.end({ complete: true });
      this.showRemarks(this.record);
      if (state.picked.length) await this.askAgain(state.picked, signal);
    }, () => this.run());
  }

  /** The bins that a link asks for, of which only the signatures are known. */
  async askAgain(signatures, signal) {
    const missing = signatures.filter((signature) => !this.list.find(signature));
    if (missing.length) await this.stream({ ...requestBody(this.state), signatures: missing, k: missing.length }, { signal, picked: true });
  }

  writeFrom(bin) {
    this.list.expect([bin], { picked: true });
    this.refresh();
    this.list.goTo(bin.signature);
    const body = { ...requestBody(this.state), signatures: [bin.signature], k: 1 };
    this.working((signal) => this.stream(body, { signal, picked: true }), () => this.writeFrom(bin));
  }

  async stream(body, { signal, picked }) {
    const awaited = new Set(body.signatures); // bins whose cards wait for this stream
    const onEvent = (event) => !signal.aborted && this.take(event, { picked, awaited });
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

  take(event, { picked, awaited }) {
    if (event.event === "stage") {
      this.stage = stageWords(event);
    } else if (event.event === "signatures") {
      this.bins += event.signatures.length;
      for (const { signature } of event.signatures) awaited.add(signature);
      this.list.expect(event.signatures.filter(({ signature }) => !this.list.find(signature)), { picked });
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
    byId("announcer").replaceChildren();
    byId("answers-title").textContent = "Answers";
    byId("remarks").hidden = true;
    this.stage = "";
    this.bins = 0;
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
    byId("progress").textContent = progressWords({ busy, stage: this.stage, arrived, wanted: marks.length });
    say(byId("nothing"), marks.length || busy ? "" : this.emptiness());
    this.map.light(marks);
  }

  /** What stands in place of answers: why there are none, or what will come. */
  emptiness() {
    if (!this.record) return introWords;
    if (this.record.remark) return remarkWords(this.record.remark);
    return this.bins || !this.record.remarks.length ? emptyWords : ""; // else the remarks say why nothing was tried
  }

  showRemarks({ answers, remark, remarks }) {
    const shown = [...(remark && answers.length ? [remark] : []), ...remarks]; // without answers, `remark` replaces them
    byId("remarks").replaceChildren(...shown.map((text) => make("li", { text: remarkWords(text) })));
    byId("remarks").hidden = !shown.length;
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
    const record = { ...this.currentRecord(), answers: this.list.answers() };
    download("answers.json", "application/json", `${JSON.stringify(record, null, 2)}\n`);
  }

  exportCsv() {
    download("answers.csv", "text/csv", asCsv(this.currentRecord(), this.list.answers()));
  }

  /** The record of the run; if it was stopped, what is known of it. */
  currentRecord() {
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
