// Review by the keyboard: a digit chooses the verdict, letters go to the parts of the form, Ctrl+Enter saves.
import { Keys } from "./judge/keys.js";

const form = document.getElementById("decide");
const ACTIONS = [
  { name: "edit", key: "e", target: "[name=must]" },
  { name: "narrative", key: "n", target: "#narrative" },
  { name: "wrong", key: "w", target: "#failure" },
  { name: "reason", key: "r", target: "#reason" },
  { name: "fate", key: "b", target: "#fate input:checked, #fate input" },
  { name: "sources", key: "c", target: "#sources" },
];

if (form) {
  const started = Date.now();
  let changed = "unsaved" in form.dataset;
  const go = (name) => document.querySelector(ACTIONS.find((action) => action.name === name).target)?.focus();
  const choose = (grade) => {
    const radio = form.querySelector(`[name=grade][value="${grade}"]`);
    if (!radio) return;
    radio.checked = true;
    changed = true;
    if (grade === 1) radio.focus();
    else go("wrong");
  };
  const settings = { enabled: "keys" in form.dataset, keys: {} };
  new Keys(ACTIONS, ["1", "2", "3", "4"], settings, (name, grade) => (name === "grade" ? choose(grade) : go(name)), () => {});
  form.addEventListener("input", () => {
    changed = true;
  });
  form.addEventListener("submit", () => {
    changed = false;
    form.elements.namedItem("seconds").value = Math.round((Date.now() - started) / 1000);
  });
  addEventListener("beforeunload", (event) => changed && event.preventDefault());
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && document.activeElement instanceof HTMLElement) document.activeElement.blur();
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    form.requestSubmit();
  });
}
