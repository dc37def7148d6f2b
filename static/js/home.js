/* The message box of the home page: its first message makes the conversation. A text stays
 * in it, and in the tab's draft, until the server has stored it; sent once more with the
 * same id, as after an answer that was lost, it makes no second one. */
(() => {
  const form = document.getElementById("composer");
  const { first: box, client_id: id } = form.elements;
  // Where the keyboard has no Shift+Enter, Enter breaks the line.
  const isTouch = matchMedia("(hover: none) and (pointer: coarse)");
  const isSending = ({ key, shiftKey, ctrlKey, metaKey }) =>
    key === "Enter" && (ctrlKey || metaKey || !(shiftKey || isTouch.matches || "enterBreaks" in form.dataset));

  function save() {
    const files = messageFiles.kept;
    drafts.save(box.value || files.length ? { text: box.value, id: id.value, files } : null);
  }

  function show(draft) {
    // Not while the user has typed something else.
    if (box.value) return false;
    box.value = draft.text || "";
    id.value = draft.id || id.value;
    messageFiles.restore(draft.files);
    return true;
  }

  function isTooLong() {
    return [...box.value].length > Number(form.dataset.maxChars);
  }

  /* The closed options say what is chosen; of a preset, its name alone. */
  function showChosen() {
    const picked = option.querySelectorAll("option:checked, input:checked");
    const names = [...picked].map((each) => each.text ?? each.labels[0].textContent);
    const typed = [...option.querySelectorAll("textarea")];
    const chosen = [...names.map((name) => name.split(/[:：(（]/)[0]), ...typed.map(({ value }) => value)];
    const text = chosen.map((each) => each.trim()).filter(Boolean).join(", ");
    option.querySelector(".chosen").textContent = text;
  }

  const option = form.querySelector("details.option");
  option.addEventListener("input", showChosen);
  showChosen();
  // Enter in an empty box does nothing; the browser would say something.
  box.required = false;
  box.addEventListener("input", save);
  document.addEventListener("files:changed", save);
  box.addEventListener("keydown", (event) => {
    // 229: the key belongs to an input method that is still composing (Safari).
    if (event.isComposing || event.keyCode === 229) return;
    if (!isSending(event)) return;
    event.preventDefault();
    form.requestSubmit();
  });
  // A suggestion begins with the options that are chosen, too.
  document.addEventListener("click", (event) => {
    const starter = event.target.closest("[data-starter]");
    if (!starter || box.value) return;
    event.preventDefault();
    box.value = starter.value;
    form.requestSubmit();
  });
  form.addEventListener("htmx:beforeRequest", (event) => {
    const error = document.getElementById("composer-error");
    error.textContent = isTooLong() ? form.dataset.tooLong : "";
    const isEmpty = !box.value.trim() && !messageFiles.ready.length;
    if (!error.textContent && messageFiles.isReady && !isEmpty) return;
    event.preventDefault();
    if (!error.textContent && !messageFiles.isReady) messageFiles.explain();
  });
  form.addEventListener("htmx:beforeOnLoad", ({ detail }) => {
    if (!detail.xhr.getResponseHeader("HX-Redirect")) return;
    box.value = "";
    messageFiles.drop(messageFiles.ready);
    id.value = ""; // the next message is another one
    save();
  });
  drafts.load(show);
})();
