/* What is done with the list: keys that step in it, ranges of boxes, and what takes
 * conversations that are dropped on it. The list has it loaded (first-use.js). */
const on = (name, act) => document.addEventListener(name, act);
const boxes = () => [...document.querySelectorAll(".pick")];
const chosen = () => boxes().filter((box) => box.checked);
// The box of the last click; what is dragged, and what it is over.
let last, dragged, over;

on("click", ({ target, shiftKey }) => {
  if (!target.matches?.(".pick, #several-all")) return;
  const all = boxes();
  const to = all.indexOf(target);
  const from = shiftKey ? all.indexOf(last) : to;
  all.forEach((box, n) => {
    if (to < 0 ? n < target.dataset.most : (n - from) * (n - to) <= 0) box.checked = target.checked;
  });
  last = target;
  document.getElementById("several-count").textContent = chosen().length;
});

function aim(target) {
  over?.classList.remove("over");
  over = target;
  over?.classList.add("over");
}

on("dragstart", ({ target }) => {
  const row = target.closest?.(".row");
  dragged = row && (row.querySelector(":checked") ? chosen().map((box) => box.value) : row.querySelector(".title").id.slice(6));
});
on("dragover", (event) => {
  aim(dragged && event.target.closest?.("[data-give]"));
  if (over) event.preventDefault();
});
on("dragend", () => aim());
on("drop", (event) => {
  if (!over) return;
  event.preventDefault();
  htmx.ajax("POST", over.dataset.give, { source: over, event, values: { conversation: dragged } });
});

// In the list: down from the search to what it has found, and back; Enter opens the first.
function stepInList(event) {
  const { key, target } = event;
  const list = document.getElementById("conversation-list");
  const stops = [document.getElementById("search"), ...list.querySelectorAll("li > a")];
  const isFound = target === stops[0] && target.value.trim() && target.value.trim() === list.dataset.query;
  const by = { ArrowDown: 1, ArrowUp: -1, Enter: isFound ? 1 : 0 }[key];
  const next = stops[stops.indexOf(target) + by];
  if (!by || !next || !stops.includes(target) || event.altKey || event.isComposing) return;
  event.preventDefault();
  if (key === "Enter") next.click();
  else next.focus();
}

document.getElementById("search").closest("nav, section").addEventListener("keydown", stepInList);
