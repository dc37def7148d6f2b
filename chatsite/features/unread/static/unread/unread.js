/* What was not looked at; news.js shows it. Whether notifications are allowed is asked by
 * a button only, also after a reply to a page that was hidden. */
(() => {
  const load = onFirstUse("unread");
  const use = (act) => load().then(act, () => {});
  const { dataset } = document.documentElement;
  const note = () => { dataset.notify = window.Notification?.permission; };
  let wasBusy = false;

  document.addEventListener("click", ({ target }) => target.closest("[data-notify][type]") && Notification.requestPermission().then(note));
  document.addEventListener("htmx:oobAfterSwap", ({ target }) => /^unread/.test(target.id) && use(({ show }) => show(true)));
  document.addEventListener("visibilitychange", () => {
    if (wasBusy && dataset.notify === "default") use(({ offer }) => offer());
    wasBusy = document.hidden && document.querySelector(".turn[data-state=running]");
  });
  note();
  if (document.querySelector("#unread a")) use(({ show }) => show());
})();
