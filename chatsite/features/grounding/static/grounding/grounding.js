/* Where the terms of a reply come from. Nothing is asked for before a reply, or its list in
 * the right pane, is looked at; then once for each, in idle time. */
const left = document.getElementById("turns");
const right = document.getElementById("context");
const idle = window.requestIdleCallback ?? setTimeout;
// Marks need no change of the page; a browser without them has the lists.
const marks = {};
for (const name of ["grounded", "nowhere", "origin", "lit"]) {
  marks[name] = window.Highlight ? new Highlight() : new Set();
  window.Highlight && CSS.highlights.set(name, marks[name]);
}
const lists = new Map();
let looked = null;
let terms = [];
let lit = null;
let places = [];
// What a click has lit stays so while the pointer moves on.
let isKept = false;

const escape = (text) => text.replace(/[^\p{L}\p{N}\s]/gu, "\\$&");

/* Ranges of these words in an element, whatever marks and tags are between them. */
function* findWords(root, words) {
  const parts = words.split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  const [start, end] = [/^[^\p{L}\p{N}]*/u, /[^\p{L}\p{N}]*$/u].map((each) => escape(each.exec(words)[0]));
  const middle = parts.join("[^\\p{L}\\p{N}]{1,4}");
  const pattern = new RegExp(`(?<![a-z0-9])${start}${middle}${end}(?![a-z0-9])`, "giu");
  const nodes = [];
  let text = "";
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    nodes.push([text.length, walker.currentNode]);
    text += walker.currentNode.data;
  }
  const nodeAt = (at) => nodes.findLast(([first]) => first <= at);
  for (const { 0: found, index } of parts.length ? text.matchAll(pattern) : []) {
    const [[first, from], [last, to]] = [nodeAt(index), nodeAt(index + found.length - 1)];
    const range = new Range();
    range.setStart(from, index - first);
    range.setEnd(to, index + found.length - last);
    yield range;
  }
}

function lineOf({ startContainer: node, startOffset: at }) {
  const line = new Range();
  const block = node.parentElement.closest("pre, p, li, td, th, h1, h2, h3, h4, q");
  if (block && !block.matches("pre")) line.selectNodeContents(block);
  else {
    const end = node.data.indexOf("\n", at);
    line.setStart(node, node.data.lastIndexOf("\n", at - 1) + 1);
    line.setEnd(node, end < 0 ? node.length : end);
  }
  return line;
}

function placeOf({ part, at }) {
  return [...right.querySelectorAll(`.part-${part}, .part-${part} [data-key="${at}"]`)].pop();
}

function clear() {
  if (isKept) return;
  marks.origin.clear();
  marks.lit.clear();
  for (const place of places) place.classList.remove("origin");
  [lit, places] = [null, []];
}

/* The term of a list lights up: in its reply, and where it comes from on both sides. */
function light(item) {
  if (item === lit) return;
  isKept = false;
  clear();
  lit = item;
  const body = left.querySelector(`#message-${item.closest("[data-reply]").dataset.reply} .body`);
  for (const range of body ? findWords(body, item.dataset.term) : []) marks.lit.add(range);
  for (const { dataset } of item.querySelectorAll("[data-at]")) {
    const { from, to, words } = dataset;
    const place = placeOf(dataset);
    const glances = place ? place.closest(".part").querySelectorAll(`.glances [data-first="${from}"][data-last="${to}"]`) : [];
    const said = from === to ? left.querySelector(`#message-${from}`) : null;
    if (place) places.push(place.closest("li, .summary-block") ?? place, ...glances);
    if (said) places.push(said);
    for (const root of [place, said?.querySelector(".body")].filter(Boolean)) {
      const range = findWords(root, words).next().value;
      if (range) marks.lit.add(range), marks.origin.add(lineOf(range));
    }
  }
  for (const place of places) place.classList.add("origin");
}

function read(seq) {
  if (!lists.has(seq)) {
    lists.set(seq, new Promise(idle).then(() => fetch(`${left.dataset.messages}${seq}/grounding/`)).then(async (response) => {
      if (!response.ok) throw response;
      const made = document.createElement("template");
      made.innerHTML = await response.text();
      return made.content.querySelector("ol");
    }).catch(() => void lists.delete(seq)));
  }
  return lists.get(seq);
}

async function look(message) {
  if (message === looked) return;
  clear();
  marks.grounded.clear();
  marks.nowhere.clear();
  [looked, terms] = [message, []];
  const list = message?.querySelector("[data-show-reply]") && await read(message.dataset.seq);
  if (looked !== message || !list) return;
  const body = message.querySelector(".body");
  for (const item of list.children) {
    for (const range of findWords(body, item.dataset.term)) {
      marks["nowhere" in item.dataset ? "nowhere" : "grounded"].add(range);
      terms.push({ range, item });
    }
  }
}

function termAt({ clientX: x, clientY: y }) {
  return terms.find(({ range }) => [...range.getClientRects()].some((box) => box.left <= x && x <= box.right && box.top <= y && y <= box.bottom))?.item;
}

const inWords = (item) => item.textContent.replace(/\s+/g, " ").trim();

left.addEventListener("pointermove", (event) => {
  look(event.target.closest(".message.assistant"));
  const item = termAt(event);
  if (item) light(item);
  else if (lit && left.contains(event.target)) clear();
  const body = looked?.querySelector(".body");
  if (body) body.title = item ? inWords(item) : "";
});
left.addEventListener("focusin", ({ target }) => look(target.closest(".message.assistant")));

// A click or a finger on a term says below the reply where it comes from.
left.addEventListener("click", async (event) => {
  const body = event.target.closest(".message.assistant .body");
  isKept = false;
  if (!body || event.target.closest("a, button") || !getSelection().isCollapsed) return;
  await look(body.parentElement);
  const item = termAt(event);
  left.querySelector("p.grounding")?.remove();
  if (!item) return;
  const line = Object.assign(document.createElement("p"), { className: "meta grounding", role: "status" });
  Object.assign(line.dataset, { reply: body.parentElement.dataset.seq, term: item.dataset.term });
  line.append(...item.cloneNode(true).childNodes);
  body.after(line);
  light(item);
});

for (const type of ["pointerover", "focusin"]) {
  right.addEventListener(type, ({ target }) => {
    const item = target.closest(".grounding li");
    if (item) light(item);
    else if (lit?.isConnected) clear();
  });
}

function open({ dataset }) {
  const place = placeOf(dataset);
  if (!place) return;
  const closed = [...place.querySelectorAll(":scope > details")];
  for (let put = place.closest("details"); put; put = put.parentElement.closest("details")) closed.push(put);
  // As a user opens them: a redraw of the pane opens them again.
  for (const put of closed) if (!put.open) put.querySelector(":scope > summary").click();
  place.scrollIntoView({ block: "center" });
}

function keepLit(item) {
  lit = null;
  light(item);
  isKept = true;
}

right.addEventListener("htmx:afterSettle", ({ target }) => {
  if (isKept && target === right) keepLit(lit);
});

document.addEventListener("click", (event) => {
  const link = event.target.closest(".grounding [data-at]");
  if (!link) return;
  event.preventDefault();
  const show = async () => {
    await addStyles(right.dataset.firstUse);
    open(link);
    keepLit(link.closest("[data-term]"));
  };
  if (right.contains(link)) return show();
  addEventListener("htmx:afterSettle", show, { once: true });
  left.querySelector(`#message-${link.closest("[data-reply]").dataset.reply} [data-show-reply]`).click();
});
