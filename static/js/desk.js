/* The right pane as a desk: texts are written where they stand, and messages are dropped on
 * the pinned ones. Loaded when the pane is first used (first-use.js). */
const context = document.getElementById("context");
const splitter = document.getElementById("splitter");
const PINS = "[data-drop=pin]";
const STEP = 20;

const keyed = (key) => context.querySelector(`[data-key="${key}"]`);

/* The pane is as wide as its edge is dragged or moved by keys, on later pages, too. */
const widthOf = () => Math.round(context.getBoundingClientRect().width);
const [least, most] = [splitter.ariaValueMin, splitter.ariaValueMax].map(Number);

function resize(wanted) {
  const width = Math.min(Math.max(wanted, least), most, innerWidth / 2);
  splitter.parentElement.style.setProperty("--beside", `${width}px`);
  splitter.ariaValueNow = widthOf();
  localStorage.setItem("pane-width", width);
}

splitter.ariaValueNow = widthOf();
splitter.addEventListener("pointerdown", ({ pointerId }) => splitter.setPointerCapture(pointerId));
splitter.addEventListener("pointermove", ({ pointerId, clientX }) => {
  if (splitter.hasPointerCapture(pointerId)) resize(context.getBoundingClientRect().right - clientX);
});
splitter.addEventListener("keydown", (event) => {
  const wanted = { ArrowLeft: widthOf() + STEP, ArrowRight: widthOf() - STEP, Home: least, End: most }[event.key];
  if (!wanted) return;
  event.preventDefault();
  resize(wanted);
});

/* A text is written in place of what is shown of it; resolves with its field. */
export function write(shown) {
  // The pane may have been drawn again meanwhile.
  const part = shown.isConnected ? shown : keyed(shown.dataset.key);
  if (!part || part.querySelector(".writing")) return Promise.resolve();
  const place = part.appendChild(document.createElement("div"));
  place.className = "writing";
  return htmx.ajax("GET", part.dataset.edit, { source: place, target: place, swap: "innerHTML" }).then(() => {
    const box = place.querySelector("textarea");
    part.classList.add("is-written");
    box?.focus();
    return box;
  });
}

function leave(form) {
  form.closest(".is-written")?.classList.remove("is-written");
  form.closest(".writing").remove();
}

const isChanged = (form) => [...form.querySelectorAll("textarea, input")].some((field) => field.value !== field.defaultValue);

context.addEventListener("click", ({ target }) => target.closest("[data-leave]") && leave(target.closest("form")));

context.addEventListener("keydown", (event) => {
  const form = event.target.closest(".in-place");
  if (!form) return;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  else if (event.key === "Escape" && !isChanged(form)) leave(form);
  else return;
  event.preventDefault();
  event.stopPropagation();
});

// What is being written stays when the pane is drawn again, also if its part is gone.
let written = [];

context.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (detail.target !== context) return;
  written = [...context.querySelectorAll(".writing")].map((place) => [place, place.closest("[data-key]").dataset.key, document.activeElement]);
});
context.addEventListener("htmx:afterSwap", ({ detail }) => {
  if (detail.target !== context) return;
  for (const [place, key, focused] of written) {
    const part = keyed(key) || (isChanged(place) && document.getElementById("context-body"));
    if (!part) continue;
    part.append(place);
    part.classList.add("is-written");
    part.closest("details")?.setAttribute("open", "");
    if (place.contains(focused)) focused.focus();
  }
  written = [];
});

// The question is asked again with all that stands in the pane: what is being written is
// stored first. `asks`: the address that asks once it is.
let asks = "";

function askAgain() {
  const form = [...context.querySelectorAll(".in-place")].find(isChanged);
  if (form) return form.requestSubmit();
  // After the switches that are on their way.
  htmx.ajax("POST", asks, { source: context, target: "#turns", swap: "beforeend" });
  asks = "";
}

context.addEventListener("htmx:confirm", (event) => {
  if (!event.target.matches("#desk .primary")) return;
  event.preventDefault();
  asks = event.detail.path;
  askAgain();
});

// It is stored: the pane is drawn again with it. After a refusal it stays.
context.addEventListener("htmx:afterRequest", ({ target, detail }) => {
  if (!target.matches(".in-place")) return;
  const isRefused = document.querySelector("#notice [role=alert]");
  if (!detail.successful || isRefused) asks = "";
  else leave(target);
  if (asks) askAgain();
});

// A message that is dropped on the pinned ones is pinned: it is dragged by its number.
let dragged = "";

document.addEventListener("dragstart", ({ target }) => {
  dragged = target.closest?.("a.seq")?.hash.replace("#message-", "") || "";
  context.classList.toggle("is-dropping", Boolean(dragged));
});
document.addEventListener("dragend", () => context.classList.remove("is-dropping"));
context.addEventListener("dragover", (event) => {
  if (dragged && event.target.closest(PINS)) event.preventDefault();
});
context.addEventListener("drop", (event) => {
  const place = event.target.closest(PINS);
  if (!place || !dragged) return;
  event.preventDefault();
  htmx.ajax("POST", context.dataset.pin.replace("/1/", `/${dragged}/`), { source: context, target: "#notice", swap: "innerHTML" });
});

// The words that only one of two answers has are marked, without a change of the page.
const WORD = /[\p{L}\p{N}]+/gu;
const differing = window.Highlight && new Highlight();
if (differing) CSS.highlights.set("differs", differing);

function wordsOf(side) {
  const texts = document.createTreeWalker(side, NodeFilter.SHOW_TEXT);
  const words = [];
  while (texts.nextNode()) for (const { 0: word, index } of texts.currentNode.data.matchAll(WORD)) words.push({ word, node: texts.currentNode, index });
  return words;
}

function markDifferences(beside) {
  const [given, other] = [...beside.querySelectorAll(".body")].map(wordsOf);
  for (const [some, rest] of [[given, other || []], [other || [], given]]) {
    const known = new Set(rest.map(({ word }) => word));
    for (const { word, node, index } of some.filter((each) => !known.has(each.word))) {
      const range = new Range();
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      differing?.add(range);
    }
  }
}

// A sync draws the turns only: the answer beside one stays while its turn does.
document.addEventListener("htmx:oobBeforeSwap", ({ detail: { fragment } }) => {
  if (fragment.id !== "turns") return;
  for (const beside of document.querySelectorAll(".beside")) {
    fragment.querySelector(`#${beside.previousElementSibling.id}`)?.after(beside.cloneNode(true));
  }
}, true);

// Without an answer there is no such rule: it makes every change of the transcript slow.
const hiding = new CSSStyleSheet();
document.adoptedStyleSheets.push(hiding);

/* One answer is beside its reply, also if that is not the last one any more. */
function putBelow(beside) {
  for (const other of document.querySelectorAll(".beside")) if (other !== beside) other.remove();
  const turn = document.querySelector(`.turn:has(#message-${beside.dataset.reply})`);
  if (turn && turn !== beside.previousElementSibling) turn.after(beside);
  hiding.replaceSync(`#${beside.previousElementSibling.id}:has(+ .beside) > .message.assistant:last-of-type { display: none }`);
}

// The answer beside a reply comes into sight, and goes with its button.
document.addEventListener("htmx:load", ({ target }) => {
  const beside = target.closest(".beside");
  if (!beside) return;
  if (beside === target) putBelow(beside);
  beside.scrollIntoView({ block: "nearest" });
  if (!beside.querySelector("[aria-busy]")) markDifferences(beside);
});
document.addEventListener("click", ({ target }) => {
  if (!target.closest("[data-close-beside]")) return;
  target.closest(".beside").remove();
  hiding.replaceSync("");
});
