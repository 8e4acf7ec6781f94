/// <reference types="vitest/config" />
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig, type HttpProxy, type ProxyOptions } from "vite";

// Only these paths belong to the server; every page of the dashboard lives under / and /ui/….
const serverPaths = ["/api", "/stream", "/runs", "/metrics", "/checkpoints", "/health"];
const target = process.env["STRATA_HTTP"] ?? "http://127.0.0.1:3000";
const proxy = Object.fromEntries(
  serverPaths.map((path): [string, ProxyOptions] => [path, { target, changeOrigin: true, configure: speakAsOwnPage }]),
);

/** The server refuses pages of other origins. A page of this dev server is ours, so its calls bear the server's origin. */
function speakAsOwnPage(server: HttpProxy.ProxyServer): void {
  server.on("proxyReq", (outgoing, incoming) => {
    const { origin, host } = incoming.headers;
    if (origin === `http://${host}`) outgoing.setHeader("origin", new URL(target).origin);
  });
}

process.env["VITE_API_URL"] ??= "/api"; // index.html names it, too

export default defineConfig({
  plugins: [react(), tailwindcss()],
  base: "/",
  resolve: { alias: { "@": new URL("./src", import.meta.url).pathname } },
  server: { proxy },
  build: {
    target: "es2022",
    chunkSizeWarningLimit: 400,
    cssCodeSplit: false,
    rolldownOptions: {
      output: {
        // Few files, because HTTP/1.1 gives a page six connections and the stream holds one of them.
        codeSplitting: {
          groups: [
            {
              name: "vendor",
              test: /node_modules\/(react|react-dom|scheduler|zustand|wouter|regexparam|use-sync-external-store|@tanstack\/(query-core|react-query))\//,
            },
            { name: "chart", test: /(node_modules\/uplot|src\/components\/(chart|metric))\// },
            {
              name: "shared",
              test: /(node_modules\/lucide-react|src\/(components\/ui|hooks|stores|data|lib|api\/[a-z-]+\.ts))/,
              minShareCount: 2,
            },
          ],
        },
      },
    },
  },
  test: {
    environment: "node",
    include: ["src/**/*.test.{ts,tsx}"],
    restoreMocks: true,
    testTimeout: 60_000, // a busy machine
    pool: "threads", // a process for each file takes twice as long
    maxWorkers: "100%",
  },
});
