/* Where the data of the queries are: packed in the page, or on its server. */

import { wellFormed } from "./text.js";

export const CANNOT_UNPACK = "This browser cannot unpack the data of the queries (it has no DecompressionStream): use Firefox 113, Chrome 80, Safari 16.4 "
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
export function sourceOf(section) {
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
