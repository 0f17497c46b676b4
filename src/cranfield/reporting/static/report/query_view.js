/* Query by query: the list, the panel of one query, the keys. */

import { detailBody, drawLinks } from "./query_detail.js";
import { CANNOT_UNPACK, sourceOf } from "./query_source.js";
import { compareCells, csvCell, equip, saveCsv, sortable } from "./tables.js";
import { count, cut, deltaText, fold, make, printable, valueText, wellFormed, wordsOf } from "./text.js";

const PAGE_ROWS = 20, MORE_ROWS = 500;
const section = document.getElementById("query-view");
const panel = document.getElementById("query-panel");
const keys = document.getElementById("query-keys");
export const canOpen = section && (section.dataset.index || typeof DecompressionStream !== "undefined");
const hashOf = id => "#q=" + encodeURIComponent(wellFormed(id));
let data = null, source = null, order = [], shownRows = PAGE_ROWS, sorted = null, current = -1, isSearching = false;

const find = name => section.querySelector(`[data-part="${name}"]`);
const inPanel = name => panel.querySelector(`[data-part="${name}"]`);

function idOfHash() {
  if (!location.hash.startsWith("#q=")) return null;
  try { return decodeURIComponent(location.hash.slice(3)); } catch { return location.hash.slice(3); }
}

/** Show the list, and the query of the address. */
export async function startView() {
  section.hidden = false;
  document.querySelectorAll("[data-for='query-view']").forEach(link => { link.hidden = false; });
  if (!canOpen) {
    find("status").textContent = CANNOT_UNPACK;
    find("tools").hidden = find("list").hidden = true;
    return;
  }
  document.body.append(panel, keys);
  source = sourceOf(section);
  if (idOfHash() !== null) source.warm?.();  // the query of the address needs it; otherwise the list is first
  try { data = await source.index(); } catch (error) { find("status").textContent = `The queries could not be loaded: ${error.message}`; return; }
  prepare();
  listHead();
  refresh();
  wire();
  openHash();
  section.dataset.ready = "yes";
  setTimeout(() => source.warm?.(), 50);
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
  select.append(make("optgroup", { label: printable(label) }, ...names.map(name => make("option", { value: value(name) }, cut(printable(name))))));
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
    if (!cell) return make("th", { scope: "row" }, make("a", { href: hashOf(data.ids[at]) }, make("code", {}, cut(printable(data.ids[at])))));
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

/* ---- One query ---- */

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
  if (!panel.open) { panel.showModal(); inPanel("title").focus(); }
  showDetail(detail, data.ids[place]);
}

function showDetail(detail, id) {
  const at = order.indexOf(current);
  inPanel("place").textContent = at < 0 ? "" : `${count(at + 1)} of ${count(order.length)}`;
  inPanel("previous").disabled = at <= 0;
  inPanel("next").disabled = at < 0 || at >= order.length - 1;
  const title = detail.text && detail.text !== id ? `${id} \u201c${detail.text}\u201d` : id;
  inPanel("title").replaceChildren(make("span", {}, title));
  const body = inPanel("body");
  if (detail.error) {
    body.replaceChildren(make("p", { class: "warning" }, `The query could not be loaded: ${detail.error}`));
    return;
  }
  const isSaid = panel.querySelector(".stamp") !== null;
  body.replaceChildren(...detailBody(detail, data.is_void && !isSaid, () => showDetail(detail, id)));
  body.querySelectorAll("figure.table table").forEach(equip);
  body.scrollTop = 0;
  const head = panel.querySelector(".query-head");
  head.classList.toggle("tall", head.offsetHeight > panel.clientHeight / 2);
  drawLinks(panel, data.is_void);
  document.dispatchEvent(new CustomEvent("report:query", { detail: { data: detail, panel } }));
}

/* ---- Keys ---- */

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
  isSearching = panel.open;  // closing it does not move the focus to the list
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
    if (!isSearching) link?.focus({ preventScroll: true });
    isSearching = false;
  });
  window.addEventListener("hashchange", openHash);
  window.addEventListener("resize", () => drawLinks(panel, data.is_void));
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    if (!Object.hasOwn(KEYS, event.key)) return;
    event.preventDefault();
    KEYS[event.key]();
  });
}
