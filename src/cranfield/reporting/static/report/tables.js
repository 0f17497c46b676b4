/* Tables that sort, filter and save CSV. */

import { MINUS, UNKNOWN, collator, count, fold, make, printable, wordsOf } from "./text.js";

export function csvCell(text, numeric) {
  let cell = text.trim();
  if (numeric) cell = cell === UNKNOWN ? "" : cell.replace(/^\u2212/, "-").replace(/(?<=\d),(?=\d{3})/g, "");
  if (/^ *[=+\-@\t\r]/.test(cell) && !/^[+-]?\d+(\.\d+)?$/.test(cell)) cell = "'" + cell;
  return /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

export function saveCsv(name, rows) {
  const text = rows.map(row => row.join(",") + "\n").join("");
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const slug = fold(name).replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "table";
  make("a", { href: url, download: slug + ".csv" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

const TABLE_ROWS = 300;
const wholeOf = long => long?.whole ?? long?.querySelector(".whole")?.textContent;

/** The text of a cell for a file; of one with a form in it, what the page gives as its text. */
const textOf = cell => cell.dataset.text ?? wholeOf(cell.querySelector(".long")) ?? (cell.querySelector(".sort") ?? cell).textContent;
const UNITS = { s: 1000, min: 60000, h: 3600000 };

function numberOf(text) {
  const found = /[+-]?(\d[\d,]*)?\.?\d+/.exec(text.replaceAll(MINUS, "-"));
  if (!found) return NaN;
  const unit = /\d (s|min|h)$/.exec(text.trim());
  return parseFloat(found[0].replaceAll(",", "")) * (unit ? UNITS[unit[1]] : 1) - (text.includes("<") ? 1e-9 : 0);
}

export function compareCells(a, b, way) {
  const unknown = Number.isNaN(a) - Number.isNaN(b);
  if (typeof a === "number") return unknown || (Number.isNaN(a) ? 0 : way * (a - b));
  return way * collator.compare(a, b);
}

/** A heading that sorts: the first press in the direction of most use, then the other, then as it was. */
export function sortable(th, numeric, sort) {
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

export function equip(table) {
  const head = table.tHead && table.tHead.rows[table.tHead.rows.length - 1], body = table.tBodies[0];
  if (table.dataset.equipped || !head || !body || [...head.cells].some(cell => cell.colSpan > 1)) return;
  table.dataset.equipped = "yes";
  const numeric = [...head.cells].map(cell => cell.classList.contains("n"));
  const name = table.caption?.textContent || table.closest("figure")?.querySelector("figcaption")?.textContent || document.title;
  const given = [...body.rows], state = { rows: given, words: [], limit: TABLE_ROWS, texts: null };
  const tools = tableTools(name, state, apply, () => {
    saveCsv(name, [head, ...state.found].map(row => [...row.cells].map((cell, at) => csvCell(printable(textOf(cell)), numeric[at]))));
  });
  [...head.cells].forEach((th, at) => {
    if (th.textContent.trim()) sortable(th, numeric[at], way => sort(at, way));
  });
  (table.closest(".scroll") ?? table).before(tools.element);
  apply();
  window.addEventListener("beforeprint", () => { state.limit = Infinity; apply(); });

  function sort(at, way) {
    const text = row => row.cells[at]?.dataset.text ?? row.cells[at]?.textContent ?? "";
    const key = row => numeric[at] ? numberOf(text(row)) : text(row).trim();
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

export function equipAll() {
  document.querySelectorAll(".report figure.table table, table[data-tools]").forEach(equip);
}
