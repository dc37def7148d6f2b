/* The message box. A text stays in it, and in localStorage, until the server has
 * acknowledged it; sent again after a reconnect it keeps its client_id. */
(() => {
  const form = document.getElementById("composer");
  const box = form.elements.text;
  const error = () => document.getElementById("composer-error");
  const key = `windowpane.draft.${form.dataset.key}`;
  const MAX_TRIES = 5;

  let socket = null;
  // What was handed over and waits for its ack: {id, text, edit, tries}.
  let pending = null;
  // The number of the message that the box rewrites, or null.
  let edit = null;

  function save() {
    if (box.value || pending) localStorage.setItem(key, JSON.stringify({ text: box.value, pending, edit }));
    else localStorage.removeItem(key);
  }

  function restore() {
    try {
      const draft = JSON.parse(localStorage.getItem(key)) || {};
      box.value = draft.text || "";
      pending = draft.pending || null;
      setEdit(draft.edit || null);
    } catch {
      localStorage.removeItem(key);
    }
  }

  function newId() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
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
    if (pending) return;
    showError("");
    if (isTooLong(box.value)) {
      showError(form.dataset.tooLong);
      return;
    }
    pending = { id: newId(), text: box.value, edit, tries: 0 };
    save();
    transmit();
  }

  function transmit() {
    document.getElementById("pending").hidden = !pending;
    if (!socket || !pending) return;
    pending.tries += 1;
    if (pending.tries > MAX_TRIES) {
      pending = null;
      save();
      return;
    }
    save();
    const { id, text } = pending;
    const command = pending.edit ? { type: "edit", seq: pending.edit } : { type: "send" };
    socket.sendImmediately(JSON.stringify({ ...command, client_id: id, text }));
  }

  function accept() {
    const { text } = pending;
    if (pending.edit) {
      setEdit(null);
      socket?.sendImmediately(JSON.stringify({ type: "sync" }));
    }
    pending = null;
    if (box.value.startsWith(text)) box.value = box.value.slice(text.length).replace(/^\n/, "");
    save();
    document.dispatchEvent(new Event("composer:sent"));
  }

  function refuse() {
    pending = null;
    save();
    box.focus();
  }

  document.addEventListener("htmx:wsOpen", ({ detail }) => {
    socket = detail.socketWrapper;
    transmit();
  });
  document.addEventListener("htmx:wsClose", () => {
    socket = null;
  });
  document.addEventListener("htmx:wsAfterMessage", () => {
    if (!pending) return;
    if (document.getElementById("ack").dataset.clientId === pending.id) accept();
    else if (error().dataset.clientId === pending.id) refuse();
    document.getElementById("pending").hidden = !pending;
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
    if (!button || pending) return;
    setEdit(Number(button.dataset.edit));
    box.value = button.closest(".message").querySelector("template[data-raw]").content.textContent;
    save();
    box.focus();
  });

  restore();
})();
