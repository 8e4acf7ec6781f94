// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Opening } from "./opening";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A page that is busy until the test says otherwise. */
function waiting() {
  const page = { busy: true };
  const opening = new Opening(() => page.busy);
  const over = vi.fn();
  void opening.rested().then(over);
  return { page, opening, over };
}

test("nothing is at rest before the page is here, however little is awaited", async () => {
  const { page, opening, over } = waiting();
  page.busy = false;
  await vi.advanceTimersByTimeAsync(4_000);
  expect(over).not.toHaveBeenCalled();
  opening.shown();
  await vi.advanceTimersByTimeAsync(200);
  expect(over).toHaveBeenCalledOnce();
});

test("what the page asks for is waited for, and for what it asks after the answer", async () => {
  const { page, opening, over } = waiting();
  opening.shown();
  await vi.advanceTimersByTimeAsync(200);
  page.busy = false;
  await vi.advanceTimersByTimeAsync(20);
  page.busy = true;
  await vi.advanceTimersByTimeAsync(200);
  expect(over).not.toHaveBeenCalled();
  page.busy = false;
  await vi.advanceTimersByTimeAsync(200);
  expect(over).toHaveBeenCalledOnce();
});

test("a page that is always busy, or whose code never comes, keeps nobody waiting for ever", async () => {
  const busy = waiting();
  busy.opening.shown();
  const lost = waiting();
  lost.page.busy = false;
  await vi.advanceTimersByTimeAsync(1_200);
  expect([busy.over.mock.calls.length, lost.over.mock.calls.length]).toEqual([1, 0]);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(lost.over).toHaveBeenCalledOnce();
});
