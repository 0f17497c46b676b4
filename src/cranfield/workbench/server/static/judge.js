// The judging page: from actions to judgments. Judgments go to the outbox at once; the next item is there already.

import { Api } from "./judge/api.js";
import { Dialogs } from "./judge/dialogs.js";
import { Keys } from "./judge/keys.js";
import { Outbox, randomKey } from "./judge/outbox.js";
import { Queue, VisibleClock } from "./judge/queue.js";
import { Settings } from "./judge/settings.js";
import { View } from "./judge/view.js";

const AHEAD = 10;
const MIN_AHEAD = 5;
const RECENT = 20;
const RENEW_MS = 180_000;
const RETRY_MS = 2000;
const TABS_MS = 60;
const LOADING = "Loading …";

const $ = (id) => document.getElementById(id);
const page = JSON.parse($("judge").dataset.page);
const prefix = `cranfield.${page.uid}.${page.account}.`;
const api = new Api(page);
const queue = new Queue();
const view = new View(page);
const clock = new VisibleClock();
const settings = new Settings(page, api);
const dialogs = new Dialogs(page, settings, api);
const tabs = new BroadcastChannel(prefix);
const tab = randomKey();
const elsewhere = new Map(); // tab to the items that it holds
const undoable = [];
let progress = null;
let delta = 0;
let recorded = 0;
let seen = 0;
let filling = null;
let done = false;
let started = false;
let troubled = false;
let contact = 0; // when the server last renewed the leases

const outbox = new Outbox(prefix, (entries) => api.save(entries), (state) => {
  if (troubled && !state.trouble) refillIfShort(); // the server is back
  troubled = Boolean(state.trouble);
  view.showUnsaved(state);
});
const keys = new Keys(page.actions, page.mode === "grade" ? page.choices.map((choice) => choice.value) : [], settings.values, act, (digits) => view.typed(digits));

// --- fetching

function heldElsewhere() {
  return [...elsewhere.values()].flat();
}

/** Fetch items until there are enough ahead; one request at a time. */
function refill(n = AHEAD, recent = 0) {
  filling ??= fetchItems(n, recent).finally(() => {
    filling = null;
  });
  return filling;
}

function nJudged(count) {
  return count.n_done + count.n_skipped;
}

async function fetchItems(n, recent) {
  try {
    const unsaved = outbox.unsaved();
    const before = recorded;
    const expired = started && Date.now() - contact > page.lease_ms;
    const held = expired ? [] : queue.held();
    const holding = [...new Set([...held, ...heldElsewhere(), ...unsaved.map((entry) => entry.item)])];
    const answer = await api.next(expired ? Math.max(n, AHEAD) : n, holding, recent);
    contact = Date.now();
    if (answer.guideline !== page.guideline.version) location.reload(); // raters judge by the latest guidelines
    const waiting = !queue.current;
    const again = new Set(answer.items.map((card) => card.item));
    const lost = expired && queue.drop(new Set(queue.held().filter((item) => !again.has(item))));
    const judged = new Set(unsaved.filter((entry) => entry.action !== "undo").map((entry) => entry.item));
    const drafts = outbox.drafts();
    for (const card of [...answer.recent, ...answer.items]) {
      card.reason = drafts.get(card.item) ?? card.reason;
      if (!judged.has(card.item) && queue.add(card)) view.prepare(card);
      if (card.pending) loadLate(card);
    }
    if (!progress) seen = answer.progress.n_seen;
    // A judgment that was saved while the server counted may be missing in its count.
    const nothingMeanwhile = !unsaved.length && recorded === before;
    if (!progress || nothingMeanwhile || (!outbox.unsaved().length && nJudged(answer.progress) === nJudged(progress) + delta)) {
      progress = answer.progress;
      delta = 0;
    }
    if (n) done = !answer.items.length;
    if (lost || waiting || !started) toOpen();
    else if (view.layout === "list") view.show(queue);
    started = true;
    view.showProgress(progress, queue.current, delta);
    $("judge").dataset.ahead = queue.held().length;
  } catch (error) {
    if (error.status === 401 || error.status === 403) $("sign-in").hidden = false;
    $("finished-text").textContent = error.status ? error.message : "The server cannot be reached. Trying again …";
    if (!error.status || error.status >= 500) setTimeout(refill, RETRY_MS);
  }
}

/** A text that was not there in time: the item waits for it, and the others do not. */
async function loadLate(card) {
  const answer = await api.request("GET", `items/${card.item}`).catch((error) => ({ item: { problem: `No text: ${error.message}.` } }));
  const { title, html, sides, digest, open_url, problem, without_text } = answer.item;
  Object.assign(card, { pending: false, problem, title: title ?? card.title, html: html ?? "", digest, open_url, without_text, sides: sides ?? card.sides });
  if (!card.node) return;
  const node = card.node;
  view.prepare(card);
  if (node.isConnected) view.show(queue);
}

function refillIfShort() {
  if (!done && queue.held().length <= MIN_AHEAD) refill();
}

// --- moving

function arrive({ focus = true } = {}) {
  const card = queue.current;
  $("judge").dataset.ahead = queue.held().length;
  clock.start();
  view.show(queue);
  view.showProgress(progress, card, delta);
  if (card && focus) view.focus(card);
  if (card && !card.order) card.order = ++seen;
  if (card) return;
  $("look-again").hidden = !done || page.closed || !progress?.n_leased;
  $("finished-text").textContent = done ? nothingLeft() : LOADING;
  if (done) view.announce(nothingLeft());
}

function nothingLeft() {
  if (page.closed) return "This book is closed and accepts no judgments.";
  if (!progress?.n_leased) return "You have no items left to judge in this book.";
  const held = progress.n_leased === 1 ? "1 item is" : `${progress.n_leased} items are`;
  const until = new Date(progress.leased_until).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  return `No item is free for you now: ${held} reserved by other raters. Items that they do not judge become free at ${until}.`;
}

function leave() {
  const card = queue.current;
  if (card) card.ms = (card.ms ?? 0) + clock.read();
}

/** Stay where there is something to judge, or go to it. */
function toOpen() {
  if (queue.current && !queue.current.mine) arrive({ focus: false });
  else toNext({ focus: false });
}

function toNext(options) {
  leave();
  if (!queue.advance()) queue.at = queue.cards.length;
  arrive(options);
  refillIfShort();
}

// --- judging

/** Change where a card stands, and send it. `mine` is null for an undo. */
function record(card, action, mine, method) {
  const wasOpen = !card.mine || card.mine.action === "later";
  const isOpen = !mine || mine.action === "later";
  delta += wasOpen - isOpen;
  recorded += 1;
  card.mine = mine;
  if (isOpen) done = false;
  view.showState(card);
  send(card, action, method);
  tabs.postMessage({ tab, judged: mine ? card.item : null });
}

function send(card, action, method) {
  keepDraft(card, card.reason);
  outbox.add({
    item: card.item,
    action,
    grade: action === "grade" && page.mode === "grade" ? card.mine.grade : null,
    choice: action === "grade" && page.mode !== "grade" ? card.mine.grade : null,
    skip_reason: action === "skip" ? card.mine.skip_reason : null,
    reason: action === "grade" || action === "skip" ? (card.reason ?? "") : "",
    duration_ms: card.ms ?? 0,
    order_seen: card.order ?? null,
    guideline_version: page.guideline.version,
    method,
    doc_digest: card.digest,
  });
}

const isJudged = (card) => card.mine?.action === "grade" || card.mine?.action === "skip";

/** A reason is sent with the judgment; until there is one, it is kept in this browser. */
function keepDraft(card, text) {
  outbox.keepDraft(card.item, isJudged(card) ? "" : text);
}

function takeReason() {
  const card = queue.current;
  const text = $("reason").value.trim();
  if (!card || text === (card.reason ?? "")) return;
  card.reason = text;
  if (isJudged(card)) send(card, card.mine.action, "key");
  else keepDraft(card, text);
  view.showState(card);
}

function judge(mine, method) {
  const card = queue.current;
  if (!card) return;
  leave();
  clock.start();
  undoable.push([{ card, before: card.mine }]);
  const lastOfQuery = queue.ofQuery(card).every((other) => other === card || other.mine);
  record(card, mine.action, mine, method);
  view.announce("");
  toNext();
  if (lastOfQuery && page.reveal && queue.current?.query.id !== card.query.id) dialogs.offerReveal(card.query);
}

function undo(method) {
  const recent = queue.cards.slice(0, queue.at).findLast((card) => card.mine);
  const unit = undoable.pop() ?? (recent ? [{ card: recent, before: null }] : null);
  if (!unit) {
    view.announce("Nothing to undo.");
    return;
  }
  leave();
  for (const each of unit) {
    each.card = queue.find(each.card.item) ?? each.card; // what was put off may have been fetched anew
    record(each.card, each.before ? each.before.action : "undo", each.before, method);
  }
  if (!queue.goTo(unit[0].card)) queue.insert(unit[0].card);
  arrive();
  view.announce(unit.length > 1 ? `Undone: ${unit.length} grades withdrawn.` : "Undone.");
}

async function restOfQuery(method) {
  const here = queue.current;
  if (!here) return;
  while (!done && queue.cards.at(-1).query.id === here.query.id) {
    const before = queue.cards.length;
    await refill(50);
    if (queue.cards.length === before) break;
  }
  const rest = queue.ofQuery(here).filter((card) => !card.mine);
  const lowest = page.choices[0];
  if (!rest.length || !(await dialogs.confirmRest(rest.length, view.name(lowest.value)))) return;
  leave();
  undoable.push(rest.map((card) => ({ card, before: card.mine })));
  for (const card of rest) record(card, "grade", { action: "grade", grade: lowest.value }, method);
  toNext();
  view.announce(`${rest.length} documents graded ${view.name(lowest.value)}. Undo withdraws all of them.`);
}

// --- actions

const ACTIONS = {
  next: () => step(1),
  previous: () => step(-1),
  undo,
  skip: async (method) => {
    const reason = queue.current && (await dialogs.chooseSkip());
    if (reason) judge({ action: "skip", skip_reason: reason }, method);
  },
  later: (method) => judge({ action: "later" }, method),
  reason: () => $("reason").focus(),
  flag: (method) => {
    const card = queue.current;
    if (!card) return;
    card.flagged = !card.flagged;
    send(card, card.flagged ? "flag" : "unflag", method);
    view.showState(card);
    view.show(queue);
    view.announce(card.flagged ? "Flagged." : "No longer flagged.");
  },
  next_query: async () => {
    leave();
    if (!queue.nextQuery()) {
      await refill(50);
      if (!queue.nextQuery()) view.announce("No other query to judge.");
    }
    arrive();
  },
  guidelines: () => {
    $("guidelines").open = !$("guidelines").open;
    if ($("guidelines").open) $("guidelines").querySelector("summary").focus();
  },
  highlight: () => settings.change({ highlight: !settings.values.highlight }),
  layout: () => settings.change({ layout: settings.values.layout === "list" ? "card" : "list" }),
  open: () => queue.current?.open_url && open(queue.current.open_url, "_blank", "noopener,noreferrer"),
  rest: (method) => restOfQuery(method),
  add: () => addDocument(),
  help: () => dialogs.showHelp(),
  left: (method) => judge({ action: "grade", grade: "left" }, method),
  right: (method) => judge({ action: "grade", grade: "right" }, method),
  tie: (method) => judge({ action: "grade", grade: "tie" }, method),
};

function step(by) {
  leave();
  const moved = queue.move(by);
  view.announce(moved ? "" : by > 0 ? "This is the last item you have opened." : "This is the first item.");
  arrive();
  refillIfShort();
}

function act(name, grade, event) {
  const method = event?.type === "keydown" ? "key" : "click";
  if (name !== "grade") ACTIONS[name](method);
  else if (Number.isNaN(grade)) view.announce("This is not a grade of the scale.");
  else judge({ action: "grade", grade }, method);
  if (event) measure(event.timeStamp);
}

/** From the key to the frame that shows its effect; for the developer tools and the tests. */
function measure(start) {
  requestAnimationFrame(() => requestAnimationFrame(() => performance.measure("cranfield: key to paint", { start, end: performance.now() })));
}

async function addDocument() {
  const query = queue.current?.query;
  const fields = query && (await dialogs.addDocument(query));
  if (!fields) return;
  try {
    const card = view.prepare((await api.request("POST", "documents", { query: query.name, ...fields })).item);
    queue.insert(card);
    view.announce(`Added: ${card.title || card.doc}. It is the next item.`);
    arrive();
  } catch (error) {
    view.announce(`Not added: ${error.message}`);
  }
}

// --- start

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-action], [data-choice]");
  if (!button) return;
  if (button.dataset.action) act(button.dataset.action, null, event);
  else if (page.mode === "grade") act("grade", Number(button.dataset.choice), event);
  else act(button.dataset.choice, null, event);
});

$("look-again").addEventListener("click", () => refill());
$("refused-again").addEventListener("click", () => outbox.resolve(true));
$("refused-drop").addEventListener("click", () => outbox.resolve(false));
$("reason").addEventListener("change", takeReason);
$("reason").addEventListener("input", () => queue.current && keepDraft(queue.current, $("reason").value.trim()));
$("reason").addEventListener("keydown", (event) => {
  if (event.isComposing || (event.key !== "Escape" && !(event.key === "Enter" && !event.shiftKey))) return;
  event.preventDefault();
  view.focus(queue.current); // leaves the field, which saves
});

tabs.addEventListener("message", ({ data }) => {
  if (data.ask) tabs.postMessage({ tab, held: queue.held() });
  if (data.held) elsewhere.set(data.tab, data.held);
  if (data.closed) elsewhere.delete(data.tab);
  if (data.judged && queue.drop(new Set([data.judged]))) toOpen();
});
addEventListener("pagehide", takeReason);
addEventListener("pagehide", () => tabs.postMessage({ tab, closed: true }));
document.addEventListener("visibilitychange", () => document.hidden || refill(done ? AHEAD : 0));
setInterval(() => document.hidden || refill(done ? AHEAD : 0), RENEW_MS);

settings.apply = (values) => {
  keys.settings = values;
  view.layout = page.mode === "grade" ? values.layout : "card";
  document.body.classList.toggle("no-highlight", !values.highlight);
  document.body.classList.toggle("list", view.layout === "list");
  $("highlight").setAttribute("aria-pressed", String(values.highlight));
  $("layout").setAttribute("aria-pressed", String(view.layout === "list"));
  for (const action of page.actions) {
    for (const place of document.querySelectorAll(`[data-key="${action.name}"]`)) {
      const key = keys.keyOf(action);
      place.textContent = key === action.key ? action.symbol : key.toUpperCase();
      place.hidden = !values.enabled && key.length === 1;
    }
  }
  if (queue.current) view.show(queue);
};
settings.apply(settings.values);

async function start() {
  $("finished-text").textContent = LOADING; // in place of what the page says without this script
  tabs.postMessage({ tab, ask: true });
  await Promise.all([outbox.flush(true), new Promise((resolve) => setTimeout(resolve, TABS_MS))]);
  await refill(AHEAD, RECENT);
  $("judge").dataset.ready = "true";
  if (location.hash === "#keys") dialogs.showHelp(); // the link of the account page
}

start();
