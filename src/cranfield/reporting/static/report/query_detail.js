/* One query: the lists of its systems side by side, what was expected, its values. */

import { MINUS, UNKNOWN, count, cut, deltaText, make, printable, valueText } from "./text.js";

let sides = [0, 1];  // of many systems, those that are shown

/** Everything about one query; `again` shows it again when other systems are chosen. */
export function detailBody(detail, isVoid, again) {
  const about = [primaryText(detail), ...Object.entries(detail.strata).map(([key, value]) => `${key}: ${value}`), detail.bucket, detail.move].filter(Boolean);
  return [
    ...(isVoid ? [make("p", { class: "warning" }, "The figures do not count: see the verdict.")] : []),
    ...(about.length ? [make("p", { class: "query-about" }, about.join(" \u00b7 "))] : []),
    ...(detail.why?.length ? [make("ul", { class: "query-why", "aria-label": "Why it changed" }, ...detail.why.map(line => make("li", {}, line)))] : []),
    ...(detail.sides.length > 2 ? [chooser(detail, again)] : []),
    lists(detail),
    expectedTable(detail),
    valuesTable(detail)];
}

/** The primary measure of one system or two: it stands above the lists, which fill a small screen. */
function primaryText({ sides, values: [first] }) {
  if (!first || sides.length > 2) return "";
  const values = first.values.map((value, at) => valueText(value) + (sides.length > 1 ? ` on ${letterOf(sides[at])}` : ""));
  return `${first.measure} ${values.join(", ")}` + ("delta" in first ? `, difference ${deltaText(first.delta)}` : "");
}

/** Of many systems, which two are side by side. */
function chooser(detail, again) {
  sides = sides.map(side => Math.min(side, detail.sides.length - 1));
  const choose = (label, slot) => {
    const select = make("select", {}, ...detail.sides.map((side, at) => make("option", { value: at, selected: at === sides[slot] }, side.system)));
    select.addEventListener("change", () => { sides[slot] = Number(select.value); again(); });
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
    const list = make("ol", { class: "hits", "aria-label": cut(printable(side.system)) }, ...side.hits.map(hit => hitItem(hit, other, at === 1)));
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
  if (hit.terms?.length) what.append(scoreTerms(hit, other));
  return make("li", { class: "hit " + hit.tone, value: hit.rank, "data-id": hit.id, "data-state": hit.state },
    make("span", { class: "rank" }, hit.rank), " ", what);
}

const termText = value => value === null ? UNKNOWN : String(Number(value.toPrecision(5))).replaceAll("-", MINUS);

/** How a score came about, term by term, folded; beside the other system's, where it has the document too. */
function scoreTerms(hit, other) {
  const there = new Map(other?.hits.find(one => one.id === hit.id)?.terms ?? []);
  const both = there.size > 0, terms = both ? [...hit.terms, ...[...there].filter(([term]) => !hit.terms.some(([own]) => own === term)).map(([term]) => [term, null])] : hit.terms;
  const rows = terms.map(([term, value]) => {
    const far = there.get(term) ?? null, delta = value === null || far === null ? null : value - far;
    const differs = both && (delta === null || Math.abs(delta) > 1e-5 * Math.max(Math.abs(value), Math.abs(far)));
    return make("tr", { class: differs ? "differs" : null }, make("th", { scope: "row" }, term), make("td", { class: "n" }, termText(value)),
      ...(both ? [make("td", { class: "n" }, termText(far)), make("td", { class: "n" }, differs ? termText(delta) : "=")] : []));
  });
  const headings = ["term", "here", ...(both ? [`on ${letterOf(other)}`, "difference"] : [])];
  const folded = make("details", { class: "terms" }, make("summary", {}, "Score"),
    make("div", { class: "scroll", role: "region", "aria-label": "How the score came about", tabindex: "0" }, make("table", {},
      make("thead", {}, make("tr", {}, ...headings.map((title, at) => make("th", { scope: "col", class: at ? "n" : null }, title)))),
      make("tbody", {}, ...rows))));
  folded.addEventListener("toggle", () => window.dispatchEvent(new Event("resize")));  // the lines between the lists
  return folded;
}

function movementOf(hit, other, isRight) {
  const there = other.hits.find(one => one.id === hit.id), name = letterOf(other);
  if (!there) return make("span", { class: "move" }, isRight ? `new: not in the list of ${name}` : `not in the list of ${name}`);
  const rose = isRight ? there.rank - hit.rank : hit.rank - there.rank;
  const arrow = rose > 0 ? "\u25b2" : rose < 0 ? "\u25bc" : "=";
  return make("span", { class: "move" }, `${arrow} rank ${there.rank} on ${name}`);
}

/** A line from each result of the left list to its place in the right one. */
export function drawLinks(panel, isVoid) {
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
    line.classList.add(!item.classList.contains("good") || isVoid ? "plain" : to < from - 1 ? "good" : to > from + 1 ? "bad" : "same");
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
