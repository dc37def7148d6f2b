/* Files beside the message box: chosen, dropped or pasted, and named by the message that
 * is sent. Their cards and their upload are loaded with the first (attachment-cards.js). */
messageFiles = (() => {
  const form = document.getElementById("composer");
  const box = document.getElementById("text");
  const picker = document.getElementById("attach-files");
  const words = document.getElementById("attachments").dataset;
  const load = onFirstUse("attachments");
  // A longer text that is pasted becomes a file.
  const PASTE_BYTES = 4096;

  // {id, name, size, tokens, image, encoding, left_out, question, file, text, error, card}; id: it is uploaded;
  // question: it is, and waits for the encoding that is chosen; text: pasted, and kept with the draft
  // until it is; card: it is shown.
  let items = [];

  function changed() {
    document.dispatchEvent(new Event("files:changed"));
  }

  function kept(isKept) {
    return items.filter(isKept)
      .map(({ file, card, error, isLost, text, ...item }) => ({ ...item, text: item.id ? undefined : text }));
  }

  function showError(text) {
    document.getElementById("composer-error").textContent = text;
  }

  function add(fresh) {
    items.push(...fresh);
    changed();
    if (items.length) load().then(({ show }) => items.forEach(show), giveUp);
  }

  function addFiles(files) {
    showError("");
    add([...files].map((file) => ({ name: file.name, size: file.size, file })));
  }

  function addText(text) {
    showError("");
    add([{ name: words.pasted, size: text.length, text }]);
  }

  function restore(saved = []) {
    const key = ({ id, question }) => id || question?.id;
    const isKnown = (each) => key(each) && items.some((item) => key(item) === key(each));
    add(saved.filter((each) => !isKnown(each)).map((each) => ({ ...each })));
  }

  function drop(gone) {
    const ids = gone.map(({ id }) => id).filter(Boolean);
    items = items.filter((item) => {
      const stays = !gone.includes(item) && !ids.includes(item.id);
      if (!stays) item.card?.remove();
      return stays;
    });
    changed();
  }

  /* What was pasted and can't be a file is a text again. */
  function giveBack(item, why) {
    drop([item]);
    box.setRangeText(item.text, box.selectionStart, box.selectionEnd, "end");
    box.dispatchEvent(new Event("input"));
    showError(why);
  }

  /* The cards could not be loaded. What is uploaded already stays with the draft. */
  function giveUp() {
    for (const item of items.filter(({ text }) => text)) giveBack(item, "");
    if (items.length) showError(`${items.map(({ name }) => name).join(", ")}: ${words.notShown}`);
    drop(items.filter(({ id }) => !id));
  }

  /* They are no longer on the server. */
  function lose(gone, error) {
    load().then((cards) => cards.lose(gone, error), giveUp);
  }

  /* Says why they can't be sent yet. */
  function explain() {
    showError(words.notReady);
    load().then((cards) => cards.explain(), () => {});
  }

  document.getElementById("attach").addEventListener("click", () => picker.click());
  picker.addEventListener("change", () => {
    addFiles(picker.files);
    picker.value = "";
    box.focus();
  });
  box.addEventListener("paste", (event) => {
    const { files } = event.clipboardData;
    const text = event.clipboardData.getData("text/plain");
    const isLong = new Blob([text]).size > PASTE_BYTES && text.length <= Number(words.maxChars);
    if (isEditing() || (!isLong && (text || !files.length))) return;
    event.preventDefault();
    if (isLong) addText(text);
    else addFiles(files);
  });
  const isEditing = () => form.hasAttribute("data-editing");
  const hasFiles = ({ dataTransfer }) => dataTransfer?.types.includes("Files");
  document.addEventListener("dragover", (event) => {
    if (!hasFiles(event) || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    form.classList.add("dropping");
  });
  document.addEventListener("dragleave", ({ relatedTarget }) => !relatedTarget && form.classList.remove("dropping"));
  document.addEventListener("drop", (event) => {
    form.classList.remove("dropping");
    if (!hasFiles(event)) return;
    event.preventDefault(); // the browser would open it in place of the page
    if (!isEditing()) addFiles(event.dataTransfer.files);
  });

  return {
    restore, drop, lose, giveBack, changed, explain,
    get items() { return items; },
    get kept() { return kept(({ id, text, question }) => id || text || question); },
    get ready() { return kept(({ id }) => id); },
    // Nothing is sent that can't be seen.
    get isReady() { return items.every(({ id, card }) => id && card); },
  };
})();
