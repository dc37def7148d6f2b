/* The list, the right pane, tabs and menus: what is shown where, and the shortcuts. */
(() => {
  const page = document.getElementById("conversation");
  const openList = document.getElementById("open-sidebar");
  const togglePane = document.getElementById("toggle-pane");
  const isWide = window.matchMedia("(min-width: 1100px)");
  const stored = "windowpane.model-pane";

  function showList(open) {
    document.body.classList.toggle("list-open", open);
    openList.setAttribute("aria-expanded", open);
    if (open) document.querySelector(".sidebar .close-drawer").focus();
  }

  function isPaneOpen() {
    return isWide.matches ? page.dataset.pane === "open" : page.dataset.drawer === "open";
  }

  function showPane(open) {
    const state = open ? "open" : "closed";
    if (isWide.matches) {
      page.dataset.pane = state;
      localStorage.setItem(stored, state);
    } else {
      page.dataset.drawer = state;
    }
    togglePane.setAttribute("aria-expanded", open);
  }

  function showTab(name) {
    page.dataset.tab = name;
    for (const tab of page.querySelectorAll("[data-tab-to]")) {
      tab.setAttribute("aria-pressed", tab.dataset.tabTo === name);
    }
  }

  function showCount() {
    const count = document.getElementById("context-count").dataset.count;
    document.getElementById("tab-count").textContent = `(${count})`;
  }

  page.dataset.pane = localStorage.getItem(stored) || "open";
  togglePane.setAttribute("aria-expanded", isPaneOpen());
  isWide.addEventListener("change", () => togglePane.setAttribute("aria-expanded", isPaneOpen()));
  showCount();

  document.addEventListener("click", (event) => {
    const { target } = event;
    for (const menu of document.querySelectorAll("details.menu[open], details.rename[open]")) {
      if (!menu.contains(target)) menu.open = false;
    }
    if (target.closest("#open-sidebar")) showList(true);
    else if (target.closest("[data-close-sidebar]")) showList(false);
    else if (target.closest("#toggle-pane")) showPane(!isPaneOpen());
    else if (target.closest("[data-close-pane]")) showPane(false);
    else if (target.closest("[data-tab-to]")) showTab(target.closest("[data-tab-to]").dataset.tabTo);
    else if (target.closest("[data-show-reply]")) {
      showPane(true);
      showTab("model");
    } else if (target.closest("#context a[href^='#message-']")) {
      showTab("you");
      if (!isWide.matches) showPane(false);
    }
  });

  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, textarea, select");
    if (event.altKey && event.code === "KeyM") {
      event.preventDefault();
      showPane(!isPaneOpen());
      showTab(page.dataset.tab === "you" ? "model" : "you");
    } else if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      if (!isWide.matches) showList(true);
      document.getElementById("search").focus();
    } else if (event.key === "Escape") {
      showList(false);
      if (!isWide.matches) showPane(false);
      for (const menu of document.querySelectorAll("details.menu, details.rename")) menu.open = false;
    }
  });

  document.getElementById("rename").addEventListener("toggle", ({ target }) => {
    if (target.open) target.querySelector("[name=title]").select();
  });

  document.addEventListener("htmx:afterRequest", ({ target, detail }) => {
    if (target.closest("#rename") && detail.successful) document.getElementById("rename").open = false;
  });
  document.addEventListener("htmx:afterSwap", ({ target }) => {
    if (target.id === "context") showCount();
  });
  document.addEventListener("htmx:oobAfterSwap", ({ target }) => {
    if (target.id !== "conversation-title") return;
    const title = document.getElementById("conversation-title").textContent;
    document.title = `${title} · Windowpane`;
  });
})();
