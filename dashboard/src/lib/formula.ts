/**
 * Formulas over metrics: `train/loss - val/loss`, `max(a, 0) / 2`. A slash without spaces belongs to a name, one with spaces
 * divides; a name with other characters stands in double quotes. Read by a parser of its own; nothing is ever evaluated as code.
 */

export type Cell = number | null | undefined;
type Binary = "+" | "-" | "*" | "/" | "^";

export type Formula =
  | { kind: "number"; value: number }
  | { kind: "name"; name: string }
  | { kind: "binary"; op: Binary; left: Formula; right: Formula }
  | { kind: "call"; of: (...values: number[]) => number; args: Formula[] };

export class FormulaError extends Error {
  constructor(
    message: string,
    /** The place in the text, counted from 0. */
    readonly at: number,
  ) {
    super(message);
    this.name = "FormulaError";
  }
}

/** How a formula is told from a metric where either may stand; no metric begins so. */
export const MARK = "=";
export const isFormula = (name: string): boolean => name.startsWith(MARK);
/** As people wrote it: a formula without its mark. */
export const plainName = (name: string): string => (isFormula(name) ? name.slice(MARK.length) : name);

const FUNCTIONS = new Map<string, { of: (...values: number[]) => number; count: number }>([
  ["abs", { of: Math.abs, count: 1 }],
  ["exp", { of: Math.exp, count: 1 }],
  ["log", { of: Math.log, count: 1 }],
  ["log10", { of: Math.log10, count: 1 }],
  ["sqrt", { of: Math.sqrt, count: 1 }],
  ["min", { of: Math.min, count: 2 }],
  ["max", { of: Math.max, count: 2 }],
]);

const MAX_LENGTH = 500;
const MAX_DEPTH = 50;
const TOKEN =
  /\s*(?:("(?:[^"\\]|\\.)*")|(\d+\.?\d*(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?)|([\p{L}_][\p{L}\p{N}_.:/@%]*)|([-+*/^(),]))/uy;

interface Token {
  kind: "name" | "number" | "sign" | "end";
  text: string;
  at: number;
  quoted: boolean;
}

function tokens(text: string): Token[] {
  const out: Token[] = [];
  let at = 0;
  while (text.slice(at).trim() !== "") {
    TOKEN.lastIndex = at;
    const found = TOKEN.exec(text);
    const start = at + (text.slice(at).length - text.slice(at).trimStart().length);
    if (!found) throw new FormulaError(`“${[...text.slice(start)][0]}” is not expected`, start);
    const [, quoted, number, name, sign] = found;
    at = TOKEN.lastIndex;
    if (quoted !== undefined) {
      out.push({ kind: "name", text: quoted.slice(1, -1).replace(/\\(.)/g, "$1"), at: start, quoted: true });
    } else if (number !== undefined) out.push({ kind: "number", text: number, at: start, quoted: false });
    else if (name !== undefined) out.push({ kind: "name", text: name, at: start, quoted: false });
    else out.push({ kind: "sign", text: sign ?? "", at: start, quoted: false });
  }
  out.push({ kind: "end", text: "the end", at: text.length, quoted: false });
  return out;
}

class Parser {
  #at = 0;
  #depth = 0;

  constructor(readonly list: readonly Token[]) {}

  whole(): Formula {
    const found = this.#sum();
    this.#expect("end");
    return found;
  }

  get #next(): Token {
    return this.list[this.#at] as Token;
  }

  #is(text: string): boolean {
    return this.#next.kind === "sign" && this.#next.text === text;
  }

  #expect(kind: Token["kind"], text?: string): Token {
    const token = this.#next;
    if (token.kind !== kind || (text !== undefined && token.text !== text)) {
      throw new FormulaError(`“${token.text}” stands where ${text ? `“${text}”` : "the end"} is expected`, token.at);
    }
    this.#at += 1;
    return token;
  }

  #sum(): Formula {
    return this.#chain(["+", "-"], () => this.#product());
  }

  #product(): Formula {
    return this.#chain(["*", "/"], () => this.#power());
  }

  #chain(ops: readonly Binary[], part: () => Formula): Formula {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw new FormulaError("it is nested too deeply", this.#next.at);
    let left = part();
    for (let op = ops.find((one) => this.#is(one)); op; op = ops.find((one) => this.#is(one))) {
      this.#at += 1;
      left = { kind: "binary", op, left, right: part() };
    }
    this.#depth -= 1;
    return left;
  }

  /** Binds to the right, and closer than a minus before it: -a ^ 2 is -(a ^ 2). */
  #power(): Formula {
    if (this.#is("-")) {
      this.#at += 1;
      return { kind: "binary", op: "*", left: { kind: "number", value: -1 }, right: this.#power() };
    }
    const base = this.#atom();
    if (!this.#is("^")) return base;
    this.#at += 1;
    return { kind: "binary", op: "^", left: base, right: this.#power() };
  }

  #atom(): Formula {
    const token = this.#next;
    if (this.#is("(")) {
      this.#at += 1;
      const inner = this.#sum();
      this.#expect("sign", ")");
      return inner;
    }
    if (token.kind === "number") {
      this.#at += 1;
      return { kind: "number", value: Number(token.text) };
    }
    if (token.kind !== "name") {
      throw new FormulaError(`“${token.text}” stands where a metric or a number is expected`, token.at);
    }
    this.#at += 1;
    return !token.quoted && this.#is("(") ? this.#call(token) : { kind: "name", name: token.text };
  }

  #call(token: Token): Formula {
    const found = FUNCTIONS.get(token.text);
    if (!found) {
      throw new FormulaError(
        `there is no function ${token.text}; there are ${[...FUNCTIONS.keys()].join(", ")}`,
        token.at,
      );
    }
    this.#at += 1;
    const args = [this.#sum()];
    while (args.length < found.count) {
      this.#expect("sign", ",");
      args.push(this.#sum());
    }
    this.#expect("sign", ")");
    return { kind: "call", of: found.of, args };
  }
}

/** Throws FormulaError with the place. */
export function parseFormula(text: string): Formula {
  if (text.length > MAX_LENGTH) throw new FormulaError(`it is longer than ${MAX_LENGTH} characters`, MAX_LENGTH);
  return new Parser(tokens(text)).whole();
}

/** The sentence for somebody who typed it; null when it can be read. */
export function problemOf(text: string): string | null {
  try {
    const found = parseFormula(text);
    return namesIn(found).length > 0 ? null : "It names no metric.";
  } catch (error) {
    if (!(error instanceof FormulaError)) throw error;
    return `At character ${error.at + 1}: ${error.message}.`;
  }
}

export function namesIn(formula: Formula): string[] {
  switch (formula.kind) {
    case "number":
      return [];
    case "name":
      return [formula.name];
    case "binary":
      return [...new Set([...namesIn(formula.left), ...namesIn(formula.right)])];
    case "call":
      return [...new Set(formula.args.flatMap(namesIn))];
  }
}

/** undefined where a metric has no point, null where one is NaN or the result is no finite number. */
export function evaluate(formula: Formula, valueAt: (name: string) => Cell): Cell {
  const parts = partsOf(formula, valueAt);
  if (parts.includes(undefined)) return undefined;
  if (parts.includes(null)) return null;
  const value = apply(formula, parts as number[]);
  return Number.isFinite(value) ? value : null;
}

function partsOf(formula: Formula, valueAt: (name: string) => Cell): Cell[] {
  if (formula.kind === "number") return [formula.value];
  if (formula.kind === "name") return [valueAt(formula.name)];
  const inner = formula.kind === "binary" ? [formula.left, formula.right] : formula.args;
  return inner.map((one) => evaluate(one, valueAt));
}

function apply(formula: Formula, parts: readonly number[]): number {
  const [a = Number.NaN, b = Number.NaN] = parts;
  if (formula.kind === "call") return formula.of(...parts);
  if (formula.kind !== "binary") return a;
  switch (formula.op) {
    case "+":
      return a + b;
    case "-":
      return a - b;
    case "*":
      return a * b;
    case "/":
      return a / b;
    case "^":
      return a ** b;
  }
}
