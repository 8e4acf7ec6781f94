// Loaded before everything else: the event stream is opened while the page's code is still on its way, and what comes
// is kept in order until the page takes it over (src/api/early.ts). A file, because the server's content security policy
// allows no inline script. Nothing happens in demo mode. data-api is the VITE_API_URL that the page was built with.
(() => {
  if (new URLSearchParams(location.search).has("demo")) return;
  const api = (document.currentScript?.dataset.api ?? "/api").replace(/\/+$/, "");
  const elsewhere = /^https?:/.test(api);
  const address = `${api.replace(/\/api$/, "")}/stream?sparse=true`;
  const source = new EventSource(address, { withCredentials: elsewhere });
  const early = { source, kept: [], take: null };
  for (const type of ["snapshot", "delta", "runs_meta", "state", "log", "alert", "resync"]) {
    source.addEventListener(type, (event) => {
      if (early.take) early.take(type, event);
      else early.kept.push([type, event]);
    });
  }
  window.strataEarly = early;
})();
