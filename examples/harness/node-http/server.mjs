// The search of the help pages: GET /search?q=customs+form&limit=10
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { parseArgs } from "node:util";

const TITLE_WEIGHT = 3;
const COMMON = new Set("a an and are at be by can do for has how i in is it its my not of on or that the to was what when with your".split(" "));

function words(text) {
  return (text.toLowerCase().match(/[a-z0-9]+/g) ?? []).filter((word) => !COMMON.has(word)).map(stem);
}

function stem(word) {
  return word.replace(/ies$/, "y").replace(/(?<=...)(?:ed|ing|es|s|e)$/, "");
}

const articles = JSON.parse(readFileSync(new URL("articles.json", import.meta.url), "utf8")).map((article) => {
  const counts = new Map();
  for (const word of words(article.title)) counts.set(word, (counts.get(word) ?? 0) + TITLE_WEIGHT);
  for (const word of words(article.text)) counts.set(word, (counts.get(word) ?? 0) + 1);
  return { ...article, counts, length: [...counts.values()].reduce((sum, count) => sum + count, 0) };
});
const meanLength = articles.reduce((sum, article) => sum + article.length, 0) / articles.length;

function score(article, query) {
  let sum = 0;
  for (const word of new Set(query)) {
    const count = article.counts.get(word) ?? 0;
    const n = articles.filter((other) => other.counts.has(word)).length;
    const rarity = Math.log(1 + (articles.length - n + 0.5) / (n + 0.5));
    sum += (rarity * count * 2.2) / (count + 1.2 * (0.25 + (0.75 * article.length) / meanLength));
  }
  return sum;
}

function search(text, limit) {
  const query = words(text);
  return articles
    .map(({ slug, title, ...article }) => ({ slug, title, score: score(article, query) }))
    .filter((hit) => hit.score > 0)
    .sort((a, b) => b.score - a.score || a.slug.localeCompare(b.slug))
    .slice(0, limit);
}

const { port } = parseArgs({ options: { port: { type: "string", default: "8080" } } }).values;
createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, "http://localhost");
  const body =
    pathname === "/health" ? { status: "up" }
    : pathname === "/search" ? { results: search(searchParams.get("q") ?? "", Number(searchParams.get("limit") ?? 10)) }
    : { error: "no such page" };
  response.writeHead("error" in body ? 404 : 200, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}).listen(Number(port), "localhost");
