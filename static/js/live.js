/* Keeps the page steady while fragments arrive: scrolling, what is open, the queue. */
(() => {
  const scroller = document.getElementById("transcript");
  const jump = document.getElementById("jump");

  // Scrolling: follow the end only while the reader is there.
  let follows = true;

  function isAtEnd() {
    return scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 60;
  }

  function offerJump(offered) {
    if (jump.hidden === offered) jump.hidden = !offered;
  }

  function settle() {
    if (follows) scroller.scrollTop = scroller.scrollHeight;
    offerJump(!follows && !isAtEnd());
  }

  scroller.addEventListener("scroll", () => {
    follows = isAtEnd();
    offerJump(!follows);
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

  // What a person opened or closed stays so when its section is redrawn.
  const opened = new Map();

  document.addEventListener("click", ({ target }) => {
    const details = target.closest("details[data-key] > summary")?.parentElement;
    if (details && !target.closest("a")) opened.set(details.dataset.key, !details.open);
  });

  function reopen(root) {
    const inside = [...root.querySelectorAll("details[data-key]")];
    for (const details of root.matches("details[data-key]") ? [root, ...inside] : inside) {
      if (opened.has(details.dataset.key)) details.open = opened.get(details.dataset.key);
    }
  }

  // A turn that ends moves those behind it up; only it is redrawn.
  function countQueue() {
    const waiting = [...document.querySelectorAll(".turn:is([data-state=queued], [data-state=running])")];
    waiting.forEach((turn, place) => {
      const position = turn.querySelector(".position");
      if (position && position.textContent !== String(place)) position.textContent = place;
    });
  }

  document.addEventListener("htmx:wsAfterMessage", countQueue);
  document.addEventListener("htmx:load", ({ target }) => reopen(target));
  document.addEventListener("htmx:afterSwap", ({ target }) => reopen(target));
})();
