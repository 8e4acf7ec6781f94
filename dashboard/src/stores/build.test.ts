// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { checkBuild, useBuild } from "./build";

const page = (entry: string) => `<!doctype html><head><script src="/theme.js"></script>${entry}</head><body></body>`;
const script = (name: string) => `<script type="module" crossorigin src="/assets/${name}.js"></script>`;

beforeEach(() => {
  useBuild.setState({ outdated: false });
});
afterEach(() => vi.unstubAllGlobals());

test.each([
  ["the same build", new Response(page(script("index-one"))), false],
  ["another build", new Response(page(script("index-two"))), true],
  ["no page at all", new Response(page("")), false],
  ["an error", new Response(page(script("index-two")), { status: 502 }), false],
])("after a reconnect to a server with %s", async (_, answer, outdated) => {
  vi.stubGlobal("fetch", async () => answer);
  await checkBuild("/assets/index-one.js");
  expect(useBuild.getState().outdated).toBe(outdated);
});

test("a server that is away again says nothing of its build", async () => {
  vi.stubGlobal("fetch", async () => {
    throw new TypeError("Failed to fetch");
  });
  await checkBuild("/assets/index-one.js");
  expect(useBuild.getState().outdated).toBe(false);
});
