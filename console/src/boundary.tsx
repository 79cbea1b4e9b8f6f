// Keeps the rest of the page when a view can not be drawn.
import { Component, type ComponentChildren } from 'preact';

interface Props {
  /** Name of what is drawn; another one is tried anew. */
  of: string;
  children: ComponentChildren;
}

export class Boundary extends Component<Props, { why: string | null; of: string }> {
  override state = { why: null as string | null, of: '' };

  static override getDerivedStateFromError(error: unknown): { why: string } {
    return { why: error instanceof Error ? error.message : String(error) };
  }

  static override getDerivedStateFromProps({ of }: Props, state: { of: string }): { of: string; why?: null } {
    return of === state.of ? { of } : { of, why: null };
  }

  override render(): ComponentChildren {
    const { why } = this.state;
    if (why === null) return this.props.children;
    return (
      <section class="closed" role="alert">
        <h2>This view can not be shown</h2>
        <p>The page could not draw the answer of the gate. Other views are not affected.</p>
        <pre class="error" tabIndex={0} role="region" aria-label="What went wrong">{why}</pre>
        <p><button type="button" onClick={() => this.setState({ why: null })}>Try again</button></p>
      </section>
    );
  }
}
