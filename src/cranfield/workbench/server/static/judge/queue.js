// The items of this page: those that were judged behind, those that were fetched ahead. No page, no network.

export class Queue {
  constructor() {
    this.cards = [];
    this.at = 0;
  }

  get current() {
    return this.cards[this.at] ?? null;
  }

  find(item) {
    return this.cards.find((card) => card.item === item) ?? null;
  }

  /** Items to judge that this page has. */
  held() {
    return this.cards.filter((card) => !card.mine).map((card) => card.item);
  }

  /** Append a card; whether it was new. One that was put off for later moves to the end, others stay where they are. */
  add(card) {
    const there = this.find(card.item);
    if (there && there.mine?.action !== "later") return false;
    if (there) this.remove(there);
    this.cards.push(card);
    return true;
  }

  remove(card) {
    const place = this.cards.indexOf(card);
    if (place < 0) return;
    this.cards.splice(place, 1);
    if (place < this.at) this.at -= 1;
  }

  /** Insert after the current item. */
  insert(card) {
    this.cards.splice(this.at + 1, 0, card);
  }

  goTo(card) {
    const place = this.cards.indexOf(card);
    if (place >= 0) this.at = place;
    return place >= 0;
  }

  move(step) {
    const to = this.at + step;
    if (to < 0 || to >= this.cards.length) return false;
    this.at = to;
    return true;
  }

  ofQuery(card) {
    return card ? this.cards.filter((other) => other.query.id === card.query.id) : [];
  }

  /** To the next item that is not judged, else to the first one that was passed over; whether there is one. */
  advance() {
    const open = (card) => !card.mine;
    const next = this.cards.slice(this.at + 1).find(open) ?? this.cards.find(open);
    return next ? this.goTo(next) : false;
  }

  /** To the first unjudged item of another query, ahead if there is one. */
  nextQuery() {
    const here = this.current?.query.id;
    const open = (card) => !card.mine && card.query.id !== here;
    const next = this.cards.slice(this.at + 1).find(open) ?? this.cards.find(open);
    return next ? this.goTo(next) : false;
  }

  /** Drop what another tab judged, or what is no longer this rater's; what is judged here stays. */
  drop(items) {
    const gone = this.cards.filter((card) => !card.mine && items.has(card.item));
    const here = this.current;
    for (const card of gone) this.remove(card);
    return gone.includes(here);
  }
}

/** Milliseconds for which the tab was visible since `start`. */
export class VisibleClock {
  constructor() {
    this.start();
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.total += performance.now() - this.since;
      else this.since = performance.now();
    });
  }

  start() {
    this.total = 0;
    this.since = performance.now();
  }

  read() {
    return Math.round(this.total + (document.hidden ? 0 : performance.now() - this.since));
  }
}
