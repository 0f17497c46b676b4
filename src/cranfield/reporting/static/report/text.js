/* Text of pages: numbers, words, elements. Text of systems and documents gets onto the page as text alone. */

export const MINUS = "\u2212", UNKNOWN = "\u2013";
const MAX_CHARS = 1000, PIECES = /[^]{1,100}/gu;
export const collator = new Intl.Collator("en", { numeric: true });
const UNPRINTABLE = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]/gu;

export const printable = text => String(text).replace(/[\t\r\n]+/g, " ")
  .replace(UNPRINTABLE, one => "\\u" + one.charCodeAt(0).toString(16).padStart(4, "0"));

/** A long text, cut where pages are no longer read: a browser takes minutes for a word of 100,000 characters in some scripts. */
export const cut = text => text.length > MAX_CHARS ? text.slice(0, MAX_CHARS - 1).replace(/\p{Surrogate}$/u, "") + "\u2026" : text;

/** The same with the rest behind a button, in pieces between which a line may break. */
function shown(text) {
  if (text.length <= MAX_CHARS) return text;
  const node = make("span", { class: "long" }, cut(text));
  node.whole = text;
  const all = make("button", { type: "button", onclick: () => {
    node.replaceChildren(...text.match(PIECES).flatMap(piece => [piece, document.createElement("wbr")]));
  } }, `All ${count(text.length)} characters`);
  node.append(" ", all);
  return node;
}

export function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") made.addEventListener("click", value);
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.map(child => child instanceof Node ? child : shown(printable(child))));
  return made;
}

const fixed = value => value.toFixed(4).replace("-", MINUS);
export const valueText = value => value === null || value === undefined ? UNKNOWN : fixed(value);
export const deltaText = value => value === null || value === undefined ? UNKNOWN : (value > 0 ? "+" : "") + fixed(value);
export const count = number => number.toLocaleString("en");
export const fold = text => text.toLowerCase();
export const wordsOf = text => fold(text).split(/\s+/).filter(Boolean);

export const wellFormed = id => id.replace(/\p{Surrogate}/gu, "?");  // half of a character cannot be in an address
