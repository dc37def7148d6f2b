/* Keeps the page steady while fragments arrive: scrolling, what is open, the queue. */
(() => {
  const scroller = document.getElementById("transcript");
  const jump = document.getElementById("jump");
  const turns = document.getElementById("turns");
  const edges = (element) => element.getBoundingClientRect();

  const NOTICE_PX = 72;

  // Scrolling: follow the end only while the reader is there.
  let follows = true;

  function isAtEnd() {
    return scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 60;
  }

  function settle() {
    if (follows) scroller.scrollTop = scroller.scrollHeight;
    jump.hidden = follows || isAtEnd();
  }

  function follow() {
    follows = true;
    settle();
  }

  scroller.addEventListener("scroll", () => {
    jump.hidden = follows = isAtEnd();
  }, { passive: true });
  jump.addEventListener("click", follow);
  document.addEventListener("composer:sent", follow);
  new MutationObserver(settle).observe(turns, {
    childList: true, subtree: true, characterData: true,
  });
  // A notice floats where nothing is; where the transcript leaves no room, it has a row.
  document.addEventListener("notice", () => {
    const isFull = scroller.scrollHeight > scroller.clientHeight || edges(turns).bottom > edges(scroller).bottom - NOTICE_PX;
    document.getElementById("conversation").toggleAttribute("data-full", isFull);
  });
  // A notice above it moves no text.
  let { top } = edges(scroller);
  new ResizeObserver(() => {
    const before = top;
    ({ top } = edges(scroller));
    if (!follows) scroller.scrollTop += top - before;
    settle();
  }).observe(scroller);
  follows = !location.hash;
  settle();

  // Which parts the user opened or closed, kept when their section is redrawn.
  const opened = new Map();

  document.addEventListener("click", ({ target }) => {
    const details = target.closest("details[data-key] > summary")?.parentElement;
    if (details && !target.closest("a")) opened.set(details.dataset.key, !details.open);
  });

  function reopen(root) {
    for (const details of [root, ...root.querySelectorAll("details[data-key]")]) {
      if (opened.has(details.dataset.key)) details.open = opened.get(details.dataset.key);
    }
  }

  // Words that a reader selects in a block that is being written stay selected when it
  // is formatted. Marks that formatting removes are not compared.
  const MARKS = /[\s*_`~#>|\\$-]/g;
  let selected = null;

  function rememberSelection() {
    const selection = getSelection();
    const open = selection.isCollapsed ? null : selection.anchorNode.parentElement?.closest(".open");
    selected = null;
    if (!open) return;
    const range = selection.getRangeAt(0);
    const before = new Range();
    before.setStart(open.parentElement, 0);
    before.setEnd(range.startContainer, range.startOffset);
    const [words, start] = [range, before].map((part) => part.toString().replace(MARKS, ""));
    selected = { turn: open.closest(".turn").id, words, start: start.length };
  }

  function selectAgain() {
    if (!selected?.words || !getSelection().isCollapsed) return;
    const body = [...document.querySelectorAll(`#${selected.turn} .body`)].at(-1);
    const places = [];
    const walker = document.createTreeWalker(body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const { data } = walker.currentNode;
      for (let at = 0; at < data.length; at += 1) {
        if (data[at].replace(MARKS, "")) places.push([walker.currentNode, at]);
      }
    }
    const letters = places.map(([node, at]) => node.data[at]).join("");
    const found = letters.indexOf(selected.words, Math.max(0, selected.start - selected.words.length));
    if (found < 0) return;
    const [[first, start], [last, end]] = [places[found], places[found + selected.words.length - 1]];
    getSelection().setBaseAndExtent(first, start, last, end + 1);
  }

  document.addEventListener("htmx:wsBeforeMessage", rememberSelection);
  document.addEventListener("htmx:wsAfterMessage", selectAgain);

  // A turn that ends moves those behind it up; only it is redrawn.
  function countQueue() {
    document.querySelectorAll(".turn:is([data-state=queued], [data-state=running])").forEach((turn, place) => {
      const position = turn.querySelector(".position");
      if (position && position.textContent !== String(place)) position.textContent = place;
    });
  }

  document.addEventListener("htmx:wsAfterMessage", countQueue);
  for (const name of ["htmx:load", "htmx:afterSwap"]) document.addEventListener(name, ({ target }) => reopen(target));
})();
