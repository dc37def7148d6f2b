/* Ranges of boxes in the list, and what takes conversations that are dropped on it. */
(() => {
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

  // The same list after a reload.
  on("htmx:afterSwap", ({ target }) => {
    if (target.id !== "conversation-list") return;
    const page = new URL(location);
    for (const { name, value } of document.querySelectorAll("#list-state [data-filter]")) {
      page.searchParams.delete(name);
      if (value) page.searchParams.set(name, value);
    }
    history.replaceState(null, "", page);
  });
})();
