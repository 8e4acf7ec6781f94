/** Sends a real test message to targets, and keeps in words what came of it. */
import { useState } from "react";
import { describe } from "@/components/ui/confirm";
import { requests } from "@/data/source";
import { formatClock } from "@/lib/format";

export interface TestResult {
  target: string;
  ok: boolean;
  text: string;
}

export function useTargetTest() {
  const [busy, setBusy] = useState(false);
  const [results, setResults] = useState<readonly TestResult[]>([]);
  const test = async (targets: readonly string[]) => {
    setBusy(true);
    setResults([]);
    const found = await Promise.all(targets.map(tryOne));
    setResults(found);
    setBusy(false);
  };
  return { busy, results, test };
}

async function tryOne(target: string): Promise<TestResult> {
  try {
    await requests().testTarget(target);
    return { target, ok: true, text: `${target} took the test message at ${formatClock(Date.now())}.` };
  } catch (cause) {
    return { target, ok: false, text: `The test message was not sent. ${describe(cause)}` };
  }
}
