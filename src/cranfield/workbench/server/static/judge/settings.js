// Keys and display of this rater: stored with the account, and in this browser until the account has them.

export const DEFAULTS = { enabled: true, keys: {}, highlight: true, layout: "card" };

export class Settings {
  constructor(page, api) {
    this.api = api;
    this.place = `cranfield.settings.${page.account}`;
    this.values = { ...DEFAULTS, ...page.settings };
    this.apply = () => {};
    try {
      const unsaved = localStorage.getItem(this.place);
      if (unsaved) this.change(JSON.parse(unsaved));
    } catch {
      // storage is forbidden: the account has them
    }
  }

  /** Apply changes at once, and store them. */
  async change(changes) {
    this.values = { ...this.values, ...changes };
    this.apply(this.values);
    try {
      localStorage.setItem(this.place, JSON.stringify(this.values));
    } catch {
      // as above
    }
    try {
      await this.api.request("PUT", "/api/me/settings", this.values);
      localStorage.removeItem(this.place);
    } catch {
      // stays in this browser, and is sent when the page is opened again
    }
  }
}
