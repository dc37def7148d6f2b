// Fetches the file of a shared reply and checks it in this browser, with the code of
// verify.html. Nothing is sent.
// By file, because the pane can be redrawn meanwhile, as it is when the replay starts.
const answers = new Map();

async function checkFile({ module, file, keys }) {
  const { verify } = await import(module);
  const answer = await fetch(file);
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return verify(await answer.arrayBuffer(), new TextEncoder().encode(keys));
}

// The verifier writes English.
function translate(text, words) {
  return JSON.parse(words).reduce((said, [pattern, other]) => said.replaceAll(new RegExp(pattern, "g"), other), text);
}

function showAnswer() {
  const button = document.querySelector("[data-verify]");
  const answer = answers.get(button?.dataset.file);
  if (!answer) return;
  const said = document.getElementById("verification");
  const { isRight, text, error } = answer;
  said.className = isRight ? "ok" : "bad";
  const { failed, right, wrong, words, end } = said.dataset;
  said.textContent = error ? `${failed} (${error})` : `${isRight ? right : wrong} ${translate(text, words)}${end}`;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-verify]");
  if (!button) return;
  button.disabled = true;
  try {
    if (!window.isSecureContext) throw new Error("no HTTPS");
    const [isRight, text] = await checkFile(button.dataset);
    answers.set(button.dataset.file, { isRight, text });
  } catch (error) {
    answers.set(button.dataset.file, { error: error.message });
  }
  button.disabled = false;
  showAnswer();
});
document.addEventListener("htmx:afterSettle", showAnswer);
