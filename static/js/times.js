/* Shows times in the reader's own zone and language. */
(() => {
  const clock = { hour: "2-digit", minute: "2-digit" };
  const day = { day: "numeric", month: "short", ...clock };

  function localise(root) {
    const today = new Date().toDateString();
    for (const time of root.querySelectorAll("time[datetime]:not([title])")) {
      const date = new Date(time.dateTime);
      if (Number.isNaN(date.getTime())) continue;
      const form = date.toDateString() === today ? clock : day;
      time.title = date.toLocaleString();
      time.textContent = date.toLocaleString(undefined, form);
    }
  }

  document.addEventListener("DOMContentLoaded", () => localise(document));
  document.addEventListener("htmx:load", (event) => localise(event.target.parentNode || document));
})();
