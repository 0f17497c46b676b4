/* Sections that are closed at first: an address opens the one that it names, and paper gets all. */

let unfolded = null;  // the section that the address opened

function openAt(id) {
  const target = id && document.getElementById(id);
  const closed = [];
  for (let each = target?.parentElement; each; each = each.parentElement) if (each.matches("details:not([open])")) closed.push(each);
  closed.forEach(each => { each.open = true; });
  if (!closed.length) return;
  target.scrollIntoView();
  unfolded = target;
}

/** What is above the section of the address grew: show the section again, unless the reader did something meanwhile. */
export function keepUnfolded() { unfolded?.scrollIntoView(); }

const idOf = hash => { try { return decodeURIComponent(hash.slice(1)); } catch { return hash.slice(1); } };

/** Browsers that do not open details at a link or on paper by themselves do it with this. */
export function equipFolded() {
  const opened = [];
  for (const kind of ["wheel", "touchmove", "keydown", "pointerdown"]) window.addEventListener(kind, () => { unfolded = null; }, { passive: true });
  openAt(idOf(location.hash));
  window.addEventListener("hashchange", () => openAt(idOf(location.hash)));
  document.addEventListener("click", event => {
    const link = event.target.closest("a[href^='#']");
    if (link) openAt(idOf(link.hash));
  });
  window.addEventListener("beforeprint", () => {
    for (const each of document.querySelectorAll(".report details.folded:not([open])")) { each.open = true; opened.push(each); }
  });
  window.addEventListener("afterprint", () => opened.splice(0).forEach(each => { each.open = false; }));
}
