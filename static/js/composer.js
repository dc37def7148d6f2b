/* The message box. A text stays in it, and in the tab's draft, until the server has
 * acknowledged it (outbox.js). */
(() => {
  const form = document.getElementById("composer");
  const box = form.elements.text;
  const error = () => document.getElementById("composer-error");

  // The number of the message that the box rewrites, or null.
  let edit = null;

  function save() {
    const pending = outbox.item;
    drafts.save(box.value || pending ? { text: box.value, pending, edit } : null);
  }

  function show(draft) {
    // Whoever has typed meanwhile is not interrupted.
    if (box.value || outbox.item) return;
    box.value = draft.text || "";
    setEdit(draft.edit || null);
    outbox.restore(draft.pending);
  }

  function setEdit(seq) {
    edit = seq;
    document.getElementById("editing").hidden = !seq;
    document.getElementById("editing-seq").textContent = seq ? `#${seq}` : "";
  }

  function showError(text) {
    error().textContent = text;
    delete error().dataset.clientId;
  }

  function isTooLong(text) {
    const limit = Number(form.dataset.maxChars);
    return text.length > limit && [...text].length > limit;
  }

  function submit() {
    if (outbox.isBusy) return;
    showError("");
    if (isTooLong(box.value)) showError(form.dataset.tooLong);
    else outbox.put(box.value, edit);
  }

  document.addEventListener("outbox:changed", save);
  document.addEventListener("outbox:refused", () => box.focus());
  document.addEventListener("composer:sent", ({ detail }) => {
    if (detail.edit) setEdit(null);
    if (box.value.startsWith(detail.text)) box.value = box.value.slice(detail.text.length).replace(/^\n/, "");
    showError("");
    save();
  });

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  box.addEventListener("input", save);
  box.addEventListener("keydown", (event) => {
    // 229: the key belongs to an input method that is still composing (Safari).
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      submit();
    } else if (event.key === "Escape") {
      if (edit) setEdit(null);
      else stop();
    }
  });

  function stop() {
    document.querySelector(".turn[data-state=running] form.stop")?.requestSubmit();
  }

  document.getElementById("stop").addEventListener("click", stop);
  document.getElementById("editing-cancel").addEventListener("click", () => {
    setEdit(null);
    save();
  });
  document.addEventListener("click", ({ target }) => {
    const button = target.closest("[data-edit]");
    if (!button || outbox.isBusy) return;
    setEdit(Number(button.dataset.edit));
    box.value = button.closest(".message").querySelector("template[data-raw]").content.textContent;
    save();
    box.focus();
  });

  drafts.load(show);
})();
