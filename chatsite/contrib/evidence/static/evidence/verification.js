// Fetches the file of a shared reply and checks it in this browser, with the code of
// verify.html. Nothing is sent.
async function checkFile({ module, file, keys }) {
  const { verify } = await import(module);
  const answer = await fetch(file);
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return verify(await answer.arrayBuffer(), new TextEncoder().encode(keys));
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-verify]");
  if (!button) return;
  const said = document.getElementById("verification");
  button.disabled = true;
  try {
    if (!window.isSecureContext) throw new Error("no HTTPS");
    const [isRight, text] = await checkFile(button.dataset);
    said.className = isRight ? "ok" : "bad";
    said.textContent = `${isRight ? said.dataset.right : said.dataset.wrong} ${text}.`;
  } catch (error) {
    said.className = "bad";
    said.textContent = `${said.dataset.failed} (${error.message})`;
  }
  button.disabled = false;
});
