// Without it, or where it is forbidden, the site is the same.
navigator.serviceWorker?.register("/service-worker.js").catch(() => {});
