/* What reminders.js loads. A reminder that was not looked at is a dot in the list and a
 * number in the tab's title; one that has just come is a notice, or a notification where
 * they are allowed, unless its conversation is being looked at. */
const own = /\/c\/([\w-]+)\//.exec(location.pathname)?.[1];
const links = () => [...document.querySelectorAll("#unread a")];
const known = new Set();
let count = "";
let shown = null;

export function show(isNews) {
  const fresh = links().filter(({ href }) => !known.has(href));
  for (const link of fresh) known.add(link.href);
  draw();
  if (isNews) fresh.forEach(announce);
  look();
}

function draw() {
  const unread = new Set(links().map(({ dataset }) => dataset.conversation));
  for (const title of document.querySelectorAll(".row .title")) {
    if (unread.has(title.id.slice(6))) title.dataset.unread = document.getElementById("unread").dataset.said;
    else delete title.dataset.unread;
  }
  const before = count;
  count = links().length ? `(${links().length}) ` : "";
  if (document.title.startsWith(before)) document.title = document.title.slice(before.length);
  document.title = count + document.title;
  if (!count) {
    shown?.close();
    shown = null;
  }
}

const isSeen = ({ dataset }) => dataset.conversation === own && !document.hidden;

function announce(link) {
  if (isSeen(link)) return;
  if (!document.hidden) notices.tell(link.cloneNode(true));
  if (document.documentElement.dataset.notify !== "granted") return;
  // One for all tabs.
  shown = new Notification(link.textContent, { tag: link.href, icon: document.querySelector("link[rel=icon]").href });
  shown.addEventListener("click", () => {
    focus();
    location.assign(link.href);
  });
}

// The server tells all pages of the person.
function look() {
  if (links().some(isSeen)) htmx.trigger("#seen", "seen");
}

document.addEventListener("visibilitychange", look);
document.addEventListener("htmx:oobAfterSwap", ({ detail }) => {
  if (detail.target.id === "unread" || /^(conversation-)?title/.test(detail.target.id)) draw();
});
document.addEventListener("htmx:afterSwap", ({ target }) => target.id === "conversation-list" && draw());
