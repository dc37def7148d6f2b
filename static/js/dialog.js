/* The one dialog of the page opens with what is loaded into it. All that it does is loaded
 * with the first (open-dialog.js). */
(() => {
  const load = onFirstUse("dialog");

  function open({ target }) {
    if (target.id !== "dialog-body") return;
    const focused = document.activeElement;
    load().then(({ show }) => {
      document.removeEventListener("htmx:afterSwap", open);
      show(focused);
    }, notices.failToLoad);
  }

  document.addEventListener("htmx:afterSwap", open);
})();
