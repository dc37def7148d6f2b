/* The list of conversations beside the page. Where there is no room it lies over the
 * page, which rests until it is closed. */
(() => {
  const page = document.querySelector("main");
  const opener = document.getElementById("open-sidebar");
  const isWide = matchMedia("(width >= 68.75em)");

  function show(open) {
    if (document.body.classList.contains("list-open") === open) return;
    document.body.classList.toggle("list-open", open);
    opener.setAttribute("aria-expanded", open);
    page.inert = open;
    (open ? document.querySelector("[data-close-sidebar]") : opener).focus();
  }

  isWide.addEventListener("change", () => isWide.matches && show(false));
  document.addEventListener("click", ({ target }) => {
    if (target.closest("#open-sidebar")) show(true);
    else if (target.closest("[data-close-sidebar]")) show(false);
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, textarea, select");
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      if (!isWide.matches) show(true);
      document.getElementById("search").focus();
    } else if (event.key === "Escape" && !document.querySelector("dialog[open]")) show(false);
  });
})();
