/* What a reader does with messages: leaf through versions of a reply, unfold a long text,
 * copy a message or a piece of code. */
(() => {
  // The version that a person chose, by turn, so that a redraw does not turn the page.
  const chosen = new Map();

  const versionsOf = (group) => [...group.querySelectorAll(".wording")];

  function show(group, number) {
    const versions = versionsOf(group);
    const place = Math.min(Math.max(number, 1), versions.length);
    versions.forEach((version, index) => { version.hidden = index !== place - 1; });
    group.querySelector(".at").textContent = place;
    group.querySelector("[data-step='-1']").disabled = place === 1;
    group.querySelector("[data-step='1']").disabled = place === versions.length;
    return place;
  }

  function step(group, by) {
    const versions = versionsOf(group);
    const now = versions.findIndex((version) => !version.hidden) + 1;
    const place = show(group, now + by);
    chosen.set(group.dataset.versions, { place, count: versions.length });
  }

  function restore() {
    for (const group of document.querySelectorAll("[data-versions]")) {
      const before = chosen.get(group.dataset.versions);
      const count = versionsOf(group).length;
      if (before && before.count === count) show(group, before.place);
    }
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
    if (hidden) {
      const group = hidden.closest("[data-versions]");
      show(group, versionsOf(group).indexOf(hidden) + 1);
    }
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

  // Long messages that a person has unfolded, so that a redraw does not fold them.
  const unfolded = new Set();

  function unfold(message) {
    unfolded.add(message.id);
    message.querySelector(".folded")?.classList.remove("folded");
    message.querySelector("[data-unfold]")?.remove();
  }

  // The focus stays where the button was.
  function readOn(message) {
    unfold(message);
    message.focus({ preventScroll: true });
  }

  function unfoldAgain() {
    for (const button of document.querySelectorAll("[data-unfold]")) {
      const message = button.closest(".message");
      if (unfolded.has(message.id)) unfold(message);
    }
  }

  // The clipboard needs HTTPS; without it what is shown is copied.
  async function copy(button, text, shown) {
    if (navigator.clipboard) await navigator.clipboard.writeText(text);
    else {
      getSelection().selectAllChildren(shown);
      document.execCommand("copy");
    }
    button.classList.add("copied");
    setTimeout(() => button.classList.remove("copied"), 1200);
  }

  function copyMessage(button) {
    const message = button.closest(".message");
    copy(button, message.querySelector("template[data-raw]").content.textContent, message.querySelector(".body"));
  }

  function copyCode(button) {
    const code = button.closest(".code, .tool-part").querySelector("pre");
    copy(button, code.textContent, code);
  }

  document.addEventListener("click", ({ target }) => {
    const pager = target.closest("[data-step]");
    if (pager) step(pager.closest("[data-versions]"), Number(pager.dataset.step));
    const button = target.closest("[data-copy], [data-copy-code]");
    if (button) (button.matches("[data-copy]") ? copyMessage : copyCode)(button);
    if (target.closest("[data-unfold]")) readOn(target.closest(".message"));
  });
  document.addEventListener("keydown", ({ target, key, ctrlKey, metaKey, altKey }) => {
    if (!"[]".includes(key) || ctrlKey || metaKey || altKey || target.closest("input, textarea, select")) return;
    const groups = document.querySelectorAll("[data-versions]");
    const group = target.closest("[data-versions]") || groups[groups.length - 1];
    if (group) step(group, key === "[" ? -1 : 1);
  });
  document.addEventListener("htmx:oobAfterSwap", ({ detail }) => {
    if (!detail.target.closest(".live")) restore();
  });
  document.addEventListener("htmx:afterSwap", restore);
  document.addEventListener("click", follow);
  addEventListener("hashchange", reveal);
  reveal();
})();
