import { Component, type ReactNode } from "react";
import { Button } from "@/components/ui/button";
import { Empty } from "@/components/ui/empty";

/** A broken page must not take the shell with it; it says what broke. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (!error) return this.props.children;
    return (
      <Empty tone="bad" title="This page broke" action={<Button onClick={() => location.reload()}>Reload</Button>}>
        {error.message}
      </Empty>
    );
  }
}
