// Live pages. An element with data-refresh asks for its state by its own hx-get, every two seconds:
//   <tbody id="rows" hx-get="/tasks/rows/" hx-trigger="refresh" hx-swap="none" hx-sync="this:replace" data-refresh="rows">
// data-refresh="rows": only the ids of the rows on screen are asked for (id=…&id=…, and top= the newest on the page).
// data-refresh="region": the element as a whole. [data-settled] inside it: nothing changes any more, ask only after
// an action of a person. Nothing is asked while the tab is hidden, a row is ticked or a sheet is open, and no place while
// a form in it waits for its answer. After an action each place is owed a look: asked as soon as nothing of that stands
// in its way, until an answer was swapped in. What was asked before the action is dropped.
(() => {
  "use strict";

  const PACE = 2000;
  const SLOWEST = 30000;
  const PATIENCE = 2;
  const { acting } = window.redrive;
  let wait = PACE;
  let timer = 0;
  let broken = false;
  // The ids of the places of which nothing was seen since the last action.
  const owed = new Set();
  // How many beats in a row have found a place waiting for its look, or for what a form in it has asked.
  const waited = new WeakMap();

  const places = () => [...document.querySelectorAll("[data-refresh]")];
  const due = () => places().filter((place) => owed.has(place.id) || !place.querySelector("[data-settled]"));
  const handsOn = () => document.querySelector("input.tick:checked, details.ask[open], dialog[open]") !== null;
  const waits = (place) => place.matches(".htmx-request") || acting(place);
  const unanswered = () => places().some((place) => waits(place) && waited.get(place) >= PATIENCE);

  const mark = (state, word) => {
    const spot = document.getElementById("live-mark");
    if (!spot) return;
    spot.dataset.state = state;
    const text = spot.dataset[word ?? state];
    if (spot.textContent !== text) spot.textContent = text;
  };

  const state = () => {
    if (broken || unanswered()) return mark("reconnecting");
    if (document.hidden) return mark("paused");
    if (handsOn()) return mark("paused", "hands");
    mark(due().length ? "live" : "off");
  };

  const look = (which) => {
    if (document.hidden || handsOn()) return;
    which.forEach((place) => {
      waited.set(place, 0);
      place.dispatchEvent(new CustomEvent("refresh"));
    });
  };

  const beat = () => {
    clearTimeout(timer);
    places().forEach((place) => waited.set(place, waits(place) ? (waited.get(place) ?? 0) + 1 : 0));
    state();
    look(due().filter((place) => !waits(place)));
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

  const isRefresh = (event) => event.detail.ctx?.sourceElement?.dataset?.refresh !== undefined;

  // What was asked for before the hand came down must not move under it, nor undo what the hand did.
  document.addEventListener("htmx:before:swap", (event) => {
    if (isRefresh(event) && (handsOn() || acting(event.detail.ctx.sourceElement))) event.preventDefault();
  });

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

  document.addEventListener("acted", () => places().forEach((place) => {
    owed.add(place.id);
    place.dispatchEvent(new CustomEvent("htmx:abort"));
  }));
  document.addEventListener("htmx:after:swap", (event) => {
    if (isRefresh(event) && event.detail.ctx.response.status < 400) owed.delete(event.detail.ctx.sourceElement.id);
    state();
  });
  // Whatever became of what a person asked, its place need not stand still for it any more, once htmx has said so.
  document.addEventListener("htmx:finally:request", (event) => {
    if (isRefresh(event)) return;
    queueMicrotask(() => {
      state();
      look(places().filter((place) => owed.has(place.id) && !acting(place)));
    });
  });
  document.addEventListener("change", state);
  document.addEventListener("toggle", state, true);
  document.addEventListener("visibilitychange", () => { state(); if (!document.hidden) beat(); });
  window.addEventListener("pageshow", (event) => { if (event.persisted) beat(); });

  if (places().length) timer = setTimeout(beat, PACE);
  state();
})();
