/* Files beside the message box: chosen, dropped or pasted, uploaded at once, one after the
 * other, and named by the message that is sent. */
const attachments = (() => {
  const form = document.getElementById("composer");
  const box = document.getElementById("text");
  const list = document.getElementById("attachments");
  const picker = document.getElementById("attach-files");
  const status = document.getElementById("attachments-status");
  const words = list.dataset;
  // A longer text that is pasted becomes a file.
  const PASTE_BYTES = 4096;
  const isRequired = box.required;

  // {id, name, size, tokens, file, text, error, card}; id: it is uploaded; text: pasted, and
  // kept with the draft until it is.
  let items = [];
  let queue = Promise.resolve();

  function changed() {
    box.required = isRequired && !items.length;
    document.dispatchEvent(new Event("attachments:changed"));
  }

  function kept() {
    return items.filter(({ id, text }) => id || text)
      .map(({ id, name, size, tokens, text }) => ({ id, name, size, tokens, text: id ? undefined : text }));
  }

  function show(item) {
    item.card ??= document.getElementById("attachment-card").content.firstElementChild.cloneNode(true);
    const [name, note, again, remove] = ["name", "note", "again", "remove"].map((part) => item.card.querySelector(`.${part}`));
    const amount = (number) => number.toLocaleString(document.documentElement.lang);
    name.textContent = item.name;
    note.textContent = item.error || (item.id ? `${amount(item.tokens)} ${words.tokens}` : words.reading);
    item.card.classList.toggle("refused", Boolean(item.error));
    item.card.querySelector("input").value = item.id || "";
    item.card.querySelector("input").disabled = !item.id;
    again.hidden = !item.isLost;
    again.onclick = () => upload(item);
    remove.setAttribute("aria-label", `${words.remove}: ${item.name}`);
    remove.onclick = () => {
      const next = item.card.nextElementSibling || item.card.previousElementSibling;
      if (item.id) post(`${words.upload}${item.id}/remove/`).catch(() => {}); // the sweep does it
      drop([item]);
      (next?.querySelector(".remove") || box).focus();
    };
    if (!item.card.isConnected) list.append(item.card);
  }

  function post(address, body) {
    return fetch(address, { method: "POST", body, headers: JSON.parse(document.body.getAttribute("hx-headers")) });
  }

  function upload(item) {
    item.error = "";
    item.isLost = false;
    show(item);
    queue = queue.then(() => items.includes(item) && send(item));
  }

  async function send(item) {
    const body = new FormData();
    body.append("file", item.file || new File([item.text], item.name), item.name);
    try {
      const answer = await post(words.upload, body);
      const told = await answer.json();
      if (answer.ok) Object.assign(item, told);
      else if (item.text) return giveBack(item, told.detail);
      else item.error = told.detail;
    } catch {
      // No connection, or a page in place of an answer: the file is still here.
      item.error = words.lost;
      item.isLost = true;
    }
    if (!items.includes(item)) return;
    show(item);
    status.textContent = `${item.name}: ${item.error || words.attached}`;
    changed();
  }

  /* What was pasted and can't be a file is a text again. */
  function giveBack(item, why) {
    drop([item]);
    box.setRangeText(item.text);
    box.dispatchEvent(new Event("input"));
    document.getElementById("composer-error").textContent = why;
  }

  function add(files) {
    for (const file of files) {
      const item = { name: file.name, size: file.size, file };
      items.push(item);
      if (file.size > Number(words.maxBytes)) {
        item.error = words.tooLarge;
        show(item);
        status.textContent = `${item.name}: ${item.error}`;
      } else upload(item);
    }
    changed();
  }

  function addText(text) {
    const item = { name: words.pasted, size: text.length, text };
    items.push(item);
    upload(item);
    changed();
  }

  function restore(saved) {
    for (const each of saved || []) {
      if (items.some(({ id }) => id && id === each.id)) continue;
      const item = { ...each };
      items.push(item);
      if (item.id) show(item);
      else upload(item);
    }
    changed();
  }

  function drop(gone) {
    const ids = gone.map(({ id }) => id).filter(Boolean);
    items = items.filter((item) => {
      const stays = !gone.includes(item) && !ids.includes(item.id);
      if (!stays) item.card.remove();
      return stays;
    });
    changed();
  }

  /* They are no longer on the server; what was pasted can be sent there again. */
  function lose(gone, error) {
    const ids = gone.map(({ id }) => id);
    for (const item of items.filter(({ id }) => ids.includes(id))) {
      Object.assign(item, { id: undefined, error, isLost: Boolean(item.file || item.text) });
      show(item);
    }
    changed();
  }

  document.addEventListener("connection:open", () => items.filter(({ isLost }) => isLost).forEach(upload));
  document.getElementById("attach").addEventListener("click", () => picker.click());
  picker.addEventListener("change", () => {
    add(picker.files);
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
    else add(files);
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
    if (!isEditing()) add(event.dataTransfer.files);
  });

  return {
    restore, drop, lose, get kept() { return kept(); },
    get ready() { return items.filter(({ id }) => id).map(({ id, name, size, tokens }) => ({ id, name, size, tokens })); },
    get isReady() { return items.every(({ id }) => id); },
  };
})();
