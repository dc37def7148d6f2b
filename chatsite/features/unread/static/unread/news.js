/* What unread.js loads. A conversation with news has a dot in the list, and counts in the
 * tab's title. What has just come is a notification where they are allowed and the page is
 * hidden; what needs the user's answer is a notice, too. */
// Another page that shows the conversation says so within this time.
const WAIT_MS = 1_000;
const OFFERED = "notify-offered";
const own = /\/c\/([\w-]+)\//.exec(location.pathname)?.[1];
const isSeen = ({ dataset }) => dataset.conversation === own && !document.hidden;
const all = () => [...document.querySelectorAll("#unread a")];
const links = () => all().filter((link) => !isSeen(link));
const known = new Set();
let count = "";
let shown = null;

export function show(isNews = false) {
  take(document.getElementById("unread-now"));
  const fresh = links().map(({ href }) => href).filter((href) => !known.has(href));
  for (const href of fresh) known.add(href);
  draw();
  if (isNews && fresh.length) setTimeout(() => links().filter(({ href }) => fresh.includes(href)).forEach(announce), WAIT_MS);
  look();
}

/* Once: who does not want it is not asked again. */
export function offer() {
  if (localStorage.getItem(OFFERED)) return;
  localStorage.setItem(OFFERED, "1");
  notices.tell(document.getElementById("notify-offer").content.cloneNode(true));
}

/* What came of one conversation: its newest turn, or that all was looked at. */
function take(now) {
  const { conversation } = now.dataset;
  if (!conversation) return;
  const isOver = !now.firstElementChild;
  for (const link of all()) {
    if (link.dataset.conversation === conversation && (isOver || "turn" in link.dataset)) link.remove();
  }
  document.getElementById("unread").append(...now.children);
  delete now.dataset.conversation;
}

function draw() {
  const unread = new Map(links().map(({ dataset }) => [dataset.conversation, dataset.said]));
  for (const title of document.querySelectorAll(".row .title")) {
    const said = unread.get(title.id.slice(6));
    if (said) title.dataset.unread = said;
    else delete title.dataset.unread;
  }
  const before = count;
  count = unread.size ? `(${unread.size}) ` : "";
  if (document.title.startsWith(before)) document.title = document.title.slice(before.length);
  document.title = count + document.title;
  if (!count) {
    shown?.close();
    shown = null;
    known.clear();
  }
}

function announce(link) {
  const asks = "asks" in link.dataset;
  if (!document.hidden && asks) notices.tell(link.cloneNode(true));
  if (!(document.hidden || asks) || document.documentElement.dataset.notify !== "granted") return;
  // One for all tabs.
  shown = new Notification(link.textContent, { tag: link.href, icon: document.querySelector("link[rel=icon]").href });
  shown.addEventListener("click", () => {
    focus();
    location.assign(link.href);
  });
}

// The server notifies all pages of the user.
function look() {
  if (all().some(isSeen)) htmx.trigger("#seen", "seen");
}

document.addEventListener("visibilitychange", () => {
  draw();
  look();
});
document.addEventListener("htmx:oobAfterSwap", ({ detail }) => {
  if (/^(unread|(conversation-)?title)/.test(detail.target.id)) draw();
});
document.addEventListener("htmx:afterSwap", ({ target }) => target.id === "conversation-list" && draw());
