import type { Place } from "@/lib/routes";

export function PageView({ place }: { place: Place }) {
  return <h1 className="p-4 text-base font-semibold capitalize">{place.page}</h1>;
}
