/* The cards of the files beside the message box, and their upload: at once, one after the
 * other. attachments.js loads this with the first of them, and has the list. */
const box = document.getElementById("text");
const list = document.getElementById("attachments");
const status = document.getElementById("attachments-status");
const words = list.dataset;
let queue = Promise.resolve();

/* Gives it a card and uploads it, where that is not done yet or was in vain. */
export function show(item) {
  if (item.card && !item.isLost) return;
  if (item.id || item.question) draw(item);
  else upload(item);
}

/* They are no longer on the server; what was pasted can be sent there again. */
export function lose(gone, error) {
  const ids = gone.map(({ id }) => id);
  for (const item of messageFiles.items.filter(({ id }) => ids.includes(id))) {
    Object.assign(item, { id: undefined, error, isLost: Boolean(item.file || item.text) });
    draw(item);
  }
  messageFiles.changed();
}

/* What was refused stays refused, so the message can be sent without it. */
export function explain() {
  const error = document.getElementById("composer-error");
  const missing = messageFiles.items.filter(({ id }) => !id);
  if (missing.some(({ question }) => question)) error.textContent = words.unsure;
  if (!missing.length || missing.some((item) => !item.error || item.isLost)) return;
  error.textContent = `${words.refused}${missing.map(({ name }) => name).join(", ")} `;
  const button = Object.assign(document.createElement("button"), { type: "button", className: "small", textContent: words.without });
  button.addEventListener("click", () => {
    error.textContent = "";
    messageFiles.drop(missing);
    if (box.value.trim() || messageFiles.items.length) box.form.requestSubmit();
    box.focus();
  });
  error.append(button);
}

function draw(item) {
  item.card ??= document.getElementById("attachment-card").content.firstElementChild.cloneNode(true);
  const [name, note, again, remove] = ["name", "note", "again", "remove"].map((part) => item.card.querySelector(`.${part}`));
  const amount = (number) => number.toLocaleString(document.documentElement.lang);
  name.textContent = item.name;
  const { id, image } = item;
  const size = () => image ? `${image.width} × ${image.height}` : `${amount(item.tokens)} ${words.tokens}`;
  const measure = () => [size(), item.encoding, item.left_out && words.leftOut + item.left_out].filter(Boolean).join(" · ");
  note.textContent = item.error || (id ? measure() : item.question ? words.which : words.reading);
  drawQuestion(item);
  if (image && id && !item.card.querySelector("img")) {
    item.card.prepend(Object.assign(new Image(), { alt: "", src: `${words.upload}${id}/image/` }));
  }
  item.card.classList.toggle("refused", Boolean(item.error));
  item.card.querySelector("input").value = item.id || "";
  item.card.querySelector("input").disabled = !item.id;
  again.hidden = !item.isLost;
  again.onclick = () => upload(item);
  remove.setAttribute("aria-label", `${words.remove}: ${item.name}`);
  remove.onclick = () => {
    const next = item.card.nextElementSibling || item.card.previousElementSibling;
    const stored = item.id || item.question?.id;
    if (stored) post(`${words.upload}${stored}/remove/`).catch(() => {}); // the sweep does it
    messageFiles.drop([item]);
    (next?.querySelector(".remove") || box).focus();
  };
  if (!item.card.isConnected) list.append(item.card);
}

/* The readings of a file that can be in several encodings, each with a line of it. */
function drawQuestion(item) {
  item.card.querySelector(".readings")?.remove();
  if (!item.question) return;
  const part = document.getElementById("attachment-readings").content.firstElementChild;
  const group = part.cloneNode(true);
  group.setAttribute("aria-label", `${item.name}: ${words.which}`);
  const [reading] = group.children;
  reading.remove();
  for (const { encoding, name, preview } of item.question.readings) {
    const button = reading.cloneNode(true);
    button.querySelector(".preview").textContent = preview;
    button.querySelector(".encoding").textContent = name;
    button.addEventListener("click", () => choose(item, encoding));
    group.append(button);
  }
  item.card.append(group);
}

function choose(item, encoding) {
  const { id } = item.question;
  item.card.querySelectorAll(".readings button").forEach((button) => { button.disabled = true; });
  const body = new FormData();
  body.append("encoding", encoding);
  document.getElementById("composer-error").textContent = "";
  queue = queue.then(async () => {
    await ask(item, `${words.upload}${id}/reading/`, body);
    item.card.querySelector(".remove").focus();
  });
}

function tell(item) {
  status.textContent = `${item.name}: ${item.error || (item.question ? words.which : words.attached)}`;
}

function post(address, body) {
  return fetch(address, { method: "POST", body, headers: JSON.parse(document.body.getAttribute("hx-headers")) });
}

function upload(item) {
  item.error = item.file?.size > Number(words.maxBytes) ? words.tooLarge : "";
  item.isLost = false;
  draw(item);
  if (item.error) tell(item);
  else queue = queue.then(() => messageFiles.items.includes(item) && send(item));
}

async function send(item) {
  const body = new FormData();
  body.append("file", item.file || new File([item.text], item.name), item.name);
  await ask(item, words.upload, body);
}

async function ask(item, address, body) {
  try {
    const answer = await post(address, body);
    const received = await answer.json();
    if (answer.ok) Object.assign(item, received, { question: undefined });
    else if (received.readings) item.question = received;
    else if (item.text) return messageFiles.giveBack(item, received.detail);
    else {
      item.error = received.detail;
      if (received.error === "attachment_gone") Object.assign(item, { question: undefined, isLost: Boolean(item.file) });
    }
  } catch {
    // No connection, or a page in place of an answer: the file is still here.
    item.error = words.lost;
    item.isLost = !item.question;
  }
  if (!messageFiles.items.includes(item)) return;
  draw(item);
  tell(item);
  messageFiles.changed();
}

document.addEventListener("connection:open", () => messageFiles.items.filter(({ isLost }) => isLost).forEach(upload));
