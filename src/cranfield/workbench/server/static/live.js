// Replaces the figures of the dashboard when somebody has judged. The server sends only the number of the last event.
const figures = document.getElementById("live");
const status = document.getElementById("live-status");
const WAIT_MS = 2000; // between two updates
let shown = Number(figures.dataset.event); // the last event that the figures of the page have seen
let latest = shown;
let timer = 0;

async function update() {
  timer = 0;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok || answer.redirected) {
      status.textContent = "This page is out of date: reload it.";
      stream.close();
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("live");
    const open = [...figures.querySelectorAll("details")].map((each) => each.open);
    const focused = figures.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    figures.replaceChildren(...fresh.childNodes);
    [...figures.querySelectorAll("details")].forEach((each, place) => { if (place in open) each.open = open[place]; });
    shown = Number(fresh.dataset.event);
    document.dispatchEvent(new Event("report:tables")); // tables are sorted, filtered and exported as before
    if (focused) figures.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus();
    status.textContent = `Updated at ${new Date().toISOString().slice(11, 19)} UTC.`;
    if (!fresh.dataset.stream) stream.close(); // nothing changes any more
    else if (latest > shown) schedule();
  } catch {
    schedule();
  }
}

function schedule() {
  if (!timer) timer = setTimeout(update, WAIT_MS);
}

const stream = new EventSource(figures.dataset.stream);
stream.addEventListener("progress", (message) => {
  latest = JSON.parse(message.data).event;
  if (latest > shown) schedule(); // also what happened between the page and the first message
});
stream.addEventListener("open", () => { status.textContent = "Live."; });
stream.addEventListener("error", () => { status.textContent = "Connection lost; trying again."; });
addEventListener("pagehide", () => stream.close());
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
