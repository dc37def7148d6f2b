/* Pieces of code get the name of their language, a copy button and colours. What makes
 * the colours is loaded with the first piece that has a language (colours.js). */
const code = (() => {
  const label = document.body.dataset.copyLabel || "Copy";
  const load = onFirstUse("code");
  const PIECES = ".body pre:not(.wrap) > code:not(.math), .summary-text pre:not(.wrap) > code:not(.math)";
  let colour = null;

  function languageOf(code) {
    return /language-([\w+#.-]+)/.exec(code.className)?.[1] || "";
  }

  function decorate(code) {
    const pre = code.parentElement;
    const box = document.createElement("div");
    const head = document.createElement("div");
    const button = document.createElement("button");
    box.className = "code";
    head.className = "code-head";
    head.append(Object.assign(document.createElement("span"), { textContent: languageOf(code) }), button);
    Object.assign(button, { type: "button", className: "quiet", textContent: label });
    button.dataset.copyCode = "";
    pre.replaceWith(box);
    box.append(head, pre);
  }

  function colourAll(codes) {
    for (const code of codes) colour(code, languageOf(code));
  }

  function decorateAll(root) {
    const fresh = [...root.querySelectorAll(PIECES)].filter((code) => !code.closest(".code"));
    fresh.forEach(decorate);
    document.dispatchEvent(new CustomEvent("code:decorated", { detail: fresh }));
    // One with an id is still being written.
    const due = fresh.filter((code) => languageOf(code) && !code.id);
    if (colour) colourAll(due);
    else if (due.length) load().then(begin, () => {}); // it is read without colours, too
  }

  // From here on all have them, so that what is drawn again equals what is shown.
  function begin(colours) {
    if (colour) return;
    ({ colour } = colours);
    colourAll(document.querySelectorAll(".code code[class*='language-']:not([id])"));
  }

  document.addEventListener("htmx:load", ({ target }) => decorateAll(target.parentNode || document));
  decorateAll(document);

  return { decorate: decorateAll };
})();
