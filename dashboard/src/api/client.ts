/** fetch with typed errors. The only file that knows the base URL. A token travels as the cookie that
 * signing in sets. */
import type { ErrorAnswer } from "./wire";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string | null,
    /** The part of the request that is wrong, where it is one. */
    readonly field: string | null = null,
  ) {
    super(message);
    this.name = "ApiError";
  }
}

export const apiBase: string = (import.meta.env["VITE_API_URL"] ?? "/api").replace(/\/+$/, "");
/** The page is served from elsewhere: cookies travel only when asked to. */
export const isElsewhere: boolean = /^https?:/.test(apiBase);
/** The stream is served beside the API, not below it. */
export const streamUrl: string = `${apiBase.replace(/\/api$/, "")}/stream`;

export function toQuery(params: object): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== undefined && item !== null && item !== "") query.append(key, String(item));
    }
  }
  const text = query.toString();
  return text ? `?${text}` : "";
}

let awaited = 0;

/** How many requests wait for their answer. */
export function numAwaited(): number {
  return awaited;
}

export async function send(...request: Parameters<typeof exchange>): Promise<unknown> {
  awaited += 1;
  try {
    return await exchange(...request);
  } finally {
    awaited -= 1;
  }
}

async function exchange(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
  more: Record<string, string> = {},
): Promise<unknown> {
  const headers: Record<string, string> = { Accept: "application/json", ...more };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(`${apiBase}${path}`, {
      method,
      headers,
      ...(isElsewhere && { credentials: "include" as const }),
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    });
  } catch (cause) {
    if (signal?.aborted) throw cause;
    throw new ApiError(0, "unreachable", "The server does not answer.", "Is `strata up` running on this address?");
  }
  if (!response.ok) throw await toError(response);
  const type = response.headers.get("content-type") ?? "";
  if (!type.includes("json")) {
    throw new ApiError(response.status, "not_json", `The server has no ${path.split("?")[0]} yet.`, null);
  }
  return response.json();
}

async function toError(response: Response): Promise<ApiError> {
  const fallback = `The server answered ${response.status} ${response.statusText}`.trim();
  try {
    const { error } = (await response.json()) as Partial<ErrorAnswer>;
    if (response.status === 405)
      return new ApiError(405, "unsupported", "This server cannot do that yet.", "A newer version may.");
    if (error) return new ApiError(response.status, error.code, error.message, error.hint || null, error.field);
  } catch {
    // Not JSON: the status line is all there is to say.
  }
  return new ApiError(response.status, "error", fallback, null);
}
