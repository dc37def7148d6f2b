/* The shortcuts of every page, and the dialog that lists them. */
(() => {
  const dialog = document.getElementById("keys");
  if (!dialog) return;

  function findSearch() {
    const search = document.getElementById("search");
    if (!search) return location.assign(dialog.dataset.list);
    if (!search.checkVisibility({ visibilityProperty: true })) document.getElementById("open-sidebar")?.click();
    search.focus();
    search.select();
  }

  const open = () => addStyles(dialog.dataset.styles).then(() => dialog.open || dialog.showModal());

  // From message to message, past those that are put away.
  function step(by) {
    const messages = [...document.querySelectorAll(".message[data-seq]")].filter((each) => each.checkVisibility());
    const now = messages.indexOf(document.activeElement?.closest(".message"));
    const next = now < 0 ? messages.at(by < 0 ? -1 : 0) : messages[now + by];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  }

  // Keys that act by themselves; any other that is typed outside of a field goes to the
  // message box.
  const ACTING = " ?/[]";

  function typeIntoBox() {
    const box = document.getElementById("text");
    if (box && !box.closest("[inert]") && !document.querySelector("dialog[open]")) box.focus();
  }

  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    const isTyping = target.closest("input, textarea, select");
    const isCommand = event.ctrlKey || event.metaKey;
    if (isCommand && !event.altKey && !event.shiftKey && key.toLowerCase() === "k") {
      event.preventDefault();
      findSearch();
    } else if (isCommand && event.shiftKey && key.toLowerCase() === "o") {
      event.preventDefault();
      location.assign(dialog.dataset.list);
    } else if (event.altKey && !isCommand && (key === "ArrowUp" || key === "ArrowDown")) {
      if (!document.querySelector(".message[data-seq]")) return;
      event.preventDefault();
      step(key === "ArrowUp" ? -1 : 1);
    } else if (key === "?" && !isTyping && !isCommand && !event.altKey && !document.querySelector("dialog[open]")) {
      event.preventDefault();
      open();
    } else if (key.length === 1 && !ACTING.includes(key) && !isTyping && !isCommand && !event.altKey) typeIntoBox();
  });
  document.addEventListener("click", ({ target }) => {
    if (target.closest("[data-open-keys]")) open();
    else if (target === dialog || target.closest("[data-close-keys]")) dialog.close();
  });
})();
