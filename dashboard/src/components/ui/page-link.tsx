import type { ComponentProps } from "react";
import { Link } from "wouter";
import { type Page, pathOf } from "@/lib/routes";
import type { View } from "@/lib/view-codec";
import { addressOf, useView } from "@/stores/view";

interface Props extends Omit<ComponentProps<"a">, "href"> {
  page: Page;
  id?: string | undefined;
  /** View fields to set on the way, such as the filter of a log link. */
  view?: Partial<View>;
}

/** A link to a page that keeps the view: same runs, same time range, same source. */
export function PageLink({ page, id, view, onClick, ...rest }: Props) {
  const path = pathOf(page, id);
  useView((state) => state.runs);
  useView((state) => state.range);
  useView((state) => state.demo);
  return (
    <Link
      href={addressOf(path)}
      onClick={(event) => {
        if (view) useView.getState().set(view);
        onClick?.(event);
      }}
      {...rest}
    />
  );
}
