/* Parts of scripts that most pages never need are modules, loaded on first use. The
 * <script> element that uses one has its address as `data-module`: collected files have a
 * hash in their names. */

/* To be called while that script runs: gives a function that loads its module, once for
 * all calls. After a failure the next call tries again, with another fragment: browsers
 * remember which addresses have failed (https://github.com/whatwg/html/issues/6768). */
function onFirstUse() {
  const { module } = document.currentScript.dataset;
  let loading = null;
  let failures = 0;

  return () => {
    loading ??= import(failures ? `${module}#${failures}` : module).catch((error) => {
      loading = null;
      failures += 1;
      throw error;
    });
    return loading;
  };
}
