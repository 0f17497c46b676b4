// Adjudication by the keyboard: a digit chooses the grade and goes to the reason, Ctrl+Enter saves.
import { Keys } from "./judge/keys.js";

const form = document.getElementById("decide");
const radios = form ? [...form.elements.namedItem("grade")] : [];

function choose(grade) {
  const radio = radios.find((each) => each.value === String(grade));
  if (radio) radio.checked = true;
  return radio;
}

if (form) {
  const grades = radios.map((each) => each.value);
  const decide = (_, grade) => choose(grade) && form.elements.namedItem("reason").focus();
  new Keys([], grades, { enabled: "keys" in form.dataset, keys: {} }, decide, (digits) => choose(digits)?.focus());
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    form.requestSubmit();
  });
}
