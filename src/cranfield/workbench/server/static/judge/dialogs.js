// Dialogs of the judging page. Native ones: the browser keeps the focus inside, and Escape closes them.

const $ = (id) => document.getElementById(id);

export class Dialogs {
  constructor(page, settings, api) {
    Object.assign(this, { page, settings, api, pending: new Map() });
    $("skip-dialog").addEventListener("keydown", (event) => {
      const button = $("skip-dialog").querySelectorAll("button[value]")[Number(event.key) - 1];
      if (/^[1-9]$/.test(event.key) && button && !event.ctrlKey && !event.altKey && !event.metaKey) {
        event.preventDefault();
        button.click();
      }
    });
    $("help-form").addEventListener("submit", (event) => event.submitter?.value === "save" && !this.readKeys() && event.preventDefault());
    $("reset-keys").addEventListener("click", () => this.writeKeys({ enabled: true, keys: {} }));
    $("reveal").addEventListener("click", () => this.showReveal());
  }

  /** Open a dialog; the value of the button that closed it, empty after Escape. */
  ask(id) {
    const dialog = $(id);
    dialog.returnValue = "";
    dialog.showModal();
    this.pending.get(id)?.(""); // closed by Escape, and opened again before the event of that
    return new Promise((resolve) => {
      const end = (value) => {
        dialog.removeEventListener("close", closed);
        this.pending.delete(id);
        resolve(value);
      };
      const closed = () => dialog.open || end(dialog.returnValue);
      this.pending.set(id, end);
      dialog.addEventListener("close", closed);
    });
  }

  chooseSkip() {
    return this.ask("skip-dialog");
  }

  async confirmRest(n, grade) {
    $("rest-text").textContent = `Grade ${n === 1 ? "the one document" : `all ${n} documents`} of this query that you have not judged: ${grade}?`;
    return (await this.ask("rest-dialog")) === "yes";
  }

  async addDocument(query) {
    $("add-query").textContent = query.text;
    $("add-form").reset();
    if ((await this.ask("add-dialog")) !== "add") return null;
    return Object.fromEntries(new FormData($("add-form")));
  }

  showHelp() {
    this.writeKeys(this.settings.values);
    this.ask("help-dialog");
  }

  writeKeys({ enabled, keys }) {
    $("keys-enabled").checked = enabled;
    $("keys-problem").textContent = "";
    for (const action of this.page.actions) {
      const field = $(`key-${action.name}`);
      if (field) field.value = keys[action.name] ?? action.key;
    }
  }

  /** Take the keys over; false, with the reason shown, where two actions would share one. */
  readKeys() {
    const keys = {};
    const used = new Map();
    const digits = this.page.mode === "grade";
    for (const action of this.page.actions) {
      const field = $(`key-${action.name}`);
      const key = field ? field.value.trim().toLowerCase() : action.key;
      const clash = used.get(key);
      if (key && (clash || (digits && /^\d$/.test(key)))) {
        $("keys-problem").textContent = clash
          ? `“${key}” is assigned to two actions: ${clash} and ${action.about}.`
          : `“${key}” is a grade, and cannot be the key of: ${action.about}.`;
        field?.focus();
        return false;
      }
      if (key) used.set(key, action.about);
      if (key !== action.key) keys[action.name] = key;
    }
    this.settings.change({ enabled: $("keys-enabled").checked, keys });
    return true;
  }

  /** Offer the ranks of a query that this rater has finished. */
  offerReveal(query) {
    this.revealed = query;
    $("reveal").hidden = false;
    $("reveal-query").textContent = query.text;
  }

  async showReveal() {
    const place = $("reveal-body");
    try {
      const answer = await this.api.request("GET", `reveal?query=${this.revealed.id}`);
      const cells = (tag, texts) => texts.map((text) => Object.assign(document.createElement(tag), { textContent: text }));
      place.replaceChildren();
      for (const row of [answer.columns, ...answer.rows]) {
        const line = document.createElement("tr");
        line.append(...cells(row === answer.columns ? "th" : "td", row));
        place.append(line);
      }
      $("reveal-problem").textContent = "";
    } catch (error) {
      place.replaceChildren();
      $("reveal-problem").textContent = error.message;
    }
    this.ask("reveal-dialog");
  }
}
