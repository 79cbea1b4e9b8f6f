import { describe, expect, it } from 'vitest';
import { type Field, fieldsOf, initial, typed } from '../src/schema';
import type { Schema } from '../src/shapes';

const kinds = (schema: Schema): Record<string, string> => Object.fromEntries(fieldsOf(schema).map((field) => [field.name, field.kind]));
const one = (schema: Schema): Field => fieldsOf({ properties: { x: schema } })[0] as Field;

describe('fields', () => {
  it('has one for each kind of value', () => {
    expect(kinds({
      properties: {
        s: { type: 'string' }, n: { type: 'number' }, i: { type: 'integer' }, b: { type: 'boolean' }, e: { enum: ['a', 2] },
        l: { type: 'array', items: { type: 'string' } }, o: { type: 'object', properties: { p: { type: 'string' } } },
      },
    })).toEqual({ s: 'text', n: 'number', i: 'integer', b: 'boolean', e: 'choice', l: 'list', o: 'group' });
  });
  it('takes JSON for what no field fits', () => {
    for (const schema of [{}, { type: ['string', 'number'] }, { type: 'array' }, { type: 'object' }, { type: 'array', items: { type: 'object', properties: {} } }, { anyOf: [{ type: 'string' }, { type: 'number' }] }]) {
      expect(one(schema).kind, JSON.stringify(schema)).toBe('json');
    }
  });
  it('sees through references and "this or null"', () => {
    const schema = { $defs: { zone: { type: 'string', description: 'A zone.' } }, properties: { z: { $ref: '#/$defs/zone' }, m: { anyOf: [{ $ref: '#/$defs/zone' }, { type: 'null' }], title: 'M' } } };
    expect(fieldsOf(schema).map((f) => [f.kind, f.description, f.title])).toEqual([['text', 'A zone.', 'z'], ['text', 'A zone.', 'M']]);
  });
  it('ends where a schema contains itself', () => {
    const schema: Schema = { $defs: { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } } }, turn: { $ref: '#/$defs/turn' } }, properties: { root: { $ref: '#/$defs/node' }, t: { $ref: '#/$defs/turn' } } };
    expect(kinds(schema)).toEqual({ root: 'group', t: 'json' });
  });
});

describe('values', () => {
  it('begins with what the schema gives', () => {
    const fields = fieldsOf({ required: ['e', 'b', 'o'], properties: { e: { enum: ['a', 'b'] }, b: { type: 'boolean' }, s: { type: 'string', default: 'x' }, f: { enum: ['q'] }, o: { type: 'object', properties: { d: { type: 'integer', default: 0 } } } } });
    expect(initial(fields)).toEqual({ e: 'a', b: false, s: 'x', o: { d: 0 } });
  });
  it('reads what is typed, and says what can not be read', () => {
    expect(typed(one({ type: 'integer' }), '12')).toEqual({ value: 12 });
    expect(typed(one({ type: 'integer' }), '1.5').error).toMatch(/whole number/);
    expect(typed(one({ type: 'number' }), 'many').error).toMatch(/no number/);
    expect(typed(one({ enum: [1, 2] }), '2')).toEqual({ value: 2 });
    expect(typed(one({}), '[1,').error).toBeTruthy();
    expect(typed(one({ type: 'string' }), '007')).toEqual({ value: '007' });
  });
  it('sends nothing for an empty field unless the text is required', () => {
    expect(typed(one({ type: 'string' }), '')).toEqual({});
    expect(typed({ ...one({ type: 'string' }), required: true }, '')).toEqual({ value: '' });
    expect(typed({ ...one({ type: 'integer' }), required: true }, '')).toEqual({});
  });
});
