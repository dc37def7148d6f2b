/* Says at once that a file is too large; the server can only say so when it has it. */
document.addEventListener("change", ({ target: field }) => {
  if (!field.matches("input[type=file][data-max-bytes]")) return;
  const isTooLarge = field.files[0]?.size > Number(field.dataset.maxBytes);
  field.setCustomValidity(isTooLarge ? field.dataset.tooLarge : "");
  field.reportValidity();
});
