/* Shows times in the reader's own zone, and in the language of the page. */
(() => {
  const lang = document.documentElement.lang;
  const base = (name) => name.split("-")[0];
  // The browser's own name for it knows the country, too.
  const locale = navigator.languages.find((name) => base(name) === base(lang)) || lang;
  const clock = { hour: "2-digit", minute: "2-digit" };
  const day = { day: "numeric", month: "short", ...clock };
  const dated = { ...day, year: "numeric" };

  // A date without a time is a day already, whatever the zone.
  function localise(root) {
    const now = new Date();
    for (const time of root.querySelectorAll("time[datetime*=T]:not([title])")) {
      const date = new Date(time.dateTime);
      if (Number.isNaN(date.getTime())) continue;
      const isThisYear = date.getFullYear() === now.getFullYear();
      const form = date.toDateString() === now.toDateString() ? clock : isThisYear ? day : dated;
      time.title = date.toLocaleString(locale);
      time.textContent = date.toLocaleString(locale, form);
    }
  }

  document.addEventListener("DOMContentLoaded", () => localise(document));
  document.addEventListener("htmx:load", (event) => localise(event.target.parentNode || document));
})();
