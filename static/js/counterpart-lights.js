/* What counterparts.js loads: a message and its counterpart on the other side light up
 * together, and what is new on the right comes from where it was. */
const left = document.getElementById("turns");
const right = document.getElementById("context");
const SOURCE = "[data-seq], [data-first]";

function rangeOf(element) {
  const { seq, first, last } = element.dataset;
  return seq ? [Number(seq), Number(seq)] : [Number(first), Number(last)];
}

// Left, the messages of a range; right, whatever overlaps it.
function counterpartsOf(source) {
  const side = left.contains(source) ? right : left;
  const [first, last] = rangeOf(source);
  return [...side.querySelectorAll(side === left ? ".message[data-seq]" : SOURCE)].filter((other) => {
    const [start, end] = rangeOf(other);
    return start <= last && first <= end;
  });
}

/* Pointing at a message on the rail lights its stretch: all that the same summary
 * covers, or all that are sent in full. */
function stretchOf(source) {
  const sheets = counterpartsOf(source).filter((other) => other.dataset.first);
  return [...sheets, ...sheets.flatMap(counterpartsOf)];
}

function isOnRail(source, x) {
  const { left: start, right: end } = source.getBoundingClientRect();
  return source.matches(".message") && x !== undefined && (x < start || x > end);
}

let source = null;
let isStretch = false;
let mouseX;
let counterparts = [];

function clear() {
  for (const counterpart of counterparts) counterpart.classList.remove("counterpart");
  source = null;
  counterparts = [];
}

// Every step of the mouse comes by here: within one message nothing changes.
export function show({ target, clientX }) {
  const found = target.closest?.(SOURCE) || null;
  mouseX = clientX;
  const isRail = found !== null && isOnRail(found, clientX);
  if (found && found === source && isRail === isStretch) return;
  clear();
  if (!found || !(left.contains(found) || right.contains(found))) return;
  source = found;
  isStretch = isRail;
  left.toggleAttribute("data-stretch", isRail);
  counterparts = (isRail ? stretchOf : counterpartsOf)(found);
  for (const counterpart of counterparts) counterpart.classList.add("counterpart");
}

for (const side of [left, right]) {
  side.addEventListener("mouseover", show);
  side.addEventListener("mousemove", show);
  side.addEventListener("focusin", show);
  side.addEventListener("mouseleave", clear);
  side.addEventListener("focusout", clear);
}

// What is redrawn, under the mouse or on the other side, lights up again.
function showAgain() {
  const target = source?.isConnected ? source : [...document.querySelectorAll(":hover")].pop();
  clear();
  if (target) show({ target, clientX: mouseX });
}

document.addEventListener("htmx:afterSwap", showAgain);
document.addEventListener("htmx:wsAfterMessage", () => {
  const isWhole = source?.isConnected && counterparts.every((counterpart) => counterpart.matches(".counterpart"));
  if (source && !isWhole) showAgain();
});

/* A message that is pinned flies to its sheet, those of a new summary fold into it, and a
 * summary with other words pulses. */
const isCalm = matchMedia("(prefers-reduced-motion: reduce)");
const FLIGHT_MS = 400;
const isPresent = () => document.getElementById("shown-reply")?.value === "";

// What the sheets are made of, by the messages that it is of: "summaries 1-26" → its text.
function readSheets() {
  const parts = right.querySelectorAll(":is(.part-summaries, .part-pinned) .glances > [data-first]");
  return new Map([...parts].map((part) => {
    const kind = part.closest(".part-pinned") ? "pinned" : "summaries";
    return [`${kind} ${part.dataset.first}-${part.dataset.last}`, part];
  }));
}

function fly(message, sheet, kind) {
  const [start, end] = [message, sheet].map((element) => element.getBoundingClientRect());
  if (!start.height || !end.height || start.bottom < 0 || start.top > innerHeight) return;
  const flight = document.body.appendChild(document.createElement("i"));
  flight.className = `flight flight-${kind}`;
  const at = ({ left, top, width, height }, opacity) =>
    ({ translate: `${left}px ${top}px`, width: `${width}px`, height: `${height}px`, opacity });
  flight.animate([at(start, 0.9), at(end, 0.2)], { duration: FLIGHT_MS, easing: "ease-in-out" }).onfinish = () => flight.remove();
}

function arrive(key, part, isNew) {
  const sheet = part.closest(".part");
  const [kind, range] = key.split(" ");
  sheet.classList.add("pulse");
  if (!isNew || isCalm.matches) return;
  const [first, last] = range.split("-").map(Number);
  for (const message of left.querySelectorAll(".message[data-seq]")) {
    const seq = Number(message.dataset.seq);
    if (first <= seq && seq <= last) fly(message, sheet, kind);
  }
}

let known = null;

document.addEventListener("htmx:beforeSwap", ({ target }) => {
  if (target === right) known = isPresent() ? new Map([...readSheets()].map(([key, part]) => [key, part.textContent])) : null;
});
document.addEventListener("htmx:afterSettle", ({ target }) => {
  if (target !== right || !known || !isPresent()) return;
  for (const [key, part] of readSheets()) if (known.get(key) !== part.textContent) arrive(key, part, !known.has(key));
});
