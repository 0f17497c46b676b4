// From a key press to an action. Keys of text fields, dialogs, modifiers and input methods are never taken.

const SECOND_DIGIT_MS = 800;
const TYPED = "input:not([type=radio]), textarea, select, [contenteditable]";

export class Keys {
  /**
   * @param actions of the key map: name, key, other key
   * @param grades of the scale
   * @param settings `{enabled, keys}`: `keys` from action to the key that the rater chose
   * @param act called with the action, or `("grade", grade)`
   * @param typed called with the first of two digits, or an empty text
   */
  constructor(actions, grades, settings, act, typed) {
    Object.assign(this, { actions, grades: grades.map(String), settings, act, typed });
    this.digits = "";
    document.addEventListener("keydown", (event) => this.press(event));
  }

  /** Key of an action as it is now. */
  keyOf(action) {
    return this.settings.keys[action.name] ?? action.key;
  }

  press(event) {
    const target = event.target instanceof Element ? event.target : document.body;
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || event.keyCode === 229) return;
    if (event.defaultPrevented || target.closest(TYPED) || document.querySelector("dialog[open]")) return;
    if (!this.settings.enabled && event.key.length === 1) return; // a key with a name, as an arrow, is no character
    if (this.digits && event.key === "Enter") {
      event.preventDefault();
      this.commit(event);
      return;
    }
    const action = this.actionOf(event);
    const digit = action || !this.grades.length ? null : digitOf(event);
    if (!action && digit === null) return;
    event.preventDefault();
    if (action) {
      this.forget();
      if (!event.repeat || action.repeats) this.act(action.name, null, event);
    } else if (!event.repeat) {
      this.digit(digit, event);
    }
  }

  actionOf(event) {
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (event.shiftKey && key !== event.key) return null; // Shift with a letter; a capital by Caps Lock counts
    return this.actions.find((action) => this.keyOf(action) === key || (action.other && action.other === key)) ?? null;
  }

  /** A grade at once, unless a longer one begins with it: then the second digit, Enter or a moment decides. */
  digit(digit, event) {
    clearTimeout(this.timer);
    let digits = this.digits + digit;
    if (!this.grades.some((grade) => grade.startsWith(digits))) digits = digit;
    this.digits = digits;
    if (this.grades.some((grade) => grade !== digits && grade.startsWith(digits))) {
      this.typed(digits);
      this.timer = setTimeout(() => this.commit(event), SECOND_DIGIT_MS);
    } else {
      this.commit(event);
    }
  }

  commit(event) {
    const digits = this.digits;
    this.forget();
    this.act("grade", this.grades.includes(digits) ? Number(digits) : Number.NaN, event);
  }

  forget() {
    clearTimeout(this.timer);
    this.digits = "";
    this.typed("");
  }
}

/** The digit of a key, also where the layout has digits behind Shift. */
function digitOf(event) {
  if (/^\d$/.test(event.key)) return event.key;
  return event.shiftKey ? null : (/^(?:Digit|Numpad)(\d)$/.exec(event.code)?.[1] ?? null);
}
