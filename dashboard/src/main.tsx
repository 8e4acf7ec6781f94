import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "@/app/app";
import { preloadPage } from "@/app/pages";
import { installProbe } from "@/app/probe";
import "./index.css";

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");
installProbe();
preloadPage(location.pathname);
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
