/**
 * A column of numbers that doubles as it fills. Whole numbers are kept as distances from the first one, in as few bytes
 * as all of them fit; everything else takes eight. A null is what JSON has for NaN: kept as NaN, read as null.
 */

const KINDS = [Int8Array, Int16Array, Int32Array, Float64Array] as const;
const WIDEST = KINDS.length - 1;
const LEAST = 16;

export class Column<T extends number | null = number> {
  #kind = 0;
  /** What every number is a distance from; 0 in the widest kind. */
  #base = 0;
  #data: InstanceType<(typeof KINDS)[number]>;
  #length = 0;

  constructor(values: Iterable<T> & { readonly length: number } = []) {
    this.#data = new Int8Array(values.length);
    for (const value of values) this.push(value);
  }

  get length(): number {
    return this.#length;
  }

  /** As an array has it: a negative place counts from the end. */
  at(place: number): T | undefined {
    const i = place < 0 ? this.#length + place : place;
    if (!(i >= 0 && i < this.#length)) return undefined;
    const value = this.#data[i] as number;
    if (this.#kind < WIDEST) return (value + this.#base) as T;
    return (Number.isNaN(value) ? null : value) as T;
  }

  push(value: T): void {
    if (this.#length === 0 && this.#kind < WIDEST && isWhole(value)) this.#base = value;
    this.#length += 1;
    if (this.#length > this.#data.length) this.#resize(this.#kind);
    this.set(this.#length - 1, value);
  }

  set(i: number, value: T): void {
    const kind = this.#kindFor(value);
    if (kind > this.#kind) this.#resize(kind);
    this.#data[i] = (value ?? Number.NaN) - this.#base;
  }

  /** Leaves the first ones; the room of the others is used again. */
  truncate(length: number): void {
    this.#length = Math.min(this.#length, length);
  }

  slice(from = 0): T[] {
    return [...this].slice(from);
  }

  *[Symbol.iterator](): Generator<T> {
    for (let i = 0; i < this.#length; i += 1) yield this.at(i) as T;
  }

  #kindFor(value: T): number {
    if (this.#kind === WIDEST || !isWhole(value)) return WIDEST;
    const far = Math.abs(value - this.#base);
    if (far < 2 ** 7) return 0;
    return far < 2 ** 15 ? 1 : far < 2 ** 31 ? 2 : WIDEST;
  }

  #resize(kind: number): void {
    const room = this.#length <= this.#data.length ? this.#data.length : roomFor(this.#length);
    const next = new (KINDS[kind] ?? Float64Array)(room);
    if (kind === WIDEST && this.#kind < WIDEST) {
      for (let i = 0; i < this.#data.length; i += 1) next[i] = (this.#data[i] ?? 0) + this.#base;
      this.#base = 0;
    } else next.set(this.#data);
    this.#data = next;
    this.#kind = kind;
  }
}

/** The next power of two: a column that is folded at two thousand never has room for four. */
function roomFor(length: number): number {
  return Math.max(LEAST, 2 ** Math.ceil(Math.log2(length)));
}

/** -0 is no distance from anything. */
function isWhole(value: number | null): value is number {
  return Number.isInteger(value) && !Object.is(value, -0);
}
