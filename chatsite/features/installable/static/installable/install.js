// Without it the site is the same; no page waits for it.
addEventListener("load", () => navigator.serviceWorker?.register("/service-worker.js").catch(() => {}));
