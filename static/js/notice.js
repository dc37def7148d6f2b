/* The notice that says what an action has done, or that it did not get through. */
const notices = (() => {
  const notice = document.getElementById("notice");
  if (!notice) return null;
  const SHOWN_MS = 15_000;
  // Events that start a request of the user; the page's own requests show no notice.
  const ACTS = ["click", "submit", "change", "toggle", "drop"];
  const words = document.body.dataset;

  // It goes by itself, but not while it is about to be used. What it offers to undo,
  // Alt+Z still does.
  let hiding = 0;

  function hideLater() {
    clearTimeout(hiding);
    hiding = setTimeout(() => {
      if (notice.matches(":hover, :focus-within")) hideLater();
      else notice.dataset.past = "";
    }, SHOWN_MS);
  }

  function announce() {
    const isError = Boolean(notice.querySelector("[role=alert]"));
    const text = notice.querySelector("p")?.textContent || "";
    document.dispatchEvent(new CustomEvent("notice", { detail: { text, isError } }));
    delete notice.dataset.past;
    hideLater();
  }

  function tell(said, role = "status") {
    const line = document.createElement("p");
    line.role = role;
    line.append(said);
    notice.replaceChildren(line);
    announce();
  }

  const fail = (text) => tell(text, "alert");

  function isAct({ requestConfig }) {
    return ACTS.includes(requestConfig?.triggeringEvent?.type);
  }

  for (const lost of ["htmx:sendError", "htmx:timeout"]) {
    document.addEventListener(lost, ({ detail }) => isAct(detail) && fail(words.offline));
  }
  document.addEventListener("htmx:responseError", ({ detail }) => {
    const said = { 404: words.gone, 429: words.tooMuch };
    if (isAct(detail)) fail(said[detail.xhr.status] || words.failed);
  });
  document.addEventListener("htmx:afterSwap", ({ target }) => target === notice && announce());
  // The event of one part of an answer reaches the targets of all its parts.
  document.addEventListener("htmx:oobAfterSwap", ({ detail }) => detail.target === notice && announce());
  document.addEventListener("click", ({ target }) => {
    if (target.closest("[data-close-notice]")) notice.replaceChildren();
  });
  document.addEventListener("keydown", (event) => {
    const undo = notice.querySelector("form button");
    if (!undo || !event.altKey || event.code !== "KeyZ" || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    undo.click();
  });

  return { tell, failToLoad: () => fail(words.notLoaded) };
})();
