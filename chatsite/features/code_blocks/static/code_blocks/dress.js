/* What blocks.js loads. Long code shows its beginning. Drawings, web pages and diagrams can
 * be shown; what draws them is loaded when that is wanted first (drawing.js). */
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
  if (isDiagram(code)) addShow(code, box, words.showDiagram);
  else if (isPicture(code)) addShow(code, box, words.show);
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

const isDiagram = (code) => /language-mermaid\b/.test(code.className);
const isPicture = (code) => /language-x?html\b/.test(code.className) || /^\s*(<\?xml[^>]*>\s*)?<svg[\s>]/.test(code.textContent);

function addShow(code, box, said) {
  let shown = null;
  const button = makeButton(said, () => {
    if (shown) shown.remove();
    shown = shown ? null : show(code, box);
    button.textContent = shown ? words.hide : said;
    button.ariaExpanded = String(Boolean(shown));
  });
  button.ariaExpanded = "false";
  box.querySelector("[data-copy-code]").before(button);
}

// Browsers remember which addresses have failed: the next try has another fragment.
let failures = "";

/* The place of the drawing, which comes into it once its code is there. */
function show(code, box) {
  const place = Object.assign(document.createElement("div"), { className: "picture", tabIndex: 0 });
  box.querySelector("pre").after(place);
  Promise.all([import(words.drawing + failures), addStyles(words.drawingStyles)]).then(
    ([drawing]) => place.isConnected && (isDiagram(code) ? drawing.diagram : drawing.picture)(place, code.textContent),
    () => {
      failures += "#";
      place.textContent = document.body.dataset.notLoaded;
    },
  );
  return place;
}
