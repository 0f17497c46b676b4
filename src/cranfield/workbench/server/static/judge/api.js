// Requests of the judging page to its book.

const TIMEOUT_MS = 15_000;

export class Api {
  constructor(page) {
    this.base = `/api/books/${encodeURIComponent(page.book)}`;
    this.page = page;
  }

  /** The JSON of an answer. Throws an error with `status` where the server refused, without where it was not reached. */
  async request(method, path, body) {
    const response = await fetch(path.startsWith("/") ? path : `${this.base}/${path}`, {
      method,
      headers: body ? { "Content-Type": "application/json", "X-CSRF-Token": this.page.csrf } : {},
      body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(TIMEOUT_MS),
      redirect: "error",
    });
    const answer = await response.json().catch(() => null);
    if (response.ok && answer) return answer;
    throw Object.assign(new Error(answer?.error ?? `the server answered ${response.status}`), { status: response.status });
  }

  next(n, holding, recent = 0) {
    return this.request("GET", `next?n=${n}&holding=${holding.join(",")}&recent=${recent}`);
  }

  async save(entries) {
    return (await this.request("POST", "judgments", { book: this.page.uid, account: this.page.account, entries })).results;
  }
}
