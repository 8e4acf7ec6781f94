/** Where the bytes of a run's file are. */
import { apiBase, isElsewhere } from "@/api/client";

export function fileUrl(run: string, file: string): string {
  return `${apiBase}/runs/${encodeURIComponent(run)}/files/${file}`;
}

/** The file itself; an error says what is wrong. */
export async function fetchFile(run: string, file: string, signal?: AbortSignal): Promise<Response> {
  const response = await fetch(fileUrl(run, file), {
    ...(isElsewhere && { credentials: "include" as const }),
    ...(signal && { signal }),
  });
  if (!response.ok) throw new Error(response.status === 404 ? "The file was removed." : `HTTP ${response.status}`);
  return response;
}
