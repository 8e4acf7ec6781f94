/** True when a key press belongs to a control or to the browser, so that no shortcut may take it. */
export function isTyping(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return true;
  const target = event.target;
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return true;
  // Space and Enter press buttons and links.
  return (event.key === " " || event.key === "Enter") && /^(BUTTON|A|SUMMARY)$/.test(target.tagName);
}
