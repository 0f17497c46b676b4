// A search that answers JSON lines: node search.mjs
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const corpus = readFileSync("corpus.tsv", "utf8").trim().split("\n").map((line) => line.split("\t"));

function search(query, k) {
  const words = query.toLowerCase().split(/\s+/).filter((word) => word);
  const hits = corpus.map(([id, text]) => ({
    id,
    title: text,
    score: words.filter((word) => text.toLowerCase().includes(word)).length,
  }));
  return hits.filter((hit) => hit.score > 0).sort((a, b) => b.score - a.score).slice(0, k);
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, query, k } = JSON.parse(line);
  try {
    console.log(JSON.stringify({ id, hits: search(query, k) }));
  } catch (error) {
    console.log(JSON.stringify({ id, error: String(error) }));
  }
}
