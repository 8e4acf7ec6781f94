import { lexer, type Token, type Tokens } from "marked";
import { Fragment, type ReactNode, useMemo } from "react";

/** Markdown as elements of ours, token by token: HTML in it is shown as text, and a link leads to the web or nowhere. */
export function Markdown({ text }: { text: string }) {
  const tokens = useMemo(() => lexer(text, { gfm: true, breaks: false }), [text]);
  return <div className="flex flex-col gap-2 text-sm leading-6 break-words">{all(tokens)}</div>;
}

function all(tokens: readonly Token[] | undefined): ReactNode {
  // biome-ignore lint/suspicious/noArrayIndexKey: the tokens of a text have no identity; the whole text is replaced
  return tokens?.map((token, i) => <Fragment key={i}>{one(token)}</Fragment>);
}

function one(token: Token): ReactNode {
  switch (token.type) {
    case "space":
      return null;
    case "hr":
      return <hr className="border-line" />;
    case "br":
      return <br />;
    case "heading":
      return (
        <p className={(token as Tokens.Heading).depth < 3 ? "text-base font-semibold" : "font-semibold"}>
          {inner(token)}
        </p>
      );
    case "paragraph":
      return <p>{inner(token)}</p>;
    case "strong":
      return <strong>{inner(token)}</strong>;
    case "em":
      return <em>{inner(token)}</em>;
    case "del":
      return <del>{inner(token)}</del>;
    case "codespan":
      return <code className="rounded bg-sunken px-1 font-mono text-xs">{token["text"] as string}</code>;
    case "code":
      return (
        <pre className="overflow-x-auto rounded-md border border-line bg-sunken px-3 py-2 font-mono text-xs">
          {token["text"] as string}
        </pre>
      );
    case "blockquote":
      return <blockquote className="border-l-2 border-line-strong pl-3 text-muted">{inner(token)}</blockquote>;
    case "list":
      return list(token as Tokens.List);
    case "table":
      return table(token as Tokens.Table);
    case "link":
      return link((token as Tokens.Link).href, inner(token));
    case "image":
      return link((token as Tokens.Image).href, (token as Tokens.Image).text || "a picture");
    case "escape":
      return token["text"] as string;
    case "text":
      return "tokens" in token && token.tokens ? inner(token) : unescaped(token["text"] as string);
    default:
      return token.raw;
  }
}

function inner(token: Token): ReactNode {
  return "tokens" in token ? all(token.tokens) : null;
}

function list(token: Tokens.List): ReactNode {
  const items = token.items.map((item, i) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: as above
    <li key={i}>
      {item.task && <span aria-hidden="true">{item.checked ? "☑ " : "☐ "}</span>}
      {all(item.tokens)}
    </li>
  ));
  return token.ordered ? (
    <ol className="list-decimal pl-6" start={Number(token.start) || 1}>
      {items}
    </ol>
  ) : (
    <ul className="list-disc pl-6">{items}</ul>
  );
}

function table(token: Tokens.Table): ReactNode {
  const cell = "border-b border-line px-2 py-1 text-left";
  return (
    <table className="w-max max-w-full border-collapse text-xs">
      <thead>
        <tr>
          {token.header.map((head, i) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: as above
            <th key={i} scope="col" className={cell}>
              {all(head.tokens)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {token.rows.map((row, i) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: as above
          <tr key={i}>
            {row.map((one, j) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: as above
              <td key={j} className={cell}>
                {all(one.tokens)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function link(href: string, words: ReactNode): ReactNode {
  if (!/^(https?:|mailto:)/i.test(href)) return words;
  return (
    <a href={href} target="_blank" rel="noreferrer noopener" className="text-accent underline">
      {words}
    </a>
  );
}

/** marked keeps the entities of a text as they were written. */
function unescaped(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => ENTITIES[name] ?? "");
}

const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" };
