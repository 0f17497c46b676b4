// Judgments that the server has not confirmed. Each is an entry of localStorage of its own, so that tabs never
// overwrite each other's; one tab at a time sends. The server saves the same key once, so sending twice is harmless.

const BATCH = 50;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;

/** A random name that no other tab or machine has. */
export function randomKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(12)); // randomUUID needs HTTPS
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class Outbox {
  /**
   * @param prefix of its entries in localStorage: one for each book and account
   * @param send from a list of entries to the server's results, one each; throws an error, with `status` if the server answered
   * @param report called with `{unsaved, refused, trouble, stored}` after every change
   */
  constructor(prefix, send, report) {
    Object.assign(this, { prefix, send, report });
    this.memory = new Map(); // where localStorage is full or forbidden
    this.wait = 0;
    this.count = 0;
    this.trouble = "";
    addEventListener("storage", (event) => event.key?.startsWith(prefix) && this.tell());
    addEventListener("online", () => this.flush(true));
    document.addEventListener("visibilitychange", () => document.hidden || this.flush(true));
  }

  /** Keep an entry until the server has it. */
  add(entry) {
    this.count += 1;
    const key = randomKey();
    const place = `${String(Date.now()).padStart(15, "0")}-${String(this.count).padStart(6, "0")}-${key}`;
    this.write(`${this.prefix}unsaved.${place}`, { ...entry, key });
    this.flush();
  }

  write(name, entry) {
    try {
      localStorage.setItem(name, JSON.stringify(entry));
    } catch {
      this.memory.set(name, entry);
    }
  }

  remove(name) {
    this.memory.delete(name);
    try {
      localStorage.removeItem(name);
    } catch {
      // forbidden: then it was in memory
    }
  }

  /** Keep a reason that belongs to no judgment yet; an empty one is dropped. */
  keepDraft(item, text) {
    const name = `${this.prefix}draft.${item}`;
    if (text) this.write(name, text);
    else this.remove(name);
  }

  /** Item to its reason that belongs to no judgment yet. */
  drafts() {
    return new Map(this.all("draft").map(([name, text]) => [Number(name.slice(`${this.prefix}draft.`.length)), text]));
  }

  /** Names and entries of a kind, oldest first. */
  all(kind) {
    const start = `${this.prefix}${kind}.`;
    const found = [...this.memory].filter(([name]) => name.startsWith(start));
    try {
      for (const name of Object.keys(localStorage)) {
        const text = name.startsWith(start) && localStorage.getItem(name);
        if (text) found.push([name, JSON.parse(text)]);
      }
    } catch {
      // forbidden: then all of it is in memory
    }
    return found.sort(([a], [b]) => (a < b ? -1 : 1));
  }

  unsaved() {
    return this.all("unsaved").map(([, entry]) => entry);
  }

  tell() {
    const refused = this.all("refused").map(([, entry]) => entry);
    this.report({ unsaved: this.unsaved(), refused, trouble: this.trouble, stored: this.memory.size === 0 });
  }

  /** Send what is unsaved; with `now` without the wait after an error. */
  async flush(now = false) {
    this.tell();
    if (this.busy) return;
    if (this.timer && !now) return;
    clearTimeout(this.timer);
    this.timer = null;
    this.busy = true;
    try {
      while (await this.exclusively(() => this.sendBatch()));
      this.wait = 0;
      this.trouble = "";
    } catch (error) {
      this.trouble = error.status === 401 || error.status === 403 ? "signed-out" : error.status ? error.message : "offline";
      this.wait = Math.min(LONGEST_WAIT_MS, Math.max(FIRST_WAIT_MS, this.wait * 2));
      this.timer = setTimeout(() => this.flush(true), this.wait * (0.75 + Math.random() / 2));
    } finally {
      this.busy = false;
      this.tell();
    }
  }

  /** One tab of this rater at a time; without HTTPS there are no locks, and the keys alone keep entries from being doubled. */
  exclusively(work) {
    return navigator.locks ? navigator.locks.request(`${this.prefix}send`, work) : work();
  }

  /** Send the oldest entries; whether there may be more. */
  async sendBatch() {
    const batch = this.all("unsaved").slice(0, BATCH);
    if (!batch.length) return false;
    const results = new Map((await this.send(batch.map(([, entry]) => entry))).map((result) => [result.key, result]));
    let again = null;
    for (const [name, entry] of batch) {
      const result = results.get(entry.key);
      if (result?.ok) {
        this.remove(name);
      } else if (result && !result.retry) {
        this.write(name.replace(".unsaved.", ".refused."), { ...entry, error: result.error });
        this.remove(name);
      } else {
        again = result?.error ?? "The server did not respond for a judgment";
      }
    }
    if (again !== null) throw Object.assign(new Error(again), { status: 503 });
    return true;
  }

  /** Send again what the server refused, or drop it. */
  resolve(again) {
    for (const [name, { error, ...entry }] of this.all("refused")) {
      if (again) this.write(name.replace(".refused.", ".unsaved."), entry);
      this.remove(name);
    }
    this.flush(true);
  }
}
