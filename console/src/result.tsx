// What a call answered, as a person reads it. The bytes as they came are shown elsewhere.
import type { JSX } from 'preact';
import { Json, Said } from './parts';

interface Block {
  type: string;
  text?: string;
  data?: string;
  mimeType?: string;
  uri?: string;
  name?: string;
  resource?: { uri?: string; text?: string; blob?: string; mimeType?: string };
}

interface Response {
  result?: { content?: Block[]; structuredContent?: unknown; isError?: boolean; resultType?: string };
  error?: { code: number; message: string; data?: { reason?: string; hint?: string; stderr?: string[] } };
}

export function Answer({ text }: { text: string }): JSX.Element {
  let response: Response;
  try {
    response = JSON.parse(text) as Response;
  } catch {
    return <pre tabIndex={0} role="region" aria-label="Answer">{text}</pre>;
  }
  const { result, error } = response;
  if (error) {
    return (
      <div class="failed-answer" role="alert">
        <p><b>{error.message}</b> <span class="dim">{error.code}{error.data?.reason ? `, ${error.data.reason}` : ''}</span></p>
        {error.data?.hint && <p><Said text={error.data.hint} /></p>}
        {error.data?.stderr && error.data.stderr.length > 0 && <pre tabIndex={0} role="region" aria-label="Its last words">{error.data.stderr.slice(-20).join('\n')}</pre>}
      </div>
    );
  }
  const structured = result?.structuredContent === undefined ? null : JSON.stringify(result.structuredContent);
  const shown = (result?.content ?? []).filter((block) => structured === null || block.type !== 'text' || !same(block.text, structured));
  return (
    <div class={result?.isError ? 'failed-answer' : ''}>
      {result?.isError && <p role="alert"><b>The tool says that it failed.</b></p>}
      {shown.map((block, i) => <Part key={i} block={block} />)}
      {structured !== null && <Json text={structured} label="Structured content" />}
      {shown.length === 0 && structured === null && <p class="dim">It answered nothing{result?.resultType && result.resultType !== 'complete' ? ` (${result.resultType})` : ''}.</p>}
    </div>
  );
}

/** Servers repeat structured content as text for those who do not read it. */
function same(text: string | undefined, json: string): boolean {
  try {
    return JSON.stringify(JSON.parse(text ?? '')) === json;
  } catch {
    return false;
  }
}

function Part({ block }: { block: Block }): JSX.Element {
  switch (block.type) {
    case 'text':
      return <pre class="text" tabIndex={0} role="region" aria-label="Text">{block.text}</pre>;
    case 'image':
      return /^image\/(png|jpeg|gif|webp|avif)$/.test(block.mimeType ?? '') ? <img src={`data:${block.mimeType};base64,${block.data ?? ''}`} alt="what the tool answered" /> : <p class="dim">an image of the type {block.mimeType}</p>;
    case 'resource_link':
      return <p><code>{block.uri}</code> {block.name}</p>;
    case 'resource':
      return block.resource?.text === undefined ? <p class="dim">{block.resource?.uri}: {block.resource?.blob?.length ?? 0} characters of base64</p> : <pre class="text" tabIndex={0} role="region" aria-label={block.resource.uri ?? 'Resource'}>{block.resource.text}</pre>;
    default:
      return <p class="dim">{block.type}{block.mimeType ? `, ${block.mimeType}` : ''}: {block.data?.length ?? 0} characters of base64</p>;
  }
}
