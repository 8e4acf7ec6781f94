/** The name of a column of the run table, without the word that says where it comes from. */
export function columnTitle(name: string): string {
  const [, aspect] = name.match(/\.(last|min|max)$/) ?? [];
  const bare = name.replace(/^(config|summary)\./, "");
  return aspect === undefined || bare !== name ? bare : `${name.slice(0, -aspect.length - 1)}, ${aspect}`;
}
