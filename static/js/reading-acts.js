/* Versions of a reply, leafed through, and copies of a message or a piece of code.
 * reading.js loads this with the first. */

// The version that the user chose, by turn, kept across redraws.
const chosen = new Map();

const versionsOf = (group) => [...group.querySelectorAll(".wording")];

function show(group, number) {
  const versions = versionsOf(group);
  const place = Math.min(Math.max(number, 1), versions.length);
  versions.forEach((version, index) => { version.hidden = index !== place - 1; });
  group.querySelector(".at").textContent = place;
  group.querySelector("[data-step='-1']").disabled = place === 1;
  group.querySelector("[data-step='1']").disabled = place === versions.length;
  return place;
}

/* The one that has the message that a link leads to. */
export function showVersion(version) {
  const group = version.closest("[data-versions]");
  show(group, versionsOf(group).indexOf(version) + 1);
  version.scrollIntoView({ block: "center" });
}

export function step(group, by) {
  const versions = versionsOf(group);
  const now = versions.findIndex((version) => !version.hidden) + 1;
  const place = show(group, now + by);
  chosen.set(group.dataset.versions, { place, count: versions.length });
}

function restore() {
  for (const group of document.querySelectorAll("[data-versions]")) {
    const before = chosen.get(group.dataset.versions);
    const count = versionsOf(group).length;
    if (before && before.count === count) show(group, before.place);
  }
}

// The clipboard needs HTTPS; without it a hidden field is copied from.
async function copy(button, text) {
  if (navigator.clipboard) await navigator.clipboard.writeText(text);
  else {
    const field = document.createElement("textarea");
    field.className = "visually-hidden";
    field.readOnly = true;
    field.value = text;
    button.after(field);
    field.select();
    document.execCommand("copy");
    field.remove();
    button.focus({ preventScroll: true });
  }
  button.classList.add("copied");
  setTimeout(() => button.classList.remove("copied"), 1200);
}

function copyMessage(button) {
  copy(button, button.closest(".message").querySelector("template[data-raw]").content.textContent);
}

function copyCode(button) {
  copy(button, button.closest(".code, .tool-part").querySelector("pre").textContent);
}

export function act(button) {
  if (button.matches("[data-step]")) step(button.closest("[data-versions]"), Number(button.dataset.step));
  else (button.matches("[data-copy]") ? copyMessage : copyCode)(button);
}

document.addEventListener("htmx:oobAfterSwap", ({ detail }) => {
  if (!detail.target.closest(".live")) restore();
});
document.addEventListener("htmx:afterSwap", restore);
