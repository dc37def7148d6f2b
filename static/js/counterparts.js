/* A message and its counterpart on the other side light up together; what does it is loaded
 * when the mouse or the keyboard first comes to one of them (counterpart-lights.js). */
(() => {
  const load = onFirstUse("counterparts");
  const COMES = ["mouseover", "focusin"];

  function listen(isOn) {
    for (const type of COMES) document[isOn ? "addEventListener" : "removeEventListener"](type, begin);
  }

  function begin(event) {
    if (!event.target.closest?.("[data-seq], [data-first]")) return;
    listen(false);
    load().then(({ show }) => show(event), () => listen(true));
  }

  listen(true);
})();
