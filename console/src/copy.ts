// A call as others would make it: the JSON-RPC request, curl, and the command line. Makes none.

export const REVISION = '2026-07-28';

/** The request of the stateless era that a client would send; `args` is JSON and stays as it is. */
export function request(tool: string, args: string): string {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': REVISION,
    'io.modelcontextprotocol/clientInfo': { name: 'console', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":${JSON.stringify(tool)},"arguments":${args},"_meta":${JSON.stringify(meta)}}}`;
}

export function curl(url: string, tool: string, args: string, needsToken: boolean): string {
  const headers = ['content-type: application/json', 'accept: application/json, text/event-stream', `mcp-protocol-version: ${REVISION}`, 'mcp-method: tools/call', `mcp-name: ${tool}`];
  const lines = [`curl -sS ${quoted(url)}`, ...headers.map((header) => `-H ${quoted(header)}`)];
  if (needsToken) lines.push('-H "authorization: Bearer $BANYAN_TOKEN"');
  return [...lines, `--data-raw ${quoted(request(tool, args))}`].join(' \\\n  ');
}

export function command(tool: string, args: string): string {
  return args === '{}' ? `banyan call ${word(tool)}` : `banyan call ${word(tool)} ${quoted(args)}`;
}

/** One word for a shell, whatever stands in it. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function word(text: string): string {
  return /^[\w.-]+$/.test(text) ? text : quoted(text);
}
