/* Pieces of code that are long or can be shown; dress.js, loaded with the first, does it. */
(() => {
  const load = onFirstUse("blocks");
  // With what other apps draw (dress.js).
  const drawn = [...document.querySelectorAll("[data-draws]")].map(({ dataset }) => dataset.draws);
  const isShown = new RegExp(`language-(${["svg", "x?html", "xml", ...drawn].join("|")})\\b`);
  let dress = null;
  // One with an id is still being written.
  const isDue = (code) => !code.id && (isShown.test(code.className) || code.textContent.split("\n", 42).length > 41);

  function take(codes) {
    const due = codes.filter(isDue);
    if (dress) due.forEach(dress);
    else if (due.length) load().then(begin, () => {});
  }

  // From here on all are dressed, so that what is drawn again equals what is shown.
  function begin(found) {
    if (dress) return;
    ({ dress } = found);
    take([...document.querySelectorAll(".code code")]);
  }

  document.addEventListener("code:decorated", ({ detail }) => take(detail));
})();
