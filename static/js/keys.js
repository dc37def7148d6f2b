/* The shortcuts of every page, and the dialog that lists them. */
(() => {
  const dialog = document.getElementById("keys");
  if (!dialog) return;

  function findSearch() {
    const search = document.getElementById("search");
    if (!search) {
      location.assign(dialog.dataset.list);
      return;
    }
    if (!search.checkVisibility({ visibilityProperty: true })) document.getElementById("open-sidebar")?.click();
    search.focus();
    search.select();
  }

  // From message to message, past those that are put away.
  function step(by) {
    const messages = [...document.querySelectorAll(".message[data-seq]")].filter((each) => each.checkVisibility());
    const now = messages.indexOf(document.activeElement?.closest(".message"));
    const next = now < 0 ? messages.at(by < 0 ? -1 : 0) : messages[now + by];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  }

  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    const isTyping = target.closest("input, textarea, select");
    const isCommand = event.ctrlKey || event.metaKey;
    if (isCommand && !event.altKey && !event.shiftKey && key.toLowerCase() === "k") {
      event.preventDefault();
      findSearch();
    } else if (event.altKey && !isCommand && (key === "ArrowUp" || key === "ArrowDown")) {
      if (!document.querySelector(".message[data-seq]")) return;
      event.preventDefault();
      step(key === "ArrowUp" ? -1 : 1);
    } else if (key === "?" && !isTyping && !isCommand && !event.altKey && !document.querySelector("dialog[open]")) {
      event.preventDefault();
      dialog.showModal();
    }
  });
  document.addEventListener("click", ({ target }) => {
    if (target.closest("[data-open-keys]")) dialog.showModal();
    else if (target === dialog || target.closest("[data-close-keys]")) dialog.close();
  });
})();
