/* The message box. A text that was sent is below the others at once, and in the tab's draft
 * until the server has acknowledged it (outbox.js). */
(() => {
  const form = document.getElementById("composer");
  const box = form.elements.text;
  const error = () => document.getElementById("composer-error");
  // Where the keyboard has no Shift+Enter, Enter breaks the line.
  const isTouch = matchMedia("(hover: none) and (pointer: coarse)");
  const isSending = ({ key, shiftKey, ctrlKey, metaKey }) =>
    key === "Enter" && (ctrlKey || metaKey || !(shiftKey || isTouch.matches || "enterBreaks" in form.dataset));

  // The number of the message that the box rewrites, or null; what was in it before.
  let edit = null;
  let kept = "";

  function save() {
    const pending = outbox.items;
    const files = messageFiles.kept;
    drafts.save(box.value || pending.length || kept || files.length ? { text: box.value, pending, edit, kept, files } : null);
  }

  function show(draft) {
    // Not while the user has typed something else.
    if (box.value || outbox.items.length) return false;
    box.value = draft.text || "";
    kept = draft.kept || "";
    setEdit(draft.edit || null);
    messageFiles.restore(draft.files);
    outbox.restore(draft.pending);
    return true;
  }

  function setEdit(seq) {
    edit = seq;
    document.getElementById("editing").hidden = !seq;
    document.getElementById("editing-seq").textContent = seq ? `#${seq}` : "";
    form.toggleAttribute("data-editing", Boolean(seq));
  }

  const rawOf = (seq) => document.querySelector(`#message-${seq} template[data-raw]`)?.content.textContent;

  // What was typed stays, whatever begins or ends.
  function beginEdit(seq) {
    putAside();
    setEdit(seq);
    box.value = rawOf(seq);
    save();
    box.focus();
  }

  function endEdit(isSent) {
    if (isSent === true) box.value = "";
    putAside();
    setEdit(null);
    takeUp();
    save();
  }

  function putAside() {
    const isTyped = box.value.trim() && !(edit && box.value === rawOf(edit));
    if (isTyped) kept = kept ? `${kept}\n${box.value}` : box.value;
    box.value = "";
  }

  function takeUp() {
    box.value = kept && box.value ? `${kept}\n${box.value}` : kept || box.value;
    kept = "";
  }

  function showError(text) {
    error().textContent = text;
    delete error().dataset.clientId;
  }

  function isTooLong(text) {
    const limit = Number(form.dataset.maxChars);
    return text.length > limit && [...text].length > limit;
  }

  // An edit makes a branch, unless its box says that it replaces.
  const branching = document.getElementById("branch-edit");

  function makeBranch() {
    const fail = () => showError(form.dataset.notSent);
    const said = [branching, edit, box.value, () => endEdit(true), fail];
    import(branching.dataset.module).then((it) => it.makeBranch(...said)).catch(fail);
  }

  function submit() {
    if (outbox.isBusy) return;
    showError("");
    const { isReady, ready } = messageFiles;
    if (!edit && isReady && !ready.length && !box.value.trim()) return;
    if (isTooLong(box.value)) showError(form.dataset.tooLong);
    else if (!edit && !isReady) messageFiles.explain();
    else if (edit && branching?.querySelector("input").checked) makeBranch();
    else outbox.put(box.value, edit, edit ? [] : ready);
  }

  // What was sent is drawn below the others until the server's own is there, and the box
  // is free for more; what can't go out comes back into it.
  const waiting = document.getElementById("waiting");
  let accepted = [];

  const isDrawn = ({ seq }) => document.getElementById(`message-${seq}`);

  function showWaiting() {
    for (const item of outbox.items) {
      if (item.held) giveBack(item);
      else if (!item.edit) takeOut(item);
    }
    accepted = accepted.filter((item) => !isDrawn(item));
    const out = [...accepted, ...outbox.items.filter(({ isOut }) => isOut)];
    const count = waiting.childElementCount;
    waiting.hidden = !out.length;
    waiting.replaceChildren(...out.map(draw));
    if (out.length > count) waiting.lastElementChild.scrollIntoView({ block: "nearest" });
  }

  function draw({ id, text, files, tries }) {
    const shown = document.getElementById("waiting-message").content.firstElementChild.cloneNode(true);
    shown.querySelector(".body").textContent = [text, ...(files || []).map(({ name }) => `+ ${name}`)].join("\n");
    const cancel = shown.querySelector("button");
    cancel.hidden = tries;
    shown.querySelector(".mark").hidden = tries && !outbox.isCutOff;
    cancel.addEventListener("click", () => {
      const item = outbox.cancel(id);
      if (item) giveBack(item);
      save();
      box.focus();
    });
    return shown;
  }

  // What was typed behind it in the meantime stays.
  function takeOut(item) {
    if (item.isOut) return;
    if (box.value.startsWith(item.text)) box.value = box.value.slice(item.text.length).replace(/^\n/, "");
    messageFiles.drop(item.files || []);
    item.isOut = true;
  }

  function giveBack(item) {
    if (item.isOut) {
      box.value = box.value ? `${item.text}\n${box.value}` : item.text;
      messageFiles.restore(item.files);
    }
    item.isOut = false;
  }

  document.addEventListener("outbox:changed", () => {
    showWaiting();
    save();
  });
  document.addEventListener("htmx:wsAfterMessage", () => accepted.some(isDrawn) && showWaiting());
  document.addEventListener("outbox:refused", ({ detail }) => {
    [...detail.behind].reverse().forEach(giveBack);
    giveBack(detail);
    if (detail.code === "attachment_gone") messageFiles.lose(detail.files, error().textContent);
    if (detail.edit) setEdit(detail.edit); // what has taken its place
    save();
    box.focus();
  });
  document.addEventListener("composer:sent", ({ detail }) => {
    if (!detail.edit) accepted.push({ ...detail, seq: document.getElementById("ack").dataset.seq });
    else {
      takeOut(detail);
      setEdit(null);
      takeUp();
    }
    showError("");
    save();
  });

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  box.addEventListener("input", save);
  document.addEventListener("files:changed", save);
  box.addEventListener("keydown", (event) => {
    // 229: the key belongs to an input method that is still composing (Safari).
    if (event.isComposing || event.keyCode === 229) return;
    if (isSending(event)) {
      event.preventDefault();
      submit();
    } else if (event.key === "Escape") {
      if (edit) endEdit();
      else stop();
    } else if (event.key === "ArrowUp" && !box.value && !edit && !event.altKey) {
      [...document.querySelectorAll("#turns [data-edit]")].at(-1)?.click();
    }
  });

  const stop = () => document.querySelector(".turn[data-state=running] form.stop")?.requestSubmit();

  document.getElementById("stop").addEventListener("click", stop);
  document.getElementById("editing-cancel").addEventListener("click", endEdit);
  document.addEventListener("click", ({ target }) => {
    if (outbox.isBusy) return;
    const button = target.closest("#turns [data-edit]");
    const starter = target.closest("[data-starter]");
    if (button) beginEdit(Number(button.dataset.edit));
    if (starter) outbox.put(starter.value, null, []);
  });

  // The model is the server's to say: another tab may choose one, or a choice may fail.
  const { model } = form.elements;

  function showModel() {
    if (model) model.value = document.getElementById("model-now").dataset.model;
  }

  document.addEventListener("htmx:oobAfterSwap", ({ target }) => target.id === "model-now" && showModel());
  document.addEventListener("notice", ({ detail }) => detail.isError && showModel());

  drafts.load(show);
})();
