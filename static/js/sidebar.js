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

  // Where there is room, it is folded until it is asked for again, on later pages, too.
  function fold(folded) {
    document.body.classList.toggle("list-folded", folded);
    opener?.setAttribute("aria-expanded", !folded);
    if (folded) localStorage.setItem("list-folded", "1");
    else localStorage.removeItem("list-folded");
  }

  const toggle = (open) => isWide.matches ? fold(!open) : show(open);
  const isOpen = () => document.getElementById("sidebar").checkVisibility({ visibilityProperty: true });

  if (localStorage.getItem("list-folded")) fold(true);
  isWide.addEventListener("change", () => isWide.matches && show(false));
  document.addEventListener("click", ({ target }) => {
    if (target.closest("#open-sidebar")) toggle(true);
    else if (target.closest("[data-close-sidebar]")) toggle(false);
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, textarea, select");
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      toggle(true);
      document.getElementById("search").focus();
    } else if (event.ctrlKey && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "b") {
      event.preventDefault();
      toggle(!isOpen());
    } else if (event.key === "Escape" && !document.querySelector("dialog[open]")) show(false);
  });
})();
