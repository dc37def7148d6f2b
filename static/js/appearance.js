/* Cookies that the server reads: the theme, chosen without a reload, and the time zone. */
const appearance = (() => {
  const root = document.documentElement;
  const YEAR = 365 * 24 * 3600;

  function keep(name, value) {
    const secure = location.protocol === "https:" ? "; secure" : "";
    document.cookie = `${name}=${value}; path=/; max-age=${YEAR}; samesite=lax${secure}`;
  }

  function kept(name) {
    return document.cookie.split("; ").find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1);
  }

  function show(theme) {
    root.dataset.theme = theme;
    for (const button of document.querySelectorAll("[name=theme]")) {
      button.setAttribute("aria-pressed", button.value === theme);
    }
  }

  document.addEventListener("submit", (event) => {
    if (!event.target.matches(".theme-choice")) return;
    event.preventDefault();
    const theme = event.submitter.value;
    keep("theme", theme);
    // The administration keeps its own, under this name and with these words.
    localStorage.setItem("theme", theme === "system" ? "auto" : theme);
    show(theme);
  });

  // Chosen in another tab, or before this page was gone back to.
  function follow() {
    const theme = kept("theme");
    if (theme && theme !== root.dataset.theme && !document.hidden) show(theme);
  }

  document.addEventListener("visibilitychange", follow);
  addEventListener("pageshow", follow);
  keep("time_zone", Intl.DateTimeFormat().resolvedOptions().timeZone);

  return { keep };
})();
