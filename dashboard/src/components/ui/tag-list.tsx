interface Props {
  tags: readonly string[];
  /** Makes each a button. */
  onPick?(tag: string): void;
}

const CHIP = "rounded-sm border border-line bg-hover px-1.5 text-2xs leading-4 text-muted";

export function TagList({ tags, onPick }: Props) {
  return (
    <span className="inline-flex flex-wrap gap-1">
      {tags.map((tag) =>
        onPick ? (
          <button
            key={tag}
            type="button"
            title={`Only runs tagged ${tag}`}
            className={CHIP}
            onClick={() => onPick(tag)}
          >
            {tag}
          </button>
        ) : (
          <span key={tag} className={CHIP}>
            {tag}
          </span>
        ),
      )}
    </span>
  );
}
