/* The right pane: it keeps its place, and shows the draft as typed. */
(() => {
  const page = document.getElementById("conversation");
  const context = document.getElementById("context");
  const box = document.getElementById("text");
  const draft = document.getElementById("draft");
  const scroller = document.getElementById("transcript");
  const find = document.getElementById("find");
  const DRAFT_MS = 600;
  const chosen = () => document.getElementById("shown-reply");

  // A redraw keeps the scroll position and the focus.
  const body = () => document.getElementById("context-body");
  const scrolled = () => [context, body()];
  const keyed = (key) => context.querySelector(`[data-key="${key}"]`) || context;
  const stopsOf = (key) => keyed(key).querySelectorAll("a[href], button, summary, select, [tabindex]");
  let tops = [0, 0];
  let focused = null;

  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (detail.target !== context) return;
    tops = scrolled().map((element) => element.scrollTop);
    const active = document.activeElement;
    const key = active?.closest("[data-key]")?.dataset.key;
    focused = context.contains(active) && { key, at: [...stopsOf(key)].indexOf(active) };
  });
  // A part that is loaded later gets it then.
  document.addEventListener("htmx:afterSettle", ({ target }) => {
    const lost = focused && context.contains(target) && stopsOf(focused.key)[focused.at];
    if (lost && document.activeElement === document.body) lost.focus({ preventScroll: true });
    if (lost) focused = null;
  });
  document.addEventListener("htmx:afterSwap", ({ target, detail }) => {
    if (target !== context) return;
    if (!page.dataset.replaying) scrolled().forEach((element, at) => { element.scrollTop = tops[at]; });
    if (detail.requestConfig?.verb !== "get") return;
    showDraftLater();
    if (find?.open && find.querySelector("input").value.trim()) htmx.trigger(find.querySelector("form"), "again");
  });

  const load = (verb, address, values) => htmx.ajax(verb, address, { source: context, target: context, swap: "innerHTML show:none", values });

  // Nothing is loaded for a hidden tab or a closed drawer until seen again.
  let isStale = false;

  function isSeen() {
    return !document.hidden && [context, document.getElementById("tab-count")].some((element) => element.checkVisibility());
  }

  function catchUp() {
    if (!isStale || !isSeen()) return;
    isStale = false;
    load("GET", draft.dataset.now, { reply: chosen().value });
  }

  // A sent message that is shown as a draft is not loaded again.
  document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => {
    const newest = detail.fragment.firstElementChild?.dataset.newest;
    if (newest && newest === body().dataset.newest && !document.querySelector(".htmx-request")) detail.shouldSwap = false;
  });
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target.id !== "refresh" || isSeen()) return;
    isStale = true;
    event.preventDefault();
  });
  document.addEventListener("visibilitychange", catchUp);
  addEventListener("resize", catchUp);
  new MutationObserver(catchUp).observe(page, { attributeFilter: ["data-drawer", "data-tab"] });

  let waiting = 0;
  let shown = "";

  function showDraft() {
    if (!box || !context.offsetParent || chosen().value || page.dataset.replaying) return;
    const ids = messageFiles.ready.map(({ id }) => id).join(" ");
    const said = box.value.trim() + ids;
    if (!said && !shown) return;
    shown = said;
    draft.elements.draft.value = box.value;
    draft.elements.files.value = ids;
    htmx.trigger(draft, "draft");
  }

  function showDraftLater() {
    clearTimeout(waiting);
    waiting = setTimeout(showDraft, DRAFT_MS);
  }

  box?.addEventListener("input", showDraftLater);
  for (const name of ["files:changed", "connection:open"]) document.addEventListener(name, showDraftLater);
  document.addEventListener("composer:sent", () => {
    clearTimeout(waiting);
    shown = "";
  });

  // A click into a text: desk.js may not be there yet.
  function writeIn(target) {
    const part = target.closest(".editable");
    const isText = target.closest(".summary-text, pre, q") && !target.closest("a, .writing") && getSelection().isCollapsed;
    if (part && (isText || target.closest("[data-write]"))) import(context.dataset.desk).then(({ write }) => write(part), notices.failToLoad);
  }

  // A part of the next request is sent, or left out.
  context.addEventListener("click", ({ target }) => {
    const part = target.closest("[data-switch]");
    if (!part) return writeIn(target);
    const isOn = part.getAttribute("aria-checked") === "true";
    part.setAttribute("aria-checked", !isOn);
    const { draft: text, files } = draft.elements;
    load("POST", draft.dataset.switch, { part: part.dataset.switch, on: isOn ? "" : "1", draft: text.value, files: files.value });
  });

  const replay = onFirstUse("context");
  const startAt = (seq) => replay().then(({ start }) => start(seq), notices.failToLoad);
  if (page.dataset.moment) startAt(page.dataset.moment);
  document.addEventListener("click", ({ target }) => {
    if (target.closest("[data-replay]")) startAt();
  });
})();
