// Live pages. An element with data-refresh asks for its state by its own hx-get, every two seconds:
//   <tbody id="rows" hx-get="/tasks/rows/" hx-trigger="refresh" hx-swap="none" hx-sync="this:replace" data-refresh="rows">
// data-refresh="rows": only the ids of the rows on screen are asked for (id=…&id=…, and top= the newest on the page).
// data-refresh="region": the element as a whole. [data-settled] inside it: nothing changes any more, ask only after
// an action of a person. Nothing is asked while the tab is hidden, a row is ticked, a sheet is open or an action is under
// way. After an action all of it is asked at once; that question replaces one from before it.
(() => {
  "use strict";

  const PACE = 2000;
  const SLOWEST = 30000;
  let wait = PACE;
  let timer = 0;
  let broken = false;

  const places = () => [...document.querySelectorAll("[data-refresh]")];
  const due = () => places().filter((place) => !place.querySelector("[data-settled]"));
  const handsOn = () => document.querySelector("input.tick:checked, details.ask[open], dialog[open]") !== null;
  const acting = () => document.querySelector("form[hx-post].htmx-request") !== null;

  const mark = (state, word) => {
    const spot = document.getElementById("live-mark");
    if (!spot) return;
    spot.dataset.state = state;
    const text = spot.dataset[word ?? state];
    if (spot.textContent !== text) spot.textContent = text;
  };

  const state = () => {
    if (broken) return mark("reconnecting");
    if (document.hidden) return mark("paused");
    if (handsOn()) return mark("paused", "hands");
    mark(due().length ? "live" : "off");
  };

  const refresh = (which) => which.forEach((place) => place.dispatchEvent(new CustomEvent("refresh")));

  const beat = () => {
    clearTimeout(timer);
    state();
    if (!document.hidden && !handsOn() && !acting()) refresh(due().filter((place) => !place.matches(".htmx-request")));
    timer = setTimeout(beat, wait);
  };

  const onScreen = (row) => {
    const box = row.getBoundingClientRect();
    return box.bottom > 0 && box.top < innerHeight;
  };

  document.addEventListener("htmx:config:request", (event) => {
    const { sourceElement, request } = event.detail.ctx;
    if (sourceElement.dataset.refresh !== "rows") return;
    const rows = [...sourceElement.querySelectorAll(":scope > [data-id]")];
    rows.filter(onScreen).forEach((row) => request.body.append("id", row.dataset.id));
    if (rows.length) request.body.append("top", rows[0].dataset.id);
  });

  // What was asked for before the hand came down must not move under it, nor undo what the hand did.
  document.addEventListener("htmx:before:swap", (event) => {
    if (event.detail.ctx.sourceElement.dataset?.refresh && (handsOn() || acting())) event.preventDefault();
  });

  const isRefresh = (event) => event.detail.ctx?.sourceElement?.dataset?.refresh !== undefined;

  const lost = (event) => {
    if (!isRefresh(event)) return;
    broken = true;
    wait = Math.min(wait * 2, SLOWEST);
    state();
  };
  document.addEventListener("htmx:error", lost);
  document.addEventListener("htmx:response:error", lost);
  document.addEventListener("htmx:after:request", (event) => {
    if (!isRefresh(event) || event.detail.ctx.response.status >= 400) return;
    broken = false;
    wait = PACE;
    state();
  });

  document.addEventListener("acted", () => setTimeout(() => { state(); refresh(places()); }, 0));
  document.addEventListener("change", state);
  document.addEventListener("toggle", state, true);
  document.addEventListener("htmx:after:swap", state);
  document.addEventListener("visibilitychange", () => { state(); if (!document.hidden) beat(); });
  window.addEventListener("pageshow", (event) => { if (event.persisted) beat(); });

  if (places().length) timer = setTimeout(beat, PACE);
  state();
})();
