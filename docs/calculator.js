// The calculator of sizes.md: the formulas of cranfield.scale.plan, with its constants.
"use strict";

function estimate(size, c) {
  const rows = size.queries * size.results * size.systems;
  const judgments = size.queries * size.judged;
  const found = Math.min(judgments * size.systems, rows) * c.FOUND_BYTES;
  const groups = size.queries * size.systems * c.GROUP_BYTES;
  const held = c.PROGRAM_BYTES + size.threads * c.THREAD_BYTES + judgments * c.JUDGMENT_BYTES;
  const divided = judgments * c.INDEX_BYTES + found + groups + rows * c.ROW_BYTES;
  const bytesOf = (parts) => held + Math.ceil(divided / parts);
  const most = Math.min(c.MAX_PARTS, Math.max(size.queries, 1));
  const fewest = Math.max(size.queries / Math.floor(c.MAX_GROUPS / size.systems), rows / c.MAX_ROWS);
  const fits = size.memory >= bytesOf(most);
  const least = Math.max(1, Math.ceil(divided / (size.memory - held)));
  const parts = fits ? Math.max(least, Math.min(Math.ceil(fewest), most)) : NaN;
  const reading = (2 * parts * rows) / (c.ROWS_A_SECOND * size.threads);
  return {
    rows,
    judgments,
    parts,
    bytes: bytesOf(fits ? parts : most),
    seconds: c.START_S + judgments / c.JUDGMENTS_A_SECOND + reading,
    engineSeconds: c.ENGINE_START_S + (rows + judgments) / (c.ENGINE_ROWS_A_SECOND * size.cores),
    engineBytes: c.ENGINE_CORE_BYTES * size.cores,
  };
}

function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  if (seconds < 5400) return `${Math.ceil(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

const bytes = (n) => (n >= 1e9 ? `${(n / 1e9).toFixed(1)} GB` : `${Math.ceil(n / 1e6)} MB`);

function show(form, constants) {
  const inputs = [...form.querySelectorAll("input")]; // an output has a name of its own, and may share it
  const size = Object.fromEntries(inputs.map((e) => [e.name, Math.max(0, Number(e.value))]));
  size.memory *= 1e9;
  const found = estimate(size, constants);
  const fits = Number.isFinite(found.parts);
  const times = found.parts > 1 ? ` in ${found.parts} parts` : "";
  const lines = {
    rows: found.rows.toLocaleString("en"),
    judgments: found.judgments.toLocaleString("en"),
    local: fits ? `${duration(found.seconds)}${times}` : "not in this memory",
    memory: `${bytes(found.bytes)}${fits ? "" : " at least"}`,
    engine: `${duration(found.engineSeconds)}, ${bytes(found.engineBytes)} in all`,
  };
  for (const [name, text] of Object.entries(lines)) form.querySelector(`output[name=${name}]`).value = text;
}

for (const form of document.querySelectorAll("form.calculator")) {
  const constants = JSON.parse(form.dataset.constants);
  form.addEventListener("input", () => show(form, constants));
  form.addEventListener("submit", (event) => event.preventDefault());
  show(form, constants);
}
