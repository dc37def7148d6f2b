/* The right pane and the two tabs: what is shown where. */
(() => {
  const page = document.getElementById("conversation");
  const context = document.getElementById("context");
  const togglePane = document.getElementById("toggle-pane");
  const tabs = [...page.querySelectorAll("[data-tab-to]")];
  const isWide = matchMedia("(width >= 60em)");
  const isPhone = matchMedia("(width < 45em)");

  const isPaneOpen = () => page.dataset[isWide.matches ? "pane" : "drawer"] === "open";

  function showPane(open) {
    if (isPaneOpen() === open) return;
    const focused = document.activeElement;
    page.dataset[isWide.matches ? "pane" : "drawer"] = open ? "open" : "closed";
    if (isWide.matches) appearance.keep("pane", page.dataset.pane);
    togglePane.setAttribute("aria-expanded", open);
    movePaneFocus(open, focused);
  }

  // Into the drawer, and out of what is hidden.
  let before = null;

  function movePaneFocus(open, focused) {
    const wasInside = context.contains(focused);
    if (open && !isWide.matches) before = wasInside ? null : focused;
    if (open && (wasInside || !isWide.matches)) context.querySelector("[data-close-pane]").focus();
    else if (!open && wasInside) (isWide.matches ? context.querySelector(".strip") : before || togglePane).focus();
  }

  function showTab(name) {
    page.dataset.tab = name;
    for (const tab of tabs) {
      tab.ariaSelected = tab.dataset.tabTo === name;
      tab.tabIndex = tab.dataset.tabTo === name ? 0 : -1;
    }
  }

  function showCount() {
    document.getElementById("tab-count").textContent = `(${document.getElementById("context-count").dataset.count})`;
  }

  const adapt = () => togglePane.setAttribute("aria-expanded", isPaneOpen());

  const width = localStorage.getItem("pane-width");
  if (width) page.style.setProperty("--beside", `min(${width}px, 50vw)`);
  isWide.addEventListener("change", adapt);
  adapt();
  showCount();

  document.addEventListener("click", ({ target }) => {
    if (target.closest("#toggle-pane")) showPane(!isPaneOpen());
    else if (target.closest("[data-open-pane]")) showPane(true);
    else if (target.closest("[data-close-pane]")) showPane(false);
    else if (target.closest("[data-tab-to]")) showTab(target.closest("[data-tab-to]").dataset.tabTo);
    else if (target.closest("[data-show-reply]")) {
      showTab("model");
      if (!isPhone.matches) showPane(true);
    } else if (target.closest("#context a[href^='#message-']")) {
      showTab("you");
      if (!isWide.matches) showPane(false);
    }
  });

  document.querySelector(".tabs").addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -tabs.length, End: tabs.length }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = Math.min(Math.max(tabs.indexOf(event.target) + step, 0), tabs.length - 1);
    showTab(tabs[at].dataset.tabTo);
    tabs[at].focus();
  });

  document.addEventListener("keydown", (event) => {
    if (event.altKey && event.code === "KeyM") {
      event.preventDefault();
      if (isPhone.matches) showTab(page.dataset.tab === "you" ? "model" : "you");
      else showPane(!isPaneOpen());
    } else if (event.key === "Escape" && !document.querySelector("dialog[open]") && !isWide.matches) showPane(false);
  });

  // The name as it is by now, unless another is being typed.
  function showTitle({ title, seen }) {
    if (title.value !== seen.value) return;
    title.value = seen.value = document.getElementById("conversation-title").dataset.title;
  }

  for (const id of ["rename", "find"]) {
    document.getElementById(id)?.addEventListener("toggle", ({ target }) => {
      if (target.open && id === "rename") showTitle(target.querySelector("form").elements);
      if (target.open) target.querySelector("[name=title], [name=q]").select();
    });
  }
  document.addEventListener("htmx:afterSwap", ({ target }) => {
    if (target === context) showCount();
  });
  document.addEventListener("htmx:oobAfterSwap", ({ target }) => {
    if (target.id === "conversation-title") document.title = `${target.textContent} · Windowpane`;
  });
})();
