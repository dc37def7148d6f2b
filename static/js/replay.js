/* The replay: both panes as they stood at an earlier reply, one by one or as a film.
 * context.js loads this when it is first asked for. */
const page = document.getElementById("conversation");
const scroller = document.getElementById("transcript");
const replay = document.getElementById("replay");
const replayed = document.getElementById("replayed");
const slider = document.getElementById("moment");
const play = document.getElementById("replay-play");
const fast = document.getElementById("replay-fast");
const MOMENT_MS = 120;
const FRAME_MS = 17;
// Of the film: how long each moment stands.
const STEP_MS = 1600;
const FAST = 4;

// The replies to choose from, oldest first.
let replies = [];
let moving = 0;
let before = 0; // where the transcript was
let isPlaying = false;
let next = 0;

/* Shows the moment of this reply; without one, that of the newest, for the keyboard. */
export function start(seq) {
  replies = [...document.getElementById("shown-reply").options].map(({ value }) => value).filter(Boolean).reverse();
  if (!replies.length || (seq && !replies.includes(seq))) return;
  before = scroller.scrollTop;
  slider.max = replies.length - 1;
  slider.value = seq ? replies.indexOf(seq) : slider.max;
  replay.hidden = false;
  if (!seq) slider.focus();
  show();
}

function show() {
  const seq = replies[slider.value];
  page.dataset.replaying = seq;
  replay.elements.reply.value = seq;
  const output = replay.querySelector("output");
  output.value = `${output.dataset.text} #${seq} · ${Number(slider.value) + 1} / ${replies.length}`;
  slider.setAttribute("aria-valuetext", output.value);
  setAddress(`${replay.dataset.address}${seq}`);
  htmx.trigger(replay, "moment");
}

// What stands as before stays the very same: only new messages are laid out and painted.
const drawn = new WeakMap();

function drawMessages(fresh) {
  const known = new Map([...replayed.children].map((node) => [drawn.get(node), node]));
  const wanted = [...fresh].map((node) => {
    drawn.set(node, node.outerHTML);
    return known.get(drawn.get(node)) || node;
  });
  for (const node of known.values()) if (!wanted.includes(node)) node.remove();
  wanted.forEach((node, index) => {
    if (replayed.children[index] !== node) replayed.insertBefore(node, replayed.children[index]);
  });
  // Once for all: its listeners look at its siblings, too.
  htmx.trigger(replayed.lastElementChild, "htmx:load");
  scroller.scrollTop = scroller.scrollHeight;
}

// So do the nodes of the right pane: those that differ are changed.
function drawSame(old, fresh) {
  const [shown, wanted] = [[...old.childNodes], [...fresh.childNodes]];
  wanted.forEach((node, index) => {
    const same = shown[index];
    if (!same) old.append(node);
    else if (same.nodeName !== node.nodeName || same.id !== node.id) same.replaceWith(node);
    else if (same.nodeType !== Node.ELEMENT_NODE) same.data = node.data;
    else if (!same.isEqualNode(node)) {
      for (const { name } of [...same.attributes]) if (!node.hasAttribute(name)) same.removeAttribute(name);
      for (const { name, value } of node.attributes) same.setAttribute(name, value);
      drawSame(same, node);
    }
  });
  for (const node of shown.slice(wanted.length)) node.remove();
  return [...old.children];
}

htmx.defineExtension("same", {
  isInlineSwap: (style) => style === "same",
  handleSwap: (style, target, fragment) => style === "same" && drawSame(target, fragment),
});

// On a page that others may read, so that a copied address opens the same moment.
function setAddress(address) {
  if (replay.dataset.address) history.replaceState(history.state, "", address);
}

// A moment stands its time from when both panes show it; the last one ends the film.
function playOn() {
  clearTimeout(next);
  if (!isPlaying) return;
  if (slider.value === slider.max) return setPlaying(false);
  next = setTimeout(() => {
    slider.stepUp();
    show();
  }, STEP_MS / (fast.ariaPressed === "true" ? FAST : 1));
}

function setPlaying(on) {
  if (on === isPlaying) return;
  isPlaying = on;
  [play.textContent, play.dataset.pause] = [play.dataset.pause, play.textContent];
  if (!on) return clearTimeout(next);
  if (slider.value !== slider.max) return playOn();
  slider.value = 0;
  show();
}

function end() {
  if (replay.hidden) return;
  setPlaying(false);
  setAddress(location.pathname);
  const wasInside = replay.contains(document.activeElement);
  replay.hidden = true;
  if (wasInside) document.getElementById("replay-start")?.focus();
  delete page.dataset.replaying;
  replayed.replaceChildren();
  scroller.scrollTop = before;
  htmx.ajax("GET", document.getElementById("draft").dataset.now, { target: "#context", swap: "innerHTML show:none" });
}

slider.addEventListener("input", () => {
  clearTimeout(moving);
  moving = setTimeout(show, MOMENT_MS);
});
play.addEventListener("click", () => setPlaying(!isPlaying));
fast.addEventListener("click", () => {
  fast.ariaPressed = fast.ariaPressed !== "true";
  if (isPlaying) playOn();
});
document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => {
  if (detail.target !== replayed) return;
  detail.shouldSwap = false;
  // Not in the frame of the other pane.
  setTimeout(() => replay.hidden || drawMessages(detail.fragment.children), FRAME_MS);
});
document.addEventListener("htmx:afterSettle", ({ target }) => target.id === "context" && playOn());
replay.addEventListener("htmx:afterRequest", ({ detail }) => detail.successful || setPlaying(false));
document.getElementById("replay-end").addEventListener("click", end);
document.addEventListener("composer:sent", end);
document.addEventListener("keydown", ({ key }) => key === "Escape" && !document.querySelector("dialog[open]") && end());
