/* Keeps the page steady while fragments arrive: scrolling, what is open, focus. */
(() => {
  const scroller = document.getElementById("transcript");
  const jump = document.getElementById("jump");

  // Scrolling: follow the end only while the reader is there.
  let follows = true;

  function isAtEnd() {
    return scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 60;
  }

  function toEnd() {
    scroller.scrollTop = scroller.scrollHeight;
  }

  function settle() {
    if (follows) toEnd();
    jump.hidden = follows || isAtEnd();
  }

  scroller.addEventListener("scroll", () => {
    follows = isAtEnd();
    jump.hidden = follows;
  }, { passive: true });
  jump.addEventListener("click", () => {
    follows = true;
    settle();
  });
  new MutationObserver(settle).observe(document.getElementById("turns"), {
    childList: true, subtree: true, characterData: true,
  });
  new ResizeObserver(settle).observe(scroller);
  document.addEventListener("composer:sent", () => {
    follows = true;
    settle();
  });
  follows = !location.hash;
  settle();

  // What a person opened or closed stays so when its section is drawn anew.
  const opened = new Map();

  document.addEventListener("click", ({ target }) => {
    const details = target.closest("details[data-key] > summary")?.parentElement;
    if (details && !target.closest("a")) opened.set(details.dataset.key, !details.open);
  });

  function reopen(root) {
    for (const details of root.querySelectorAll("details[data-key]")) {
      if (opened.has(details.dataset.key)) details.open = opened.get(details.dataset.key);
    }
  }

  // A sync replaces the latest turns; earlier ones, place and focus are kept.
  let place = null;

  function keepEarlier(fragment) {
    const first = fragment.querySelector(".turn");
    const turns = document.getElementById("turns");
    if (!first || !turns.querySelector(".turn")) return;
    const isOld = (turn) => Number(turn.dataset.turn) < Number(first.dataset.turn);
    const count = [...turns.querySelectorAll(".turn")].filter(isOld).length;
    if (!count) return;
    const older = document.getElementById("older") || document.createElement("div");
    if (!older.id) {
      older.id = "older";
      for (const node of [...turns.children]) {
        const turn = node.matches(".turn") ? node : node.querySelector(".turn");
        if (turn && !isOld(turn)) break;
        older.append(node);
      }
    }
    fragment.querySelector("#earlier")?.remove();
    fragment.prepend(older);
  }

  document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => {
    if (detail.fragment.id !== "turns") return;
    const focused = document.activeElement?.closest("#turns [id]");
    place = { top: scroller.scrollTop, focus: focused?.id };
    keepEarlier(detail.fragment);
  });
  // A turn that ends moves those behind it up; only itself is drawn anew.
  function countQueue() {
    const waiting = [...document.querySelectorAll(".turn:is([data-state=queued], [data-state=running])")];
    waiting.forEach((turn, place) => {
      const position = turn.querySelector(".position");
      if (position && position.textContent !== String(place)) position.textContent = place;
    });
  }

  document.addEventListener("htmx:wsAfterMessage", countQueue);
  document.addEventListener("htmx:oobAfterSwap", ({ target }) => {
    reopen(target);
    if (target.id !== "turns" || !place) return;
    if (!follows) scroller.scrollTop = place.top;
    if (place.focus) document.getElementById(place.focus)?.focus({ preventScroll: true });
    place = null;
  });
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (detail.target.id === "earlier") place = { height: scroller.scrollHeight };
  });
  document.addEventListener("htmx:afterSwap", ({ target }) => {
    reopen(target);
    if (!place?.height) return;
    scroller.scrollTop += scroller.scrollHeight - place.height;
    place = null;
  });
})();
