import type { Preview } from "@/api/wire";
import { Cell, isImage } from "./preview-cell";

/** Samples with a picture: the picture large, the other columns below it. */
export function Gallery({ preview }: { preview: Preview }) {
  const names = preview.columns.map((column) => column.name);
  return (
    <ul className="grid grid-cols-[repeat(auto-fill,minmax(128px,1fr))] gap-3 p-3">
      {preview.rows.map((row, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: samples have no identity; the whole list is replaced at once
        <li key={i} className="min-w-0">
          {names.map(
            (name) =>
              isImage(row[name]) && (
                <div key={name} className="mb-1.5 aspect-square w-full">
                  <Cell cell={row[name]} />
                </div>
              ),
          )}
          <dl className="grid grid-cols-[max-content_minmax(0,1fr)] gap-x-2 text-2xs leading-4">
            <dt className="text-faint">sample</dt>
            <dd className="truncate font-mono">{preview.origins[i]?.index ?? i}</dd>
            {names.map(
              (name) =>
                !isImage(row[name]) && (
                  <div key={name} className="contents">
                    <dt className="text-faint">{name}</dt>
                    <dd className="truncate">
                      <Cell cell={row[name]} />
                    </dd>
                  </div>
                ),
            )}
          </dl>
        </li>
      ))}
    </ul>
  );
}
