// A JSON Schema as the fields of a form, and what is typed as the values of arguments. What no field fits is typed as JSON. Validates
// nothing: the server does, and says what is wrong.
import type { Schema } from './shapes';

export type Kind = 'text' | 'number' | 'integer' | 'boolean' | 'choice' | 'list' | 'group' | 'json';

export interface Field {
  name: string;
  kind: Kind;
  title: string;
  description: string;
  required: boolean;
  /** What the schema says of the value: its type and bounds. */
  hint: string;
  choices: unknown[];
  fields: Field[];
  /** Of a list: what its entries are. */
  item?: Field;
  initial?: unknown;
  long: boolean;
}

const DEEPEST = 4;

/** The fields of an object's schema. */
export function fieldsOf(schema: Schema | undefined, root: Schema = schema ?? {}, depth = 0): Field[] {
  const whole = resolved(schema ?? {}, root);
  return Object.entries(whole.properties ?? {}).map(([name, of]) => field(name, of, root, whole.required?.includes(name) ?? false, depth));
}

function field(name: string, raw: Schema, root: Schema, required: boolean, depth: number): Field {
  const schema = resolved(raw, root);
  const kind = kindOf(schema, depth);
  const item = kind === 'list' ? field('', schema.items as Schema, root, false, depth + 1) : undefined;
  const isFlat = !item || ['text', 'number', 'integer', 'choice'].includes(item.kind);
  return {
    name,
    kind: isFlat ? kind : 'json',
    title: raw.title ?? schema.title ?? name,
    description: raw.description ?? schema.description ?? '',
    required,
    hint: hint(schema),
    choices: schema.enum ?? [],
    fields: kind === 'group' ? fieldsOf(schema, root, depth + 1) : [],
    ...(item && isFlat ? { item } : {}),
    ...('default' in schema ? { initial: schema.default } : {}),
    long: (schema.maxLength ?? 0) > 200 || /text|body|content|query|prompt|code|message/i.test(name),
  };
}

function kindOf(schema: Schema, depth: number): Kind {
  if (schema.enum) return 'choice';
  switch (typeOf(schema)) {
    case 'string':
      return 'text';
    case 'number':
      return 'number';
    case 'integer':
      return 'integer';
    case 'boolean':
      return 'boolean';
    case 'array':
      return typeof schema.items === 'object' ? 'list' : 'json';
    case 'object':
      return schema.properties && depth < DEEPEST ? 'group' : 'json';
    default:
      return 'json';
  }
}

/** The one type besides null; where there are several, none. */
function typeOf(schema: Schema): string | undefined {
  const types = [schema.type ?? []].flat().filter((type) => type !== 'null');
  return types.length === 1 ? types[0] : schema.properties ? 'object' : undefined;
}

/** Follows references within the schema, and sees through "this or null". */
function resolved(schema: Schema, root: Schema, depth = 0): Schema {
  if (depth > 8) return {};
  if (schema.$ref) {
    const path = schema.$ref.replace(/^#\/?/, '').split('/').filter(Boolean);
    const found = path.reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key.replaceAll('~1', '/').replaceAll('~0', '~')], root);
    return schema.$ref.startsWith('#') && found ? resolved(found as Schema, root, depth + 1) : {};
  }
  const ways = (schema.anyOf ?? schema.oneOf)?.filter((way) => way.type !== 'null');
  const only = ways?.length === 1 ? ways[0] : schema.allOf?.length === 1 ? schema.allOf[0] : undefined;
  if (!only) return schema;
  const { anyOf: _a, oneOf: _o, allOf: _l, ...rest } = schema;
  return { ...resolved(only, root, depth + 1), ...rest };
}

function hint(schema: Schema): string {
  const said = [[schema.type ?? []].flat().join(' or ')];
  if (schema.format) said.push(schema.format);
  if (schema.minimum !== undefined) said.push(`≥ ${schema.minimum}`);
  if (schema.maximum !== undefined) said.push(`≤ ${schema.maximum}`);
  if (schema.minLength) said.push(`at least ${schema.minLength} characters`);
  if (schema.maxLength !== undefined) said.push(`at most ${schema.maxLength} characters`);
  if (schema.pattern) said.push(`like ${schema.pattern}`);
  return said.filter(Boolean).join(', ');
}

/** What a form begins with: what is required and has a value of its own. */
export function initial(fields: Field[]): Record<string, unknown> {
  const value: Record<string, unknown> = {};
  for (const field of fields) {
    if (field.initial !== undefined && field.initial !== null) value[field.name] = field.initial;
    else if (field.kind === 'group' && field.required) value[field.name] = initial(field.fields);
    else if (field.kind === 'boolean' && field.required) value[field.name] = false;
    else if (field.kind === 'choice' && field.required && field.choices.length > 0) value[field.name] = field.choices[0];
  }
  return value;
}

/** What was typed into a field; `undefined`: nothing is sent for it. An error is a sentence. */
export function typed(field: Field, text: string): { value?: unknown; error?: string } {
  if (text === '' && !(field.kind === 'text' && field.required)) return {};
  switch (field.kind) {
    case 'text':
      return { value: text };
    case 'number':
    case 'integer': {
      const value = Number(text);
      if (!Number.isFinite(value)) return { error: `${text} is no number` };
      if (field.kind === 'integer' && !Number.isInteger(value)) return { error: `${text} is no whole number` };
      return { value };
    }
    case 'choice':
      return { value: field.choices.find((choice) => String(choice) === text) ?? text };
    default:
      try {
        return { value: JSON.parse(text) };
      } catch (error) {
        return { error: (error as Error).message };
      }
  }
}
