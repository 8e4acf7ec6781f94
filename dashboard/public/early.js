// Loaded before everything else: the event stream is opened while the page's code is still on its way, and what comes
// is kept in order until the page takes it over (src/api/early.ts). A file, because the server's content security policy
// allows no inline script. Nothing happens in demo mode, nor when the API lives elsewhere (VITE_API_URL).
(() => {
  if (new URLSearchParams(location.search).has("demo")) return;
  const source = new EventSource("/stream?sparse=true");
  const early = { source, kept: [], take: null };
  for (const type of ["snapshot", "delta", "runs_meta", "state", "log", "alert", "resync"]) {
    source.addEventListener(type, (event) => {
      if (early.take) early.take(type, event);
      else early.kept.push([type, event]);
    });
  }
  window.strataEarly = early;
})();
