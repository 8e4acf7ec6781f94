// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { workerQuery } from "./targets";

test("what is typed is a question to the server: a rank is a number, the kind is no part of it", () => {
  expect(workerQuery("rank 57")).toEqual({ q: "", rank: 57 });
  expect(workerQuery("worker  host-3 Rank 7")).toEqual({ q: "host-3", rank: 7 });
  expect(workerQuery("host-3 rank")).toEqual({ q: "host-3 rank" });
});
