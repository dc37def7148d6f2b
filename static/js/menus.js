/* Menus of every page: one at a time, closed by Escape or by a click beside them. The
 * focus goes back to what opened them, and only when it was inside. */
(() => {
  const MENUS = "details:is(.menu, .rename)[open]";
  const OPEN = "details:is(.menu, .rename, .find)[open]";

  function close(menu) {
    if (menu.contains(document.activeElement)) menu.querySelector("summary").focus();
    menu.open = false;
  }

  function closeOthers({ target }) {
    for (const menu of document.querySelectorAll(MENUS)) if (!menu.contains(target)) close(menu);
  }

  // The menu of a message is loaded when its button gets the focus.
  async function load(event) {
    const menu = event.target.closest("[data-menu] > summary")?.parentElement;
    if (!menu || menu.children[1]) return;
    event.preventDefault();
    const { messages } = document.getElementById("turns").dataset;
    const options = { source: menu.firstElementChild, target: menu, swap: "beforeend" };
    menu.loading ??= htmx.ajax("GET", `${messages}${menu.dataset.menu}/menu/`, options).catch(() => {});
    await menu.loading;
    menu.loading = null;
    if (event.type !== "click") return;
    menu.open = Boolean(menu.children[1]);
    if (!menu.open) notices.failToLoad();
  }

  // One that opens, or grows, at the edge of what scrolls is brought into sight.
  function bringIntoSight({ target }) {
    if (target.open) target.closest("details.menu")?.querySelector(".menu-items")?.scrollIntoView({ block: "nearest" });
  }

  document.addEventListener("toggle", bringIntoSight, true);
  for (const name of ["focusin", "click"]) document.addEventListener(name, load);
  document.addEventListener("click", closeOthers);
  document.addEventListener("focusin", closeOthers);

  // The innermost thing that is open takes the key; what lies behind it stays.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || document.querySelector("dialog[open]") || !document.querySelector(OPEN)) return;
    event.stopImmediatePropagation();
    for (const menu of document.querySelectorAll(OPEN)) close(menu);
  });
  document.addEventListener("htmx:afterRequest", ({ target, detail }) => {
    const menu = target.closest("details.message-menu, details.rename");
    if (menu?.querySelector(".form-error")) return;
    if (menu && (detail.successful || menu.matches(".message-menu"))) close(menu);
  });

  // After the list is redrawn: back to the same row, or to what undoes the action.
  let row = null;

  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    const isList = detail.target.id === "conversation-list" && detail.target.contains(document.activeElement);
    row = isList ? document.activeElement.closest(".row")?.querySelector("a")?.getAttribute("href") || "" : null;
  });
  document.addEventListener("htmx:afterSettle", () => {
    const list = document.getElementById("conversation-list");
    if (row === null || !list || list.contains(document.activeElement)) return;
    const same = list.querySelector(row ? `.row > a[href="${row}"]` : ".undo button, .pick-switch");
    (same || list.querySelector(".undo button") || document.getElementById("search"))?.focus();
    row = null;
  });
})();
