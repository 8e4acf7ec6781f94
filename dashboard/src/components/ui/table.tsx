import type { Key, ReactNode } from "react";
import { cx } from "@/lib/cx";

export interface Column<T> {
  key: string;
  title: string;
  cell(row: T): ReactNode;
  /** Numbers stand right. */
  right?: boolean;
  /** False where there is nothing to sort by. */
  sort?: boolean;
  /** Left out below the given width. */
  from?: "sm" | "md" | "lg" | "xl";
  className?: string;
}

interface Props<T> {
  label: string;
  rows: readonly T[];
  columns: readonly Column<T>[];
  rowKey(row: T): Key;
  /** Marks a row: the one a link points to, or one in trouble. */
  rowClass?(row: T): string | undefined;
  sort?: { key: string; down: boolean };
  onSort?(key: string): void;
}

const FROM = { sm: "max-sm:hidden", md: "max-md:hidden", lg: "max-lg:hidden", xl: "max-xl:hidden" };

export function Table<T>({ label, rows, columns, rowKey, rowClass, sort, onSort }: Props<T>) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section aria-label={label} tabIndex={0} className="relative overflow-x-auto">
      <table className="w-full border-collapse text-xs">
        <thead>
          <tr className="text-left text-2xs text-faint">
            {columns.map((column) => (
              <th
                key={column.key}
                scope="col"
                aria-sort={sort?.key === column.key ? (sort.down ? "descending" : "ascending") : undefined}
                className={cx(
                  "h-8 border-b border-line px-3 font-medium whitespace-nowrap",
                  column.right && "text-right",
                  column.from && FROM[column.from],
                )}
              >
                {column.title === "" ? (
                  <span className="sr-only">Actions</span>
                ) : onSort && column.sort !== false ? (
                  <button type="button" className="font-medium hover:text-fg" onClick={() => onSort(column.key)}>
                    {column.title}
                    <span aria-hidden="true">{sort?.key === column.key ? (sort.down ? " ↓" : " ↑") : ""}</span>
                  </button>
                ) : (
                  column.title
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr
              key={rowKey(row)}
              className={cx("border-b border-line last:border-0 hover:bg-hover/60", rowClass?.(row))}
            >
              {columns.map((column) => (
                <td
                  key={column.key}
                  className={cx(
                    "h-9 px-3 py-1 whitespace-nowrap",
                    column.right && "text-right",
                    column.from && FROM[column.from],
                    column.className,
                  )}
                >
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
