/* The replay: both panes as they stood at an earlier reply. context.js loads this when it
 * is first asked for. */
const page = document.getElementById("conversation");
const draft = document.getElementById("draft");
const scroller = document.getElementById("transcript");
const replay = document.getElementById("replay");
const slider = document.getElementById("moment");
const MOMENT_MS = 120;

// The replies to choose from, oldest first.
let replies = [];
let moving = 0;
let before = 0; // where the transcript was

export function start() {
  replies = [...document.getElementById("shown-reply").options].map((option) => option.value).filter(Boolean).reverse();
  if (!replies.length) return;
  before = scroller.scrollTop;
  slider.max = replies.length - 1;
  slider.value = slider.max;
  replay.hidden = false;
  slider.focus();
  show();
}

function show() {
  const seq = replies[slider.value];
  page.dataset.replaying = seq;
  replay.elements.reply.value = seq;
  const output = replay.querySelector("output");
  output.value = `${output.dataset.text} #${seq} · ${Number(slider.value) + 1} / ${replies.length}`;
  slider.setAttribute("aria-valuetext", output.value);
  htmx.trigger(replay, "moment");
}

function end() {
  if (replay.hidden) return;
  const wasInside = replay.contains(document.activeElement);
  replay.hidden = true;
  if (wasInside) document.getElementById("replay-start")?.focus();
  delete page.dataset.replaying;
  document.getElementById("replayed").replaceChildren();
  scroller.scrollTop = before;
  htmx.ajax("GET", draft.dataset.now, { target: "#context", swap: "innerHTML show:none" });
}

slider.addEventListener("input", () => {
  clearTimeout(moving);
  moving = setTimeout(show, MOMENT_MS);
});
document.getElementById("replay-end").addEventListener("click", end);
document.addEventListener("composer:sent", end);
document.addEventListener("keydown", ({ key }) => {
  if (key === "Escape" && !document.querySelector("dialog[open]")) end();
});
