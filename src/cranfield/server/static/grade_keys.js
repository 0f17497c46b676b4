// Adjudication by the keyboard: a digit chooses the grade and goes to the reason, Ctrl+Enter saves.
const form = document.getElementById("decide");
const reason = document.getElementById("reason");
let typed = "";
let forget = 0;

function choose(key) {
  clearTimeout(forget);
  forget = setTimeout(() => { typed = ""; }, 800);
  for (typed of [typed + key, key]) {
    const radio = form.querySelector(`input[name=grade][value="${Number(typed)}"]`);
    if (!radio) continue;
    radio.checked = true;
    const longer = [...form.querySelectorAll("input[name=grade]")].some((each) => each.value !== typed && each.value.startsWith(typed));
    (longer ? radio : reason).focus();
    return true;
  }
  typed = "";
  return false;
}

if (form) {
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit();
      return;
    }
    const writes = event.target.closest("textarea, select, input:not([type=radio])");
    if (writes || event.ctrlKey || event.metaKey || event.altKey || !/^\d$/.test(event.key)) return;
    if (choose(event.key)) event.preventDefault();
  });
}
