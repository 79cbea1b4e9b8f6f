// Takes streams of text apart as they come: lines, and server-sent events. Does not fetch.

export interface ServerEvent {
  name: string;
  data: string;
}

/** Whole lines out of pieces that end anywhere. */
export class LineReader {
  #rest = '';

  *read(piece: string): Generator<string> {
    const lines = (this.#rest + piece).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) if (line !== '') yield line;
  }
}

/** Events as WHATWG HTML, section 9.2, has them, as far as the gate sends them. */
export class EventReader {
  #rest = '';

  *read(piece: string): Generator<ServerEvent> {
    const blocks = (this.#rest + piece).split('\n\n');
    this.#rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const event = { name: 'message', data: '' };
      for (const line of block.split('\n')) {
        if (line.startsWith('event: ')) event.name = line.slice(7);
        else if (line.startsWith('data: ')) event.data += (event.data && '\n') + line.slice(6);
      }
      if (event.data) yield event;
    }
  }
}
