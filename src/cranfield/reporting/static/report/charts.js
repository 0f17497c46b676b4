/* Charts. */

import { cut, make } from "./text.js";

function equipChart(svg, tip, canOpen) {
  const marks = [...svg.querySelectorAll("[data-tip]")];
  const places = [...new Map(marks.map(mark => [mark.dataset.tip, mark])).values()];
  svg.setAttribute("role", "group");
  const show = mark => {
    const box = mark.getBoundingClientRect();
    tip.textContent = cut(mark.dataset.tip);
    tip.hidden = false;
    const left = Math.min(Math.max(8, box.left + box.width / 2 - tip.offsetWidth / 2), document.documentElement.clientWidth - tip.offsetWidth - 8);
    tip.style.left = `${left}px`;
    tip.style.top = `${box.top - tip.offsetHeight - 8 < 0 ? box.bottom + 8 : box.top - tip.offsetHeight - 8}px`;
  };
  const hide = () => { tip.hidden = true; };
  const isLink = mark => mark.hasAttribute("href");
  const leads = mark => mark.dataset.q && canOpen;
  const jump = mark => { if (leads(mark)) location.hash = "#q=" + mark.dataset.q; };
  svg.addEventListener("pointerover", event => { const mark = event.target.closest("[data-tip]"); if (mark) show(mark); else hide(); });
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("focusin", event => { const mark = event.target.closest("[data-tip]"); if (mark) show(mark); });
  svg.addEventListener("focusout", hide);
  svg.addEventListener("click", event => { const mark = event.target.closest("[data-tip]"); if (mark) jump(mark); });
  places.forEach((mark, at) => {
    mark.setAttribute("tabindex", at ? "-1" : "0");
    if (!isLink(mark)) mark.setAttribute("role", leads(mark) ? "button" : "img");
    mark.querySelector("title")?.remove();
    mark.setAttribute("aria-label", mark.dataset.tip);
  });
  svg.addEventListener("keydown", event => {
    const at = places.indexOf(event.target);
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (at < 0) return;
    if ((event.key === "Enter" || event.key === " ") && !isLink(places[at])) { event.preventDefault(); jump(places[at]); }
    const next = step && places[at + step];
    if (!step) return;
    event.preventDefault();
    if (!next) return;
    places[at].setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  });
}

/** Charts that tell their values, by mouse and by keyboard, and open queries where these can be opened. */
export function equipCharts(canOpen) {
  const svgs = [...document.querySelectorAll(".report .picture svg")].filter(svg => svg.querySelector("[data-tip]"));
  if (!svgs.length) return;
  const tip = make("div", { class: "chart-tip report", "aria-hidden": "true", hidden: true });
  document.body.append(tip);
  svgs.forEach(svg => equipChart(svg, tip, canOpen));
}
