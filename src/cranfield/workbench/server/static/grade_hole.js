// Grade a result where it is seen: the page of the link is shown in a dialog, a digit gives the grade.
// Links are `a[data-grade]`; without this script they lead to the page.
const dialog = document.createElement("dialog");
dialog.className = "hole-dialog";
dialog.setAttribute("aria-label", "Grade a result");
let opener = null;

function press(form, digit) {
  const button = [...form.querySelectorAll("button[name=grade]")].find((each) => each.value === digit);
  if (!button) return;
  form.dataset.method = "key";
  button.click();
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !/^[0-9]$/.test(event.key)) return;
  const form = (dialog.open ? dialog : document).querySelector("#grade-hole");
  if (!form || event.target.closest("input:not([type=hidden]), textarea, select")) return;
  event.preventDefault();
  press(form, event.key);
}

function show(text, problem) {
  const page = new DOMParser().parseFromString(text, "text/html");
  const part = page.querySelector("#hole") ?? page.querySelector("main");
  const close = document.createElement("button");
  close.type = "button";
  close.className = "quiet";
  close.textContent = "Close";
  close.addEventListener("click", () => dialog.close());
  const status = document.createElement("p");
  status.className = problem ? "problem" : "fine";
  status.setAttribute("role", "status");
  dialog.replaceChildren(part, status, close);
  if (!dialog.isConnected) document.body.append(dialog);
  if (!dialog.open) dialog.showModal();
  dialog.querySelector("button[name=grade]")?.focus();
}

async function send(event) {
  const form = event.target.closest("#grade-hole");
  if (!form || !dialog.contains(form)) return;
  event.preventDefault();
  const status = dialog.querySelector("[role=status]");
  const body = new URLSearchParams(new FormData(form, event.submitter));
  body.set("method", form.dataset.method ?? "click");
  status.textContent = "Saving …";
  try {
    const answer = await fetch(form.action, { method: "POST", body, headers: { Accept: "application/json" } });
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error);
    mark(found);
    dialog.close();
  } catch (error) {
    status.className = "problem";
    status.textContent = `Not saved: ${error.message}`;
  }
}

function mark(found) {
  if (opener) opener.textContent = `graded ${found.grade}`;
  const box = document.getElementById("new-grades");
  if (!box) return;
  document.getElementById("n-new-grades").textContent = found.new_grades;
  box.hidden = !found.new_grades;
}

document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[data-grade]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  opener = link;
  const answer = await fetch(link.href, { headers: { Accept: "text/html" } });
  show(await answer.text(), !answer.ok);
});
// The results of a query in the view of all queries: each that is not judged gets a link.
document.addEventListener("report:query", (event) => {
  const base = document.querySelector("meta[name=grade-base]")?.content;
  if (!base) return;
  const lists = [...event.detail.panel.querySelectorAll("ol.hits")];
  for (const item of event.detail.panel.querySelectorAll("li.hit:not([data-state=judged])")) {
    if (item.querySelector("a[data-grade]")) continue;
    const given = { query: event.detail.data.id, doc: item.dataset.id, back: location.pathname };
    if (lists.length > 1) given.side = lists.indexOf(item.parentElement) ? "candidate" : "baseline";
    const link = document.createElement("a");
    link.dataset.grade = "";
    link.href = `${base}/grade?${new URLSearchParams(given)}`;
    link.textContent = "grade";
    link.setAttribute("aria-label", `Grade ${item.dataset.id}`);
    item.append(" ", link);
  }
});
document.addEventListener("submit", send);
document.addEventListener("keydown", onKey);
dialog.addEventListener("close", () => opener?.focus());
