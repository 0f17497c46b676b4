// The harness that cranfield.yaml replaces: node replaced-eval.mjs
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync, existsSync } from "node:fs";

const PORT = Number(process.env.PORT ?? 18080);
const MIN_RR = 0.9;
const MAX_DROP = 0.02;
const BASELINE = "eval-baseline.json";
const { cases } = JSON.parse(readFileSync("golden.json", "utf8"));

async function waitFor(url, seconds) {
  for (let i = 0; i < seconds * 20; i++) {
    try {
      if ((await fetch(url)).ok) return;
    } catch {
      // not yet
    }
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error(`${url} does not answer`);
}

function gradesOf(relevant) {
  return new Map(relevant.flatMap((tier, i) => tier.map((slug) => [slug, relevant.length - i])));
}

function dcg(gains) {
  return gains.slice(0, 10).reduce((sum, gain, i) => sum + gain / Math.log2(i + 2), 0);
}

function evaluate({ relevant }, found) {
  if (!relevant.length) return { silence: found.length ? 0 : 1 };
  const grades = gradesOf(relevant);
  const gains = found.map((slug) => grades.get(slug) ?? 0);
  const first = gains.findIndex((gain) => gain > 0);
  const best = gains.indexOf(relevant.length);
  const hits = (k) => gains.slice(0, k).filter((gain) => gain > 0).length;
  return {
    ndcg: dcg(gains) / dcg([...grades.values()].sort((a, b) => b - a)),
    rr: first < 0 ? 0 : 1 / (first + 1),
    bestRr: best < 0 ? 0 : 1 / (best + 1),
    p5: hits(5) / 5,
    r5: hits(5) / grades.size,
    r10: hits(10) / grades.size,
    success1: hits(1) ? 1 : 0,
  };
}

function mean(rows, name) {
  const values = rows.map((row) => row[name]).filter((value) => value !== undefined);
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

const server = spawn("node", ["server.mjs", "--port", String(PORT)], { stdio: "inherit" });
let failed = false;
try {
  await waitFor(`http://localhost:${PORT}/health`, 10);
  const rows = [];
  for (const each of cases) {
    const response = await fetch(`http://localhost:${PORT}/search?q=${encodeURIComponent(each.query)}&limit=10`);
    if (!response.ok) throw new Error(`${each.query}: HTTP ${response.status}`);
    const found = (await response.json()).results.map((hit) => hit.slug);
    rows.push({ ...each, ...evaluate(each, found) });
  }
  const names = ["ndcg", "rr", "bestRr", "p5", "r5", "r10", "success1", "silence"];
  const means = Object.fromEntries(names.map((name) => [name, mean(rows, name)]));
  for (const name of names) console.log(`${name.padEnd(9)} ${means[name].toFixed(4)}`);
  for (const category of new Set(rows.map((row) => row.category))) {
    const value = mean(rows.filter((row) => row.category === category), "rr");
    console.log(`rr of ${category}: ${value.toFixed(4)}`);
    if (value < MIN_RR) failed = true;
  }
  if (means.silence < 1) failed = true;
  if (process.argv.includes("--update")) writeFileSync(BASELINE, JSON.stringify(means));
  else if (existsSync(BASELINE)) {
    const before = JSON.parse(readFileSync(BASELINE, "utf8"));
    if (means.ndcg < before.ndcg * (1 - MAX_DROP)) failed = true;
  }
} finally {
  server.kill();
}
if (failed) {
  console.error("FAILED");
  process.exit(1);
}
