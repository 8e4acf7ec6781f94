// @vitest-environment happy-dom
import { cleanup, render } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import { Markdown } from "./markdown";

afterEach(cleanup);

function shown(text: string): HTMLElement {
  return render(<Markdown text={text} />).container;
}

describe("Markdown", () => {
  it("shows marks as elements", () => {
    const page = shown(
      "# Title\n\n**bold** and `code`\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n1 < 2 &amp; 3",
    );
    expect(page.querySelector("strong")?.textContent).toBe("bold");
    expect([...page.querySelectorAll("li")].map((item) => item.textContent)).toEqual(["one", "two"]);
    expect([...page.querySelectorAll("td")].map((cell) => cell.textContent)).toEqual(["1", "2"]);
    expect(page.textContent).toContain("1 < 2 & 3");
  });

  it("makes no element of HTML, and no link of a script", () => {
    const page = shown(
      '<img src=x onerror=alert(1)><script>alert(1)</script>\n\n[a](javascript:alert(1)) ![p](data:image/png;base64,x) <b onclick="x">t</b>\n\n[w](https://example.org)',
    );
    expect(page.querySelector("img, script, b, [onclick]")).toBeNull();
    expect([...page.querySelectorAll("a")].map((link) => link.getAttribute("href"))).toEqual(["https://example.org"]);
    expect(page.textContent).toContain("<script>");
  });
});
