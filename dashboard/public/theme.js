// Loaded before the first paint, so that the page never flashes in the other theme. A file, because the server's
// content security policy allows no inline script.
try {
  const saved = localStorage.getItem("strata.theme");
  const light = saved ? saved === "light" : matchMedia("(prefers-color-scheme: light)").matches;
  document.documentElement.dataset.theme = light ? "light" : "dark";
} catch {
  // Storage may be forbidden; the default theme stands.
}
