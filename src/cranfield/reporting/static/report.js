/* What a report does with its script on: tables sort, filter and export; charts tell their values; every query opens.
   Text of systems and documents gets onto the page as text alone. Without this script the page reads the same. */
"use strict";
(() => {
const MINUS = "\u2212", UNKNOWN = "\u2013";
const PAGE_ROWS = 20, MORE_ROWS = 500, TABLE_ROWS = 300;
const collator = new Intl.Collator("en", { numeric: true });
const UNPRINTABLE = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]/gu;

const printable = text => String(text).replace(/[\t\r\n]+/g, " ")
  .replace(UNPRINTABLE, one => "\\u" + one.charCodeAt(0).toString(16).padStart(4, "0"));

function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") made.addEventListener("click", value);
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.map(child => child instanceof Node ? child : printable(child)));
  return made;
}

const fixed = value => value.toFixed(4).replace("-", MINUS);
const valueText = value => value === null || value === undefined ? UNKNOWN : fixed(value);
const deltaText = value => value === null || value === undefined ? UNKNOWN : (value > 0 ? "+" : "") + fixed(value);
const count = number => number.toLocaleString("en");
const fold = text => text.toLowerCase();
const wordsOf = text => fold(text).split(/\s+/).filter(Boolean);

/* ---- CSV ---------------------------------------------------------------- */

function csvCell(text, numeric) {
  let cell = text.trim();
  if (numeric) cell = cell === UNKNOWN ? "" : cell.replace(/^\u2212/, "-").replace(/(?<=\d),(?=\d{3})/g, "");
  if (/^ *[=+\-@\t\r]/.test(cell) && !/^[+-]?\d+(\.\d+)?$/.test(cell)) cell = "'" + cell;
  return /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

function saveCsv(name, rows) {
  const text = rows.map(row => row.join(",") + "\n").join("");
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const slug = fold(name).replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "table";
  make("a", { href: url, download: slug + ".csv" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/* ---- Tables ------------------------------------------------------------- */

const UNITS = { s: 1000, min: 60000, h: 3600000 };

function numberOf(text) {
  const found = /[+-]?(\d[\d,]*)?\.?\d+/.exec(text.replaceAll(MINUS, "-"));
  if (!found) return NaN;
  const unit = /\d (s|min|h)$/.exec(text.trim());
  return parseFloat(found[0].replaceAll(",", "")) * (unit ? UNITS[unit[1]] : 1) - (text.includes("<") ? 1e-9 : 0);
}

function compareCells(a, b, way) {
  const unknown = Number.isNaN(a) - Number.isNaN(b);
  if (typeof a === "number") return unknown || (Number.isNaN(a) ? 0 : way * (a - b));
  return way * collator.compare(a, b);
}

/** A heading that sorts: the first press in the direction of most use, then the other, then as it was. */
function sortable(th, numeric, sort) {
  const button = make("button", { type: "button", class: "sort" });
  button.append(...th.childNodes);
  th.append(button);
  button.addEventListener("click", () => {
    const first = numeric ? "descending" : "ascending", second = numeric ? "ascending" : "descending";
    const next = { [first]: second, [second]: null }[th.getAttribute("aria-sort")];
    for (const other of th.parentNode.children) other.removeAttribute("aria-sort");
    const now = next === undefined ? first : next;
    if (now) th.setAttribute("aria-sort", now);
    sort(now === "ascending" ? 1 : now === "descending" ? -1 : 0);
  });
}

function equip(table) {
  const head = table.tHead && table.tHead.rows[table.tHead.rows.length - 1], body = table.tBodies[0];
  if (table.dataset.equipped || !head || !body || [...head.cells].some(cell => cell.colSpan > 1)) return;
  table.dataset.equipped = "yes";
  const numeric = [...head.cells].map(cell => cell.classList.contains("n"));
  const name = table.caption?.textContent || table.closest("figure")?.querySelector("figcaption")?.textContent || document.title;
  const given = [...body.rows], state = { rows: given, words: [], limit: TABLE_ROWS, texts: null };
  const tools = tableTools(name, state, apply, () => {
    const text = cell => cell.querySelector(".sort")?.textContent ?? cell.textContent;
    saveCsv(name, [head, ...state.found].map(row => [...row.cells].map((cell, at) => csvCell(printable(text(cell)), numeric[at]))));
  });
  [...head.cells].forEach((th, at) => {
    if (th.textContent.trim()) sortable(th, numeric[at], way => sort(at, way));
  });
  (table.closest(".scroll") ?? table).before(tools.element);
  apply();
  window.addEventListener("beforeprint", () => { state.limit = Infinity; apply(); });

  function sort(at, way) {
    const key = row => numeric[at] ? numberOf(row.cells[at]?.textContent ?? "") : (row.cells[at]?.textContent ?? "").trim();
    const rows = given.map(row => [key(row), row]);
    if (way) rows.sort((a, b) => compareCells(a[0], b[0], way));
    state.rows = rows.map(([, row]) => row);
    apply();
    body.append(...state.rows);
  }

  /** Show the rows that have the words, the first of them where there are many. */
  function apply() {
    if (state.words.length) state.texts ??= new Map(given.map(row => [row, fold(row.textContent)]));
    const has = row => !state.words.length || state.words.every(word => state.texts.get(row).includes(word));
    state.found = state.rows.filter(has);
    const shown = new Set(state.found.slice(0, state.limit));
    given.forEach(row => { row.hidden = !shown.has(row); });
    tools.say(shown.size, state.found.length, given.length);
  }
}

/** Filter, CSV, and how many rows there are, over a table. */
function tableTools(name, state, apply, save) {
  const status = make("span", { role: "status" });
  const field = make("input", { type: "search", "aria-label": `Filter the rows of: ${name}`, placeholder: "words in a row", hidden: true });
  field.addEventListener("input", () => { state.words = wordsOf(field.value); apply(); });
  const toggle = make("button", { type: "button", "aria-expanded": "false", "aria-label": `Filter: ${name}`, onclick: () => {
    field.hidden = !field.hidden;
    toggle.setAttribute("aria-expanded", String(!field.hidden));
    if (field.hidden) { field.value = ""; state.words = []; apply(); } else field.focus();
  } }, "Filter");
  const all = make("button", { type: "button", "aria-label": `All rows: ${name}`, hidden: true, onclick: () => { state.limit = Infinity; apply(); } }, "All rows");
  const csv = make("button", { type: "button", "aria-label": `CSV: ${name}`, onclick: save }, "CSV");
  const say = (shown, found, total) => {
    status.textContent = shown < found ? `first ${count(shown)} of ${count(found)} rows` : found < total ? `${count(found)} of ${count(total)} rows` : "";
    all.hidden = shown === found;
  };
  return { element: make("span", { class: "table-tools" }, status, all, field, toggle, csv), say };
}

function equipAll() {
  document.querySelectorAll(".report figure.table table, table[data-tools]").forEach(equip);
}

/* ---- Charts ------------------------------------------------------------- */

function equipChart(svg, tip) {
  const marks = [...svg.querySelectorAll("[data-tip]")];
  const places = [...new Map(marks.map(mark => [mark.dataset.tip, mark])).values()];
  svg.setAttribute("role", "group");
  const show = mark => {
    const box = mark.getBoundingClientRect();
    tip.textContent = mark.dataset.tip;
    tip.hidden = false;
    const left = Math.min(Math.max(8, box.left + box.width / 2 - tip.offsetWidth / 2), document.documentElement.clientWidth - tip.offsetWidth - 8);
    tip.style.left = `${left}px`;
    tip.style.top = `${box.top - tip.offsetHeight - 8 < 0 ? box.bottom + 8 : box.top - tip.offsetHeight - 8}px`;
  };
  const hide = () => { tip.hidden = true; };
  const leads = mark => mark.dataset.q && canOpen;
  const jump = mark => { if (leads(mark)) location.hash = "#q=" + mark.dataset.q; };
  svg.addEventListener("pointerover", event => { const mark = event.target.closest("[data-tip]"); if (mark) show(mark); else hide(); });
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("focusin", event => { const mark = event.target.closest("[data-tip]"); if (mark) show(mark); });
  svg.addEventListener("focusout", hide);
  svg.addEventListener("click", event => { const mark = event.target.closest("[data-tip]"); if (mark) jump(mark); });
  places.forEach((mark, at) => {
    mark.setAttribute("tabindex", at ? "-1" : "0");
    mark.setAttribute("role", leads(mark) ? "button" : "img");
    mark.setAttribute("aria-label", mark.dataset.tip);
  });
  svg.addEventListener("keydown", event => {
    const at = places.indexOf(event.target);
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (at < 0) return;
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); jump(places[at]); }
    const next = step && places[at + step];
    if (!step) return;
    event.preventDefault();
    if (!next) return;
    places[at].setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  });
}

function equipCharts() {
  const svgs = [...document.querySelectorAll(".report .picture svg")].filter(svg => svg.querySelector("[data-tip]"));
  if (!svgs.length) return;
  const tip = make("div", { class: "chart-tip report", "aria-hidden": "true", hidden: true });
  document.body.append(tip);
  svgs.forEach(svg => equipChart(svg, tip));
}

/* ---- Where the data of the queries are ---------------------------------- */

const CANNOT_UNPACK = "This browser cannot unpack the data of the queries (it has no DecompressionStream): use Firefox 113, Chrome 80, Safari 16.4 "
  + "or newer. All other parts of this report are complete.";

async function unpack(node) {
  const packed = atob(node.textContent);
  const bytes = Uint8Array.from(packed, one => one.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

async function fetched(url) {
  const answer = await fetch(url, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(`The server answered ${answer.status}.`);
  return answer.json();
}

/** Index and details, from the page itself or from its server. */
function sourceOf(section) {
  const { index, query, chunk } = section.dataset;
  if (index) return { index: () => fetched(index), detail: id => fetched(query + (query.includes("?") ? "&" : "?") + "id=" + encodeURIComponent(wellFormed(id))) };
  const nodes = document.querySelectorAll("script.query-data"), parts = new Map();
  const part = number => {
    if (parts.size > 40) parts.clear();
    if (!parts.has(number)) parts.set(number, unpack(nodes[number]));
    return parts.get(number);
  };
  return {
    index: () => unpack(nodes[0]),
    warm: () => part(1),
    detail: async (id, place) => {
      const [documents, { kinds, details }] = await Promise.all([part(1), part(Math.floor(place / Number(chunk)) + 2)]);
      const detail = details[place % Number(chunk)];
      return { ...detail, sides: detail.sides.map(side => ({ ...side, hits: hitsOf(side.hits, documents, kinds) })) };
    },
  };
}

/** Results from pairs of numbers: the document, and how it was judged. */
function hitsOf(numbers, { ids, titles }, kinds) {
  const hits = [];
  for (let at = 0; at < numbers.length; at += 2) {
    const id = ids[numbers[at]];
    const hit = { rank: at / 2 + 1, id, title: titles[numbers[at]], ...kinds[numbers[at + 1]] };
    if (hit.item === true) hit.item = id;
    hits.push(hit);
  }
  return hits;
}

/* ---- Query by query ----------------------------------------------------- */

const section = document.getElementById("query-view");
const panel = document.getElementById("query-panel");
const keys = document.getElementById("query-keys");
const canOpen = section && (section.dataset.index || typeof DecompressionStream !== "undefined");
const wellFormed = id => id.replace(/\p{Surrogate}/gu, "?");  // half of a character cannot be in an address
const hashOf = id => "#q=" + encodeURIComponent(wellFormed(id));
let data = null, source = null, order = [], shownRows = PAGE_ROWS, sorted = null, current = -1, sides = [0, 1];

const find = name => section.querySelector(`[data-part="${name}"]`);
const inPanel = name => panel.querySelector(`[data-part="${name}"]`);

function idOfHash() {
  if (!location.hash.startsWith("#q=")) return null;
  try { return decodeURIComponent(location.hash.slice(3)); } catch { return location.hash.slice(3); }
}

async function startView() {
  section.hidden = false;
  document.querySelectorAll("[data-for='query-view']").forEach(link => { link.hidden = false; });
  if (!canOpen) {
    find("status").textContent = CANNOT_UNPACK;
    find("tools").hidden = find("list").hidden = true;
    return;
  }
  document.body.append(panel, keys);
  source = sourceOf(section);
  try { data = await source.index(); } catch (error) { find("status").textContent = `The queries could not be loaded: ${error.message}`; return; }
  prepare();
  listHead();
  refresh();
  wire();
  openHash();
  section.dataset.ready = "yes";
  setTimeout(() => source.warm?.(), 300);
}

function prepare() {
  const { ids, texts, strata, outcomes, buckets } = data;
  data.places = new Map(ids.map((id, at) => [wellFormed(id), at]));
  data.search = ids.map((id, at) => fold([id, texts[at], ...Object.values(strata[at]), ...outcomes.map(side => side[at]), buckets ? buckets[at] : ""].join("\n")));
  const groups = new Map();
  strata.forEach(of => Object.entries(of).forEach(([key, value]) => groups.set(key, (groups.get(key) ?? new Set()).add(value))));
  for (const [key, values] of groups) options(find("stratum"), key, [...values].sort(), value => JSON.stringify([key, value]));
  if (buckets) options(find("outcome"), "change", [...new Set(buckets)].filter(Boolean), name => JSON.stringify(["bucket", name]));
  options(find("outcome"), "outcome", [...new Set(outcomes.flat())], name => JSON.stringify(["outcome", name]));
  find("stratum").parentNode.hidden = !groups.size;
}

function options(select, label, names, value) {
  select.append(make("optgroup", { label: printable(label) }, ...names.map(name => make("option", { value: value(name) }, name))));
}

/** The columns of the list: heading, numeric, key to sort by, and cell. */
function columns() {
  const { systems, ids, texts, values, deltas, ranks, outcomes, buckets, measure } = data;
  const rank = (side, at) => ranks[side][at] ?? null;
  const found = [["query", false, at => ids[at], null]];
  if (texts.some((text, at) => text && text !== ids[at])) found.push(["text", false, at => texts[at], at => texts[at]]);
  const short = systems.length === 2 && deltas ? ["A", "B"] : systems;
  if (measure) short.forEach((name, side) => found.push([systems.length === 1 ? measure : name, true, at => values[side][at] ?? NaN, at => valueText(values[side][at])]));
  if (deltas) found.push(["difference", true, at => deltas[at] ?? NaN, at => deltaText(deltas[at]), at => toneOf(deltas[at])]);
  if (systems.length < 3) short.forEach((name, side) => found.push([systems.length === 1 ? "rank" : `rank ${name}`, true, at => rank(side, at) ?? NaN, at => rank(side, at) ?? (["answered", "empty"].includes(outcomes[side][at]) ? "not found" : "failed")]));
  if (buckets) found.push(["change", false, at => buckets[at], at => buckets[at]]);
  found.push(["outcome", false, at => outcomeText(at), at => outcomeText(at)]);
  return found;

  function outcomeText(at) {
    const each = outcomes.map(side => side[at]);
    return each.every(one => one === each[0]) ? each[0] : each.map((one, side) => `${short[side]} ${one}`).filter((_, side) => each[side] !== "answered").join(", ");
  }
}

function toneOf(delta) {
  if (!delta || data.is_void || data.is_diagnostic) return "";
  return (delta > 0) === data.higher_is_better ? "good" : "bad";
}

function listHead() {
  data.columns = columns();
  find("head").replaceChildren(...data.columns.map(([title, numeric, key]) => {
    const th = make("th", { scope: "col", class: numeric ? "n" : null }, title);
    sortable(th, numeric, way => { sorted = way ? [key, way] : null; refresh(); });
    return th;
  }));
}

function refresh() {
  const words = wordsOf(find("find").value);
  const stratum = find("stratum").value && JSON.parse(find("stratum").value);
  const outcome = find("outcome").value && JSON.parse(find("outcome").value);
  const exact = wellFormed(find("find").value.trim());
  order = data.ids.map((_, at) => at).filter(at =>
    words.every(word => data.search[at].includes(word))
    && (!stratum || data.strata[at][stratum[0]] === stratum[1])
    && (!outcome || (outcome[0] === "bucket" ? data.buckets[at] === outcome[1] : data.outcomes.some(side => side[at] === outcome[1]))));
  if (sorted) {
    const keyed = order.map(at => [sorted[0](at), at]);
    order = keyed.sort((a, b) => compareCells(a[0], b[0], sorted[1])).map(([, at]) => at);
  } else if (data.places.has(exact)) {
    const at = data.places.get(exact);
    order = [at, ...order.filter(other => other !== at)];
  }
  shownRows = PAGE_ROWS;
  listRows();
}

function listRows() {
  find("rows").replaceChildren(...order.slice(0, shownRows).map(at => make("tr", {}, ...data.columns.map(([, numeric, , cell, tone]) => {
    if (!cell) return make("th", { scope: "row" }, make("a", { href: hashOf(data.ids[at]) }, make("code", {}, data.ids[at])));
    const text = printable(cell(at));
    return make("td", { class: [numeric ? "n" : text.length > 24 ? "wordy" : "", tone ? tone(at) : ""].filter(Boolean).join(" ") || null }, text);
  }))));
  const all = data.ids.length;
  const what = data.measure && data.systems.length > 1 ? `, values of ${data.measure}` : "";
  find("status").textContent = (order.length === all ? `${count(all)} queries` : `${count(order.length)} of ${count(all)} queries`) + what;
  find("more").hidden = order.length <= shownRows;
  find("more").textContent = `Show more (${count(Math.max(0, order.length - shownRows))} left)`;
}

function saveList() {
  const cells = at => data.columns.map(([, numeric, key, cell]) => csvCell(numeric ? (Number.isNaN(key(at)) ? "" : String(key(at))) : printable(cell ? cell(at) : data.ids[at]), numeric));
  saveCsv("queries", [data.columns.map(([title]) => csvCell(printable(title))), ...order.map(cells)]);
}

/* ---- One query ---------------------------------------------------------- */

async function openHash() {
  const id = idOfHash();
  if (id === null) { if (panel.open) panel.close(); return; }
  const place = data.places.get(id);
  if (place === undefined) {
    find("status").textContent = `There is no query ${printable(id)} here.`;
    find("find").focus();
    return;
  }
  current = place;
  if (keys.open) keys.close();
  let detail;
  try { detail = await source.detail(data.ids[place], place); } catch (error) { detail = { error: error.message }; }
  if (current !== place || idOfHash() !== id) return;  // another one was opened meanwhile
  if (!panel.open) panel.showModal();
  showDetail(detail, data.ids[place]);
}

function showDetail(detail, id) {
  const at = order.indexOf(current);
  inPanel("place").textContent = at < 0 ? "" : `${count(at + 1)} of ${count(order.length)}`;
  inPanel("previous").disabled = at <= 0;
  inPanel("next").disabled = at < 0 || at >= order.length - 1;
  const title = detail.text && detail.text !== id ? `${id} \u201c${detail.text}\u201d` : id;
  inPanel("title").textContent = printable(title);
  const body = inPanel("body");
  if (detail.error) {
    body.replaceChildren(make("p", { class: "warning" }, `The query could not be loaded: ${detail.error}`));
    return;
  }
  const isSaid = panel.querySelector(".stamp") !== null;
  const about = [...Object.entries(detail.strata).map(([key, value]) => `${key}: ${value}`), detail.bucket, detail.move].filter(Boolean);
  body.replaceChildren(
    ...(data.is_void && !isSaid ? [make("p", { class: "warning" }, "The figures do not count: see the verdict.")] : []),
    ...(about.length ? [make("p", { class: "query-about" }, about.join(" \u00b7 "))] : []),
    ...(detail.sides.length > 2 ? [chooser(detail, id)] : []),
    lists(detail),
    expectedTable(detail),
    valuesTable(detail));
  body.querySelectorAll("figure.table table").forEach(equip);
  body.scrollTop = 0;
  drawLinks();
  document.dispatchEvent(new CustomEvent("report:query", { detail: { data: detail, panel } }));
}

/** Of many systems, which two are side by side. */
function chooser(detail, id) {
  sides = sides.map(side => Math.min(side, detail.sides.length - 1));
  const choose = (label, slot) => {
    const select = make("select", {}, ...detail.sides.map((side, at) => make("option", { value: at, selected: at === sides[slot] }, side.system)));
    select.addEventListener("change", () => { sides[slot] = Number(select.value); showDetail(detail, id); });
    return make("label", {}, label + " ", select);
  };
  return make("p", { class: "query-tools" }, choose("Left", 0), choose("Right", 1));
}

const shownSides = detail => detail.sides.length > 2 ? sides.map(side => detail.sides[side]) : detail.sides;
const letterOf = side => side.system === side.name ? side.name : side.system.split(" ")[0];

/** The lists of two systems, rank by rank, and what moved between them; of one system its list. */
function lists(detail) {
  const shown = shownSides(detail);
  const depth = Math.max(1, ...shown.map(side => side.hits.length));
  const grid = make("div", { class: shown.length > 1 ? "aligned" : "aligned alone" });
  grid.style.setProperty("--rows", depth);
  shown.forEach((side, at) => {
    const other = shown.length > 1 ? shown[1 - at] : null;
    const latency = side.latency_ms === null ? "" : `; ${side.latency_ms.toFixed(side.latency_ms < 100 ? 1 : 0)} ms`;
    const list = make("ol", { class: "hits", "aria-label": printable(side.system) }, ...side.hits.map(hit => hitItem(hit, other, at === 1)));
    grid.append(make("div", { class: "answer" },
      make("p", { class: "answer-title" }, side.system), make("p", { class: "answer-note" }, side.note + latency), list));
  });
  if (shown.length > 1) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("aria-hidden", "true");  // each result says in words where it was
    svg.classList.add("links");
    grid.append(svg);
  }
  return grid;
}

function hitItem(hit, other, isRight) {
  const line = make("span", { class: "hit-line" }, make("code", {}, hit.id), " ", make("span", { class: "badge" }, hit.note));
  const what = make("span", { class: "what" }, line);
  if (hit.title) what.append(" ", make("span", { class: "hit-title" }, hit.title));
  if (other) what.append(" ", movementOf(hit, other, isRight));
  return make("li", { class: "hit " + hit.tone, value: hit.rank, "data-id": hit.id, "data-state": hit.state },
    make("span", { class: "rank" }, hit.rank), " ", what);
}

function movementOf(hit, other, isRight) {
  const there = other.hits.find(one => one.id === hit.id), name = letterOf(other);
  if (!there) return make("span", { class: "move" }, isRight ? `new: not in the list of ${name}` : `not in the list of ${name}`);
  const rose = isRight ? there.rank - hit.rank : hit.rank - there.rank;
  const arrow = rose > 0 ? "\u25b2" : rose < 0 ? "\u25bc" : "=";
  return make("span", { class: "move" }, `${arrow} rank ${there.rank} on ${name}`);
}

/** A line from each result of the left list to its place in the right one. */
function drawLinks() {
  const svg = panel.querySelector("svg.links");
  if (!svg) return;
  const frame = svg.getBoundingClientRect();
  svg.replaceChildren();
  if (!frame.width) return;
  const [left, right] = [...panel.querySelectorAll(".aligned .hits")].map(list => [...list.children]);
  const targets = new Map(right.map(item => [item.dataset.id, item]).reverse());
  const middle = item => { const box = item.getBoundingClientRect(); return box.top + box.height / 2 - frame.top; };
  for (const item of left) {
    const target = targets.get(item.dataset.id);
    if (!target) continue;
    const line = document.createElementNS(svg.namespaceURI, "line");
    const [from, to] = [middle(item), middle(target)];
    for (const [name, value] of Object.entries({ x1: 2, x2: frame.width - 2, y1: from, y2: to })) line.setAttribute(name, value);
    line.classList.add(!item.classList.contains("good") || data.is_void ? "plain" : to < from - 1 ? "good" : to > from + 1 ? "bad" : "same");
    svg.append(line);
  }
}

function table(caption, headings, rows) {
  const cell = ([text, tone], at) => make(at ? "td" : "th", { scope: at ? null : "row", class: [headings[at][1] ? "n" : text.length > 24 ? "wordy" : "", tone].filter(Boolean).join(" ") || null }, text);
  return make("figure", { class: "table" }, make("figcaption", {}, caption),
    make("div", { class: "scroll", role: "region", "aria-label": caption, tabindex: "0" }, make("table", {},
      make("thead", {}, make("tr", {}, ...headings.map(([title, numeric]) => make("th", { scope: "col", class: numeric ? "n" : null }, title)))),
      make("tbody", {}, ...rows.map(row => make("tr", {}, ...row.map(cell)))))));
}

function expectedTable(detail) {
  if (!detail.expected.length) return make("p", { class: "expected" }, `Expected: ${detail.expected_none}.`);
  const missed = detail.expected.filter(item => item.ranks.every(rank => rank === null)).length;
  const rows = detail.expected.map(item => [[printable(item.item)], [String(item.grade)], ...item.ranks.map(rank => rank === null ? ["missed", "bad"] : [String(rank)])]);
  const whom = detail.sides.length > 1 ? " by every system" : "";
  const caption = `Expected items and the rank of each${missed ? `: ${count(missed)} of ${count(rows.length)} missed${whom}` : ""}`;
  return table(caption, [["item"], ["grade", true], ...detail.sides.map(side => [printable("rank " + letterOf(side)), true])], rows);
}

function valuesTable(detail) {
  const pair = detail.sides.length === 2 && detail.values.some(row => "delta" in row), reasons = new Set();
  const rows = detail.values.map(row => {
    (row.unscored ?? []).filter(Boolean).forEach(reason => reasons.add(`${row.measure}: ${reason}`));
    return [[row.measure], ...row.values.map(value => [valueText(value)]), ...(pair ? [[deltaText(row.delta), row.tone]] : [])];
  });
  const made = table("Values of this query", [["measure"], ...detail.sides.map(side => [printable(letterOf(side)), true]), ...(pair ? [["difference", true]] : [])], rows);
  if (reasons.size) made.append(make("p", { class: "answer-note" }, `No value: ${[...reasons].join("; ")}.`));
  return made;
}

/* ---- Keys --------------------------------------------------------------- */

function step(by) {
  const next = order[order.indexOf(current) + by];
  if (next === undefined) return;
  history.replaceState(null, "", hashOf(data.ids[next]));
  openHash();
}

function stepList(by) {
  const links = [...find("rows").querySelectorAll("th a")];
  const at = links.indexOf(document.activeElement);
  const next = links[at < 0 ? 0 : Math.min(Math.max(0, at + by), links.length - 1)];
  next?.focus();
}

function search() {
  if (keys.open) keys.close();
  if (panel.open) panel.close();
  section.scrollIntoView({ block: "start" });
  find("find").focus();
  find("find").select();
}

const KEYS = {
  j: () => panel.open ? step(1) : stepList(1),
  k: () => panel.open ? step(-1) : stepList(-1),
  "/": search,
  "?": () => { if (!keys.open) keys.showModal(); },
};

function wire() {
  find("find").addEventListener("input", refresh);
  find("stratum").addEventListener("change", refresh);
  find("outcome").addEventListener("change", refresh);
  find("more").addEventListener("click", () => { shownRows += MORE_ROWS; listRows(); });
  find("csv").addEventListener("click", saveList);
  find("keys").addEventListener("click", KEYS["?"]);
  find("tools").addEventListener("submit", event => {
    event.preventDefault();
    if (order.length) location.hash = hashOf(data.ids[order[0]]);
  });
  inPanel("previous").addEventListener("click", () => step(-1));
  inPanel("next").addEventListener("click", () => step(1));
  inPanel("print").addEventListener("click", () => window.print());
  inPanel("close").addEventListener("click", () => panel.close());
  keys.querySelector("button").addEventListener("click", () => keys.close());
  panel.addEventListener("close", () => {
    if (idOfHash() !== null) history.replaceState(null, "", location.pathname + location.search);
    const link = [...find("rows").querySelectorAll("th a")].find(each => each.getAttribute("href") === hashOf(data.ids[current]));
    link?.focus({ preventScroll: true });
  });
  window.addEventListener("hashchange", openHash);
  window.addEventListener("resize", drawLinks);
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    if (!Object.hasOwn(KEYS, event.key)) return;
    event.preventDefault();
    KEYS[event.key]();
  });
}

document.addEventListener("report:tables", equipAll);
equipAll();
equipCharts();
if (section) startView();
})();
