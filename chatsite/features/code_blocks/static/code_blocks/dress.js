/* What blocks.js loads. Long code shows its beginning. Drawings, web pages and the languages
 * that other apps draw can be shown; the module that draws them, drawing.js or the one of
 * the element with `data-draws`, is loaded when that is wanted first. */
const LONG = 40;
const words = document.getElementById("code-words").dataset;

function makeButton(said, act) {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "quiet", textContent: said });
  button.addEventListener("click", act);
  return button;
}

/* Once for each piece. */
export function dress(code) {
  const box = code.closest(".code");
  if ("dressed" in box.dataset) return;
  box.dataset.dressed = "";
  // It scrolls by keyboard, too.
  code.parentElement.tabIndex = 0;
  const drawer = findDrawer(code);
  if (drawer) addShow(code, box, drawer);
  const lines = code.textContent.trimEnd().split("\n").length;
  if (lines > LONG) fold(box, words.all.replace("{n}", lines));
}

function fold(box, all) {
  const button = makeButton(all, () => {
    const isFolded = box.classList.toggle("folded");
    button.textContent = isFolded ? all : words.fold;
    button.ariaExpanded = String(!isFolded);
    if (isFolded) box.scrollIntoView({ block: "nearest" });
  });
  button.ariaExpanded = "false";
  box.classList.add("folded");
  box.append(button);
}

const isPicture = (code) => /language-x?html\b/.test(code.className) || /^\s*(<\?xml[^>]*>\s*)?<svg[\s>]/.test(code.textContent);

/* What draws the code, as the element says that brings it. */
function findDrawer(code) {
  const other = [...document.querySelectorAll("[data-draws]")].find(({ dataset }) => code.classList.contains(`language-${dataset.draws}`));
  return other?.dataset ?? (isPicture(code) ? words : null);
}

function addShow(code, box, drawer) {
  let shown = null;
  const button = makeButton(drawer.show, () => {
    if (shown) shown.remove();
    shown = shown ? null : show(code, box, drawer);
    button.textContent = shown ? words.hide : drawer.show;
    button.ariaExpanded = String(Boolean(shown));
  });
  button.ariaExpanded = "false";
  box.querySelector("[data-copy-code]").before(button);
}

// Browsers remember which addresses have failed: the next try has another fragment.
let failures = "";

/* The place of the drawing, which comes into it once its code is there. */
function show(code, box, drawer) {
  const place = Object.assign(document.createElement("div"), { className: "picture", tabIndex: 0 });
  box.querySelector("pre").after(place);
  Promise.all([import(drawer.drawing + failures), addStyles(drawer.drawingStyles)]).then(
    ([drawing]) => place.isConnected && drawing.draw(place, code.textContent),
    () => {
      failures += "#";
      place.textContent = document.body.dataset.notLoaded;
    },
  );
  return place;
}
