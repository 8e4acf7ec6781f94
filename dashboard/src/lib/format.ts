/** Numbers, sizes and times as a person reads them. Unknown is an en dash, never 0. */

export const UNKNOWN = "–";
type Maybe = number | null | undefined;

function known(value: Maybe): value is number {
  return value !== null && value !== undefined && Number.isFinite(value);
}

/** Four significant digits at most; exponent only where it is shorter. */
export function formatValue(value: Maybe): string {
  if (value === null || value === undefined) return UNKNOWN;
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "Inf" : "−Inf";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e9)) return minus(shortExponent(value));
  if (size >= 1000) return minus(Math.round(value).toLocaleString("en-US"));
  if (Number.isInteger(value)) return minus(String(value));
  return minus(trim(value.toPrecision(4)));
}

function shortExponent(value: number): string {
  const [mantissa = "", exponent = ""] = value.toExponential(2).split("e");
  return `${trim(mantissa)}e${exponent.replace("+", "")}`;
}

/** A value with the unit its series names; bytes get their own prefixes. */
export function formatUnit(value: Maybe, unit: string): { text: string; unit: string } {
  if (known(value) && /^(bytes|B)(\/s|\/sec)?$/.test(unit)) {
    const [text = "", prefix = ""] = formatBytes(value).split(" ");
    return { text, unit: unit.includes("/") ? `${prefix}/s` : prefix };
  }
  return { text: formatValue(value), unit };
}

/** Two digits for small rates, whole numbers for large ones. */
export function formatRate(value: Maybe): string {
  if (!known(value)) return UNKNOWN;
  return formatValue(Math.abs(value) >= 10 ? Math.round(value) : Number(value.toPrecision(2)));
}

function minus(text: string): string {
  return text.replace(/^-/, "−");
}

function trim(text: string): string {
  return text.includes(".") && !text.includes("e") ? text.replace(/\.?0+$/, "") : text;
}

export function formatCount(value: Maybe): string {
  return known(value) ? Math.round(value).toLocaleString("en-US") : UNKNOWN;
}

/** 1.28M, 12.4k: for tiles and axes. */
export function formatCompact(value: Maybe): string {
  if (!known(value)) return UNKNOWN;
  const size = Math.abs(value);
  for (const [limit, letter] of [
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ] as const) {
    if (size >= limit) return minus(`${trim((value / limit).toPrecision(3))}${letter}`);
  }
  return formatValue(value);
}

export function formatBytes(value: Maybe): string {
  if (!known(value)) return UNKNOWN;
  const units = ["B", "KB", "MB", "GB", "TB", "PB"];
  let size = Math.abs(value);
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return `${value < 0 ? "−" : ""}${size.toFixed(digits)} ${units[unit]}`;
}

export function formatPercent(value: Maybe, digits = 0): string {
  return known(value) ? `${value.toFixed(digits)}%` : UNKNOWN;
}

/** 850 ms · 12.4 s · 3m 08s · 2h 05m · 4d 3h */
export function formatDuration(seconds: Maybe): string {
  if (!known(seconds) || seconds < 0) return UNKNOWN;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds < 10 ? trim(seconds.toFixed(1)) : Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes}m ${pad(whole % 60)}s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours}h ${pad(minutes % 60)}m`;
  return `${Math.floor(hours / 24)}d ${hours % 24}h`;
}

/** How long ago; the future (clocks differ) reads as now. */
export function formatAge(ms: Maybe, now: number): string {
  if (!known(ms)) return UNKNOWN;
  const seconds = (now - ms) / 1000;
  if (seconds < 1) return "now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}

export function formatClock(ms: Maybe, millis = false): string {
  if (!known(ms)) return UNKNOWN;
  const date = new Date(ms);
  const text = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
  return millis ? `${text}.${String(date.getMilliseconds()).padStart(3, "0")}` : text;
}

export function formatDateTime(ms: Maybe): string {
  if (!known(ms)) return UNKNOWN;
  const date = new Date(ms);
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ${formatClock(ms)}`;
}

function pad(value: number): string {
  return String(value).padStart(2, "0");
}
