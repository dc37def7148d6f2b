/* What a reader does with messages: follows a link to one, and unfolds a long text. How
 * versions of a reply are leafed through and texts copied is loaded on first use
 * (reading-acts.js). */
(() => {
  const load = onFirstUse("reading");

  function restore() {
    unfoldAgain();
    aim();
  }

  // The message that the address names; after a redraw it is no target any more.
  function aim() {
    const target = location.hash.startsWith("#message-") && document.getElementById(location.hash.slice(1));
    for (const old of document.querySelectorAll(".aimed")) old.classList.remove("aimed");
    if (target) target.classList.add("aimed");
    return target;
  }

  // A link to a message leads to it wherever it is put away.
  function reveal() {
    const target = aim();
    if (!target) return;
    const hidden = target.closest(".wording[hidden]");
    if (hidden) load().then(({ showVersion }) => showVersion(hidden), notices.failToLoad);
    unfold(target);
    for (let put = target.closest("details"); put; put = put.parentElement.closest("details")) put.open = true;
    target.scrollIntoView({ block: "center" });
  }

  // What is on the page is shown at once; for the rest the page is loaded around it.
  function follow(event) {
    const link = event.target.closest("a[href*='#message-']");
    if (!link || link.pathname !== location.pathname || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const panel = link.closest("details.find");
    if (panel) panel.open = false;
    if (!document.getElementById(link.hash.slice(1))) location.assign(`?at=${link.hash.slice(9)}${link.hash}`);
    else if (location.hash === link.hash) reveal();
    else location.hash = link.hash;
  }

  // Long messages that the user has unfolded, kept across redraws.
  const unfolded = new Set();

  function unfold(message) {
    unfolded.add(message.id);
    message.querySelector(".folded")?.classList.remove("folded");
    message.querySelector("[data-unfold]")?.remove();
  }

  function unfoldAgain() {
    for (const button of document.querySelectorAll("[data-unfold]")) {
      const message = button.closest(".message");
      if (unfolded.has(message.id)) unfold(message);
    }
  }

  document.addEventListener("click", ({ target }) => {
    const button = target.closest("[data-step], [data-copy], [data-copy-code]");
    if (button) load().then(({ act }) => act(button), notices.failToLoad);
    if (!target.closest("[data-unfold]")) return;
    const message = target.closest(".message");
    unfold(message);
    message.focus({ preventScroll: true });
  });
  document.addEventListener("keydown", ({ target, key, ctrlKey, metaKey, altKey }) => {
    if (!"[]".includes(key) || ctrlKey || metaKey || altKey || target.closest("input, textarea, select")) return;
    const group = target.closest("[data-versions]") || [...document.querySelectorAll("[data-versions]")].at(-1);
    if (group) load().then(({ step }) => step(group, key === "[" ? -1 : 1), notices.failToLoad);
  });
  document.addEventListener("htmx:oobAfterSwap", ({ detail }) => {
    if (!detail.target.closest(".live")) restore();
  });
  document.addEventListener("htmx:afterSwap", restore);
  document.addEventListener("click", follow);
  addEventListener("hashchange", reveal);
  reveal();
})();
