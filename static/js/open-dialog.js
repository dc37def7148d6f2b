/* The dialog while it is open. What is typed in it stays until the server has taken it.
 * dialog.js loads this with the first. */
const dialog = document.getElementById("dialog");
const body = document.getElementById("dialog-body");
const FIELDS = "textarea:not([readonly]), input:not([type=hidden]), select";

function showError(text) {
  let line = body.querySelector(".dialog-error");
  if (!line) {
    line = document.createElement("p");
    line.className = "dialog-error";
    line.setAttribute("role", "alert");
    body.querySelector("h2").after(line);
  }
  line.textContent = text;
}

function isEdited(field) {
  if (field.matches("select")) return [...field.options].some((option) => option.defaultSelected && !option.selected);
  return field.type === "checkbox" ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
}

// What came back with an error is not stored either.
function isChanged() {
  return Boolean(body.querySelector(".form-error")) || [...body.querySelectorAll(FIELDS)].some(isEdited);
}

// What opened it, and gets the focus back; in a menu that is closed, the menu does.
let opener = null;

/* Shows what was loaded into it. */
export function show(focused) {
  if (!dialog.open) {
    opener = focused;
    dialog.showModal();
  }
  const boxes = [...body.querySelectorAll("textarea:not([readonly]), select")].filter((box) => box.checkVisibility());
  // Its title stays in sight, however long it is.
  (boxes[0] || body.querySelector(".primary, button"))?.focus({ preventScroll: true });
}

function giveFocusBack() {
  const menu = opener?.closest("details.menu");
  (opener?.checkVisibility() ? opener : menu?.querySelector("summary"))?.focus();
}

document.addEventListener("notice", ({ detail }) => {
  if (!dialog.open) return;
  if (detail.isError) showError(detail.text);
  else dialog.close();
});
document.addEventListener("htmx:afterSwap", ({ target }) => target === body && show(document.activeElement));
document.addEventListener("click", ({ target }) => {
  if (target.closest("[data-close-dialog]")) dialog.close();
  else if (target === dialog && !isChanged()) dialog.close();
});
// One Escape too many drops nothing that was typed.
dialog.addEventListener("cancel", (event) => {
  if (!isChanged()) return;
  event.preventDefault();
  showError(dialog.dataset.changed);
});
dialog.addEventListener("close", () => {
  body.replaceChildren();
  giveFocusBack();
});
