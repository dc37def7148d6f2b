/* Says at once that a file is too large; the server can only say so when it has it. */
(() => {
  const field = document.querySelector("input[type=file][data-max-bytes]");

  field.addEventListener("change", () => {
    const isTooLarge = field.files[0]?.size > Number(field.dataset.maxBytes);
    field.setCustomValidity(isTooLarge ? field.dataset.tooLarge : "");
    field.reportValidity();
  });
})();
