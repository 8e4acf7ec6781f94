/// <reference types="vitest/config" />
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// Only these paths belong to the server; every page of the dashboard lives under / and /ui/….
const serverPaths = ["/api", "/stream", "/runs", "/metrics", "/checkpoints", "/health"];
const target = process.env["STRATA_HTTP"] ?? "http://127.0.0.1:3000";
const proxy = Object.fromEntries(serverPaths.map((path) => [path, { target, changeOrigin: true }]));

export default defineConfig({
  plugins: [react(), tailwindcss()],
  base: "/",
  resolve: { alias: { "@": new URL("./src", import.meta.url).pathname } },
  server: { proxy },
  build: { target: "es2022", sourcemap: false, chunkSizeWarningLimit: 400 },
  test: { environment: "node", include: ["src/**/*.test.{ts,tsx}"], restoreMocks: true },
});
