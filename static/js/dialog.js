/* The one dialog of the page, and the notice that says what an act has done. */
(() => {
  const dialog = document.getElementById("dialog");
  const body = document.getElementById("dialog-body");
  const NOTICE_MS = 15_000;
  const notice = document.getElementById("notice");

  function showError(text) {
    let line = body.querySelector(".dialog-error");
    if (!line) {
      line = document.createElement("p");
      line.className = "dialog-error";
      line.setAttribute("role", "alert");
      body.querySelector("h2").after(line);
    }
    line.textContent = text;
  }

  // A notice goes by itself, but not while somebody is about to use it.
  let hiding = 0;

  function hideLater() {
    clearTimeout(hiding);
    hiding = setTimeout(() => {
      if (notice.matches(":hover, :focus-within")) hideLater();
      else notice.replaceChildren();
    }, NOTICE_MS);
  }

  function announce() {
    if (!dialog.open) hideLater();
    else if (notice.querySelector("[role=alert]")) showError(notice.querySelector("p").textContent);
    else dialog.close();
  }

  for (const failure of ["htmx:sendError", "htmx:responseError"]) {
    document.addEventListener(failure, () => dialog.open && showError(dialog.dataset.failed));
  }
  document.addEventListener("htmx:afterSwap", ({ target }) => {
    if (target === notice) announce();
    if (target !== body) return;
    if (!dialog.open) dialog.showModal();
    (body.querySelector("textarea") || body.querySelector(".primary, button"))?.focus();
  });
  document.addEventListener("htmx:afterRequest", ({ target }) => {
    target.closest("details.message-menu")?.removeAttribute("open");
  });
  document.addEventListener("click", ({ target }) => {
    if (target.closest("[data-close-dialog]") || target === dialog) dialog.close();
    if (target.closest("[data-close-notice]")) notice.replaceChildren();
  });
  dialog.addEventListener("close", () => {
    body.replaceChildren();
    hideLater();
  });
})();
