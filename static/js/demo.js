/* The demo: sends its messages one by one, each when the reply before it has ended, and
 * stops at the first summary with both of its sides lit. Then the guide's steps follow:
 * the summary is edited where it stands, and once more a message is sent. */
(() => {
  const guide = document.querySelector(".guide");
  const form = document.getElementById("guide-line");
  const scroller = document.getElementById("transcript");
  const right = document.getElementById("context");
  const GAP_MS = 900;
  const LIT_MS = 2_000;
  const ASK_MS = 3_000;
  const OPEN = ".turn:is([data-state=queued], [data-state=running], [data-state=waiting])";
  const turns = () => document.querySelectorAll("#turns .turn").length;
  const findDivider = () => document.querySelector("#turns .divider");
  const findSummary = () => right.querySelector(".part-summaries [data-first]");
  const findLine = () => guide.querySelector("template[data-line]");

  let timer = 0;
  let sentAt = -1; // how many turns there were when the last message went out
  let isShown = Boolean(findDivider());

  const isBusy = () => turns() === sentAt || Boolean(document.querySelector(`#turns ${OPEN}`));

  function wait(ms, act) {
    timer = setTimeout(() => {
      timer = 0;
      if (guide.isConnected) act();
    }, ms);
  }

  function follow() {
    if (!timer && guide.isConnected && !isBusy()) wait(GAP_MS, goOn);
  }

  function goOn() {
    if (isBusy()) return;
    if (!isShown && findDivider() && findSummary()) light();
    else send();
  }

  function send() {
    const line = findLine();
    if (!line) {
      htmx.trigger(guide, "step");
      // Its summary may still be being written.
      if (!document.getElementById("guide-act")) wait(ASK_MS, goOn);
      return;
    }
    sentAt = turns();
    form.elements.client_id.value = line.dataset.line;
    form.elements.text.value = line.content.textContent;
    line.remove();
    htmx.trigger(form, "line");
  }

  // As if the mouse came to the summary (counterpart-lights.js).
  function light() {
    isShown = true;
    const text = document.getElementById("guide-text");
    const before = text.textContent;
    const isFollowed = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 60;
    const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth";
    text.textContent = guide.dataset.lit;
    if (isFollowed) findDivider().scrollIntoView({ block: "center", behavior });
    const point = () => {
      findSummary()?.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
      findSummary()?.classList.add("counterpart");
    };
    point();
    right.addEventListener("htmx:afterSettle", point);
    wait(LIT_MS, () => {
      right.removeEventListener("htmx:afterSettle", point);
      right.dispatchEvent(new MouseEvent("mouseleave"));
      findSummary()?.classList.remove("counterpart");
      text.textContent = before;
      if (isFollowed) scroller.scrollTop = scroller.scrollHeight;
      send();
    });
  }

  // In the right pane, with the word to change selected; where that is not shown, a dialog.
  async function edit(act) {
    const part = right.querySelector(`[data-key="edit-${act.dataset.version}"]`);
    if (!part || !document.getElementById("context-body").checkVisibility()) return htmx.trigger(act, "dialog");
    part.closest("details").open = true;
    const { write } = await import(right.dataset.desk);
    const box = await write(part);
    const word = document.querySelector("#guide-text b").textContent;
    const at = box ? box.value.indexOf(word) : -1;
    if (at >= 0) box.setSelectionRange(at, at + word.length);
  }

  guide.addEventListener("click", ({ target }) => target.matches("[data-version]") && edit(target));
  guide.addEventListener("htmx:afterSettle", () => findLine() && follow());
  document.addEventListener("htmx:wsAfterMessage", follow);
  document.addEventListener("connection:open", follow);
  document.addEventListener("htmx:load", ({ target }) => target.matches(".beside") && htmx.trigger(guide, "step"));
  guide.querySelector("[data-close-guide]").addEventListener("click", () => {
    guide.remove();
    history.replaceState(null, "", location.pathname);
    document.getElementById("text").focus();
  });
})();
