/* Asks the browser for a passkey before a form that wants one is sent. */
(() => {
  for (const form of document.querySelectorAll("form[data-passkey]")) {
    const { publicKey } = JSON.parse(document.getElementById("passkey-options").textContent);
    const field = form.elements.credential;
    const ask = () =>
      form.dataset.passkey === "create"
        ? navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(publicKey) })
        : navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(publicKey) });
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        field.value = JSON.stringify(await ask());
        form.submit();
      } catch {
        form.querySelector("[data-failed]").hidden = false;
      }
    });
  }
})();
