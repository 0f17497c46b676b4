// What is on the screen. Reads cards, changes the page; decides nothing.

import { watchImages } from "../images.js";

const $ = (id) => document.getElementById(id);

function element(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

/** HTML that the server has sanitised. */
function content(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
}

export class View {
  constructor(page) {
    this.page = page;
    this.labels = new Map(page.choices.map((choice) => [String(choice.value), choice.label]));
    this.shownQuery = null;
    this.layout = "card";
    this.narrow = matchMedia("(max-width: 56rem)"); // the query is above the document, and was read
  }

  /** Build the elements of a card ahead of time, so that showing it is one replacement. */
  prepare(card) {
    const heading = element("h2", "title", card.title || card.doc);
    heading.tabIndex = -1;
    card.heading = heading;
    card.stateLine = element("p", "state");
    const head = element("header", "", heading);
    if (card.title && card.doc && card.title !== card.doc) head.append(element("p", "doc", card.doc));
    card.node = element("article", "card", head);
    if (card.pending) card.node.append(element("p", "problem", "Loading the text …"));
    if (card.problem) card.node.append(element("p", "problem", card.problem));
    if (card.sides) {
      const sides = ["Left", "Right"].map((name, place) => {
        const side = element("section", "side", element("h3", "", name), content(card.sides[place]));
        side.setAttribute("aria-label", `${name} list`);
        return side;
      });
      card.node.append(element("div", "sides", ...sides));
    } else {
      card.node.append(element("div", "content", content(card.html)));
    }
    watchImages(card.node);
    card.node.append(card.stateLine);
    this.showState(card);
    return card;
  }

  stateText(card) {
    const parts = [];
    const mine = card.mine;
    if (mine?.action === "grade") parts.push(`Your ${this.page.mode === "grade" ? "grade" : "choice"}: ${this.name(mine.grade)}`);
    if (mine?.action === "skip") parts.push(`Skipped: ${this.page.skips.find((skip) => skip.value === mine.skip_reason)?.label ?? ""}`);
    if (mine?.action === "later") parts.push("For later");
    if (card.reason) parts.push(`Reason: ${card.reason}`);
    if (card.flagged) parts.push("Flagged");
    return parts.join(" · ");
  }

  /** `2 relevant`; `9` where the label is the grade. */
  name(grade) {
    const label = this.labels.get(String(grade)) ?? "";
    return this.page.mode === "grade" && label !== String(grade) ? `${grade} ${label}` : label;
  }

  showState(card) {
    const text = this.stateText(card);
    if (card.stateLine.textContent !== text) card.stateLine.textContent = text;
    card.node.classList.toggle("judged", Boolean(card.mine));
  }

  show(queue) {
    const card = queue.current;
    $("work").hidden = !card;
    $("finished").hidden = Boolean(card);
    if (!card) return;
    const isSameQuery = this.shownQuery === card.query.id;
    this.showQuery(card.query);
    const nodes = this.layout === "list" ? queue.ofQuery(card).map((each) => each.node) : [card.node];
    const there = $("cards").children;
    if (nodes.length !== there.length || nodes.some((node, place) => node !== there[place])) $("cards").replaceChildren(...nodes);
    for (const each of queue.ofQuery(card)) {
      each.node.toggleAttribute("aria-current", each === card);
      if (each === card) each.node.setAttribute("aria-current", "true");
    }
    this.showChoice(card);
    this.showReason(card);
    $("flag").setAttribute("aria-pressed", String(Boolean(card.flagged)));
    $("open").hidden = !card.open_url;
    $("without-text").hidden = !card.without_text;
    if (this.layout === "list") card.node.scrollIntoView({ block: "nearest" });
    else if (isSameQuery && this.narrow.matches) $("work").scrollIntoView();
    else scrollTo(0, 0);
  }

  showQuery(query) {
    if (this.shownQuery === query.id) return;
    this.shownQuery = query.id;
    $("query-text").textContent = query.text;
    for (const part of ["need", "notes"]) {
      $(part).textContent = query[part];
      $(`${part}-part`).hidden = !query[part];
    }
  }

  showChoice(card) {
    const chosen = card.mine?.action === "grade" ? String(card.mine.grade) : null;
    for (const button of document.querySelectorAll("[data-choice]")) {
      button.setAttribute("aria-pressed", String(button.dataset.choice === chosen));
    }
  }

  showReason(card) {
    const field = $("reason");
    if (document.activeElement !== field && field.value !== (card.reason ?? "")) field.value = card.reason ?? "";
  }

  /** Put the focus on the heading of the card, where a screen reader goes on reading. */
  focus(card) {
    card?.heading.focus({ preventScroll: this.layout === "card" });
  }

  showProgress(progress, card, delta) {
    if (!progress) return;
    const done = progress.n_done + progress.n_skipped + delta;
    const all = progress.n_done + progress.n_skipped + progress.n_left;
    const parts = [];
    if (card) {
      parts.push(`query ${card.query.number}/${card.query.of}`);
      parts.push(`item ${card.number}/${card.of}`);
    }
    if (all) parts.push(`${Math.min(done, all)}/${all}`);
    if (progress.median_ms !== null && progress.seconds_left !== null && done < all) {
      const seconds = Math.max(0, progress.seconds_left - (delta * progress.median_ms) / 1000);
      const left = seconds < 90 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`;
      parts.push(`about ${left} left (your median ${(progress.median_ms / 1000).toFixed(1)} s)`);
    }
    $("progress-text").textContent = parts.join(" · ");
    $("progress-bar").max = Math.max(1, all);
    $("progress-bar").value = done;
  }

  /** Say something once, for screen readers and on the screen. */
  announce(text) {
    $("message").textContent = text;
  }

  typed(digits) {
    $("typed").textContent = digits ? `${digits} …` : "";
  }

  /** Silent while saves succeed: what was saved within a second is not announced. */
  showUnsaved({ unsaved, refused, trouble, stored }) {
    clearTimeout(this.unsavedTimer);
    const show = () => {
      const why = { "signed-out": "you are signed out", offline: "the server cannot be reached" }[trouble] ?? trouble;
      const kept = stored ? "kept in this browser" : "this browser cannot store judgments: leave this page open";
      $("unsaved").textContent = unsaved.length ? `${unsaved.length} unsaved${why ? `: ${why}; ${kept}` : ""}` : "";
      $("sign-in").hidden = trouble !== "signed-out";
    };
    if (unsaved.length && !trouble) this.unsavedTimer = setTimeout(show, 1000);
    else show();
    $("refused").hidden = !refused.length;
    $("refused-text").textContent = refused.length
      ? `${refused.length} not accepted: ${[...new Set(refused.map((entry) => entry.error))].join(" ")}`
      : "";
  }
}
