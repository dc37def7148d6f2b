/* Reminders that were not looked at; what shows them is loaded with the first (unread.js).
 * Whether notifications are allowed is asked by a button only. */
(() => {
  const load = onFirstUse();
  const show = (isNews) => document.querySelector("#unread a") && load().then((unread) => unread.show(isNews), () => {});
  const note = () => { document.documentElement.dataset.notify = window.Notification?.permission; };

  document.addEventListener("click", ({ target }) => target.closest("button[data-notify]") && Notification.requestPermission().then(note));
  document.addEventListener("htmx:oobAfterSwap", ({ target }) => target.id === "unread" && show(true));
  note();
  show(false);
})();
