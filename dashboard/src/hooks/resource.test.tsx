// @vitest-environment happy-dom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { useResource } from "./resource";

afterEach(cleanup);

const order: string[] = [];

function Rows() {
  order.push("rows");
  return null;
}

function Page({ enabled = true }: { enabled?: boolean }) {
  const ask = async () => {
    order.push("asked");
    return "answer";
  };
  const { data } = useResource(["page", String(enabled)], ask, { enabled });
  return (
    <>
      <Rows />
      <p>{data ?? "nothing"}</p>
    </>
  );
}

function show(enabled: boolean): void {
  order.length = 0;
  const queries = new QueryClient({ defaultOptions: { queries: { staleTime: 2_000 } } });
  render(
    <QueryClientProvider client={queries}>
      <Page enabled={enabled} />
    </QueryClientProvider>,
  );
}

test("a page's request is sent before its rows are rendered, and once", async () => {
  show(true);
  expect(order.slice(0, 2)).toEqual(["asked", "rows"]);
  await screen.findByText("answer");
  expect(order.filter((one) => one === "asked")).toHaveLength(1);
});

test("what is not wanted is not asked for", async () => {
  show(false);
  await screen.findByText("nothing");
  expect(order).not.toContain("asked");
});
