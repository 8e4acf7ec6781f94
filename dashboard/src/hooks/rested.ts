import { useEffect, useState } from "react";

/** What somebody types, once the typing rests. */
export function useRested(text: string, ms = 150): string {
  const [rested, setRested] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setRested(text), ms);
    return () => clearTimeout(timer);
  }, [text, ms]);
  return rested;
}
