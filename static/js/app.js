// What htmx and the browser do not do by themselves. Everything here is an addition: links and forms work without it.
(() => {
  "use strict";

  // Whether the server is asked to act, by a form in this place or around it. Shared with live.js.
  const WAITING = "form[hx-post].htmx-request";
  const acting = (place) => place.closest(WAITING) !== null || place.querySelector(WAITING) !== null;
  window.redrive = { acting };

  const cookie = (name) => document.cookie.split("; ").find((part) => part.startsWith(`${name}=`))?.split("=")[1];

  // The token is read at the moment of the request: a login in another tab changes it.
  document.addEventListener("htmx:config:request", (event) => {
    const request = event.detail.ctx.request;
    if (request.method !== "GET") request.headers["X-CSRFToken"] = cookie("csrftoken") ?? "";
  });

  // htmx 4.0.1 swallows a click with a modifier on links it serves: let the browser open its tab.
  window.addEventListener("click", (event) => {
    if ((event.ctrlKey || event.metaKey || event.shiftKey) && event.target.closest("a[href]")) event.stopImmediatePropagation();
  }, true);

  // An answer that was an error leaves the address as it was.
  document.addEventListener("htmx:before:history:update", (event) => {
    if (event.detail.response?.status >= 400) event.preventDefault();
  });

  // Empty filters stay out of the address and out of the request.
  document.addEventListener("htmx:config:request", (event) => {
    const { request, sourceElement } = event.detail.ctx;
    if (!sourceElement.matches("form[role=search]") || !request.body) return;
    for (const [key, value] of [...request.body.entries()]) if (value === "") request.body.delete(key);
  });

  // --- messages ---------------------------------------------------------------------------------------------------
  const toasts = () => document.getElementById("toasts");
  const LINGER = 8000;

  const watch = (toast) => {
    if (toast.classList.contains("error") || toast.classList.contains("warning")) return;
    const leave = () => (toast.matches(":hover, :focus-within") ? setTimeout(leave, LINGER) : toast.remove());
    setTimeout(leave, LINGER);
  };

  const say = (words, level) => {
    const model = document.getElementById("toast-model");
    if (!model || !toasts()) return;
    if ([...toasts().querySelectorAll("p")].some((p) => p.textContent === words)) return;
    const toast = model.content.firstElementChild.cloneNode(true);
    toast.classList.add(level);
    toast.querySelector("p").textContent = words;
    toasts().append(toast);
  };

  if (toasts()) {
    toasts().querySelectorAll(".toast").forEach(watch);
    new MutationObserver((changes) => {
      for (const change of changes) for (const node of change.addedNodes) if (node.matches?.(".toast")) watch(node);
    }).observe(toasts(), { childList: true });
  }

  // A person's request that failed gets a sentence; the page's own refreshes say it by the live mark (live.js).
  const failed = (event) => {
    const { sourceElement, response, text } = event.detail.ctx;
    if (sourceElement.closest("[data-refresh]") === sourceElement || text?.includes("<hx-partial")) return;
    const words = document.getElementById("toast-model")?.dataset;
    if (!words) return;
    const status = response?.status;
    say(status === 403 ? words.forbidden : status === 404 ? words.missing : status ? words.failed : words.offline, "error");
  };
  document.addEventListener("htmx:response:error", failed);
  document.addEventListener("htmx:error", failed);

  // --- sheets: a question before an action --------------------------------------------------------------------------
  const close = (sheet, focus) => {
    sheet.open = false;
    if (focus) sheet.querySelector("summary").focus();
  };

  document.addEventListener("toggle", (event) => {
    const sheet = event.target;
    if (!sheet.matches?.("details.ask") || !sheet.open) return;
    document.querySelectorAll("details.ask[open]").forEach((other) => other !== sheet && close(other, false));
    sheet.querySelector("textarea, input:not([type=hidden]), select, button[type=submit]")?.focus();
    sheet.querySelector(".sheet")?.scrollIntoView({ block: "nearest" });
  }, true);

  document.addEventListener("keydown", (event) => {
    const sheet = event.key === "Escape" && document.querySelector("details.ask[open]");
    if (sheet) close(sheet, true);
  });

  document.addEventListener("click", (event) => {
    const dismiss = event.target.closest("[data-dismiss]");
    if (dismiss) {
      const sheet = dismiss.closest("details.ask");
      sheet ? close(sheet, true) : dismiss.closest(".toast")?.remove();
      keep();
      return;
    }
    document.querySelectorAll("details.ask[open]").forEach((sheet) => !sheet.contains(event.target) && close(sheet, false));
  });

  // The question whose answer went through is closed; another one that was opened meanwhile is not.
  document.addEventListener("acted", (event) => {
    const sheet = event.target.closest?.("details.ask[open]");
    if (!sheet) return;
    const at = document.activeElement;
    sheet.querySelector("form").reset();
    close(sheet, lost(at) || sheet.contains(at));
  });

  // --- the focus ----------------------------------------------------------------------------------------------------
  // What has the focus can go: an action disables its own button and leads to another one, a refresh takes a row away,
  // somebody else was first. The browser drops the focus on the page then. After each swap, however many come and in
  // whichever order, it is put back: to where it was, else to what stands there now. Only a person takes it elsewhere.
  let stood = null;

  const lost = (one) => one === document.body || one.matches(":disabled") || !one.checkVisibility();

  const SPOTS = [":is(.act, .state) :is(button, summary)", ".title", "a[href], button, summary"];

  // Where one stands: in its row, else the rows that follow and precede it, else its region; and as what.
  const stand = (one) => {
    const row = one.closest("tr[id]");
    const rows = row ? [...row.parentElement.children] : [];
    const at = Math.max(rows.indexOf(row), 0);
    const near = [...rows.slice(at), ...rows.slice(0, at).reverse(), one.closest("[data-refresh]")];
    const as = SPOTS.find((spot) => one.matches(spot)) ?? SPOTS[0];
    stood = one === document.body ? null : { one, as, ids: near.map((place) => place?.id).filter(Boolean) };
  };

  // While the server is asked to act, the button that asks is disabled: the focus waits for what comes of it.
  const keep = () => {
    if (!stood || acting(stood.one) || !lost(document.activeElement)) return;
    const near = stood.ids.map((id) => document.getElementById(id)).filter(Boolean);
    const spots = near.flatMap((place) => [stood.as, ...SPOTS].map((spot) => place.querySelector(spot)));
    const twin = stood.one.id && document.getElementById(stood.one.id);
    [stood.one, twin, ...spots, document.getElementById("main")]
      .find((one) => one?.isConnected && !lost(one))?.focus({ preventScroll: true });
  };

  document.addEventListener("focusin", (event) => stand(event.target));
  document.addEventListener("mousedown", () => { stood = null; }, true);
  document.addEventListener("click", () => stand(document.activeElement), true);
  document.addEventListener("submit", (event) => { if (lost(document.activeElement)) stand(event.submitter ?? event.target); });
  document.addEventListener("htmx:before:swap", () => { if (stood?.one.isConnected) stand(stood.one); });
  document.addEventListener("htmx:after:swap", keep);

  // The button is given back, once htmx has enabled it; until a refresh brings what it led to.
  document.addEventListener("htmx:finally:request", (event) => {
    if (event.detail.ctx.sourceElement.matches("[hx-post]")) queueMicrotask(keep);
  });

  // On a phone the tabs run past the edge: the one that is on is brought into sight, once for each list that comes.
  const shown = new WeakSet();
  const showTab = () => document.querySelectorAll(".tabs").forEach((tabs) => {
    const on = tabs.querySelector("[aria-current]");
    if (on && !shown.has(tabs)) tabs.scrollLeft = on.offsetLeft - tabs.offsetLeft - 16;
    shown.add(tabs);
  });
  document.addEventListener("htmx:after:swap", showTab);
  showTab();

  // --- ids copy on click ------------------------------------------------------------------------------------------
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
    } catch {
      say(document.getElementById("toast-model")?.dataset.uncopied ?? button.dataset.copy, "warning");
      return;
    }
    button.dataset.copied = "";
    setTimeout(() => delete button.dataset.copied, 1200);
  });

  // --- keys -------------------------------------------------------------------------------------------------------
  // Whoever speaks to the machine, or hits keys by chance, turns them off on the page that explains them.
  const KEYS = "redrive.keys";
  const choice = document.getElementById("use-keys");
  if (choice) {
    choice.checked = localStorage.getItem(KEYS) !== "off";
    choice.addEventListener("change", () => localStorage.setItem(KEYS, choice.checked ? "on" : "off"));
  }
  const writing = (target) => target.closest("textarea, select, [contenteditable], input:not([type=checkbox])");
  let chord = 0;

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || writing(event.target)) return;
    if (localStorage.getItem(KEYS) === "off") return;
    if (event.key === "/") {
      const search = document.querySelector("input[type=search]");
      if (search) { event.preventDefault(); search.focus(); search.select(); }
    } else if (event.key === "g") {
      chord = Date.now();
    } else if (Date.now() - chord < 1500) {
      const place = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
      if (place) { event.preventDefault(); place.click(); }
      chord = 0;
    } else if (event.key === "?") {
      document.querySelector('[data-key="h"]')?.click();
    } else if (event.key === "r") {
      event.preventDefault();
      reprocess();
    } else if (event.key === "j" || event.key === "k") {
      step(event.key === "j" ? 1 : -1);
    } else if (event.key === "x") {
      document.activeElement.closest?.("tr")?.querySelector("input.tick")?.click();
    }
  });

  // On a letter: its question. In the list: the button for the ticked ones, which Enter then presses.
  const reprocess = () => {
    const spot = [...document.querySelectorAll("[data-reprocess]")].find((one) => one.checkVisibility());
    if (!spot) return;
    if (spot.matches("details")) spot.open = true;
    else spot.focus();
  };

  const step = (by) => {
    const titles = [...document.querySelectorAll("table.rows tbody .title")];
    const at = titles.findIndex((title) => title.closest("tr").contains(document.activeElement));
    titles[at < 0 ? (by > 0 ? 0 : titles.length - 1) : Math.min(Math.max(at + by, 0), titles.length - 1)]?.focus();
  };

  // --- ticks ------------------------------------------------------------------------------------------------------
  const ticks = () => [...document.querySelectorAll("input.tick")];

  const count = () => {
    const boxes = ticks();
    const ticked = boxes.filter((box) => box.checked);
    boxes.forEach((box) => box.closest("tr")?.classList.toggle("ticked", box.checked));
    const all = document.querySelector("input.tick-all");
    if (all) {
      all.checked = boxes.length > 0 && ticked.length === boxes.length;
      all.indeterminate = ticked.length > 0 && ticked.length < boxes.length;
    }
    document.querySelectorAll("[data-ticked-count]").forEach((spot) => { spot.textContent = ticked.length; });
    document.querySelectorAll("[data-while-ticked]").forEach((bar) => { bar.toggleAttribute("data-on", ticked.length > 0); });
  };

  document.addEventListener("change", (event) => {
    if (event.target.matches("input.tick-all")) ticks().forEach((box) => { box.checked = event.target.checked; });
    if (event.target.matches("input.tick, input.tick-all")) count();
  });
  // With the last tick the bar goes: a focus that was in it goes to where the ticking began.
  const untick = () => {
    const first = ticks().find((box) => box.checked);
    const inBar = stood?.one.closest("[data-while-ticked]");
    ticks().forEach((box) => { box.checked = false; });
    count();
    if (inBar && lost(document.activeElement)) first?.focus({ preventScroll: true });
  };

  document.addEventListener("click", (event) => { if (event.target.closest("[data-untick]")) untick(); });
  document.addEventListener("htmx:after:swap", count);
  document.addEventListener("acted", untick);
  window.addEventListener("pageshow", count);
})();
