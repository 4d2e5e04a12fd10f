import { isJsonObject, type Json, type JsonObject } from '../values/json.ts'
import { jsonSchemaValidator } from '../values/json-schema.ts'
import { once } from '../system/once.ts'
import type { Path } from '../system/files/read-yaml.ts'

export type Problem = { readonly path: Path; readonly message: string }

/** Returns a function that validates a value and describes its first problem: where it is, and what was expected there. */
export function schemaCheck(schemaOf: () => JsonObject): (value: Json) => Problem | undefined {
  // Made on first use: most programs that import this read no file.
  const made = once(() => {
    const schema = schemaOf()
    return { schema, validate: jsonSchemaValidator(schema) }
  })
  return (value) => {
    const { schema, validate } = made()
    const problems = validate(value)
    if (problems.length === 0) return undefined
    // Outer problems only say that something inside them does not fit.
    const { path, message } = problems.reduce((a, b) => (b.path.length > a.path.length ? b : a))
    return problemAt(schema, value, path) ?? { path, message }
  }
}

/** Follows the path through the schema and the value, and says what the schema expects where it ends. */
function problemAt(schema: JsonObject, value: Json, path: readonly string[]): Problem | undefined {
  let node: JsonObject = schema
  let inside: Json = value
  const at: (string | number)[] = []
  for (const key of path) {
    const outer = branchFor(resolved(node, schema), inside)
    const next = Array.isArray(inside) ? outer['items'] : childOf(outer, key)
    if (!isJsonObject(next)) {
      const where = at.length === 0 ? '' : ` in ${quoted(at)}`
      return { path: [...at, key], message: `there is no "${key}"${where}. Known: ${keysOf(outer).join(', ')}` }
    }
    at.push(Array.isArray(inside) ? Number(key) : key)
    inside = (inside as JsonObject)[key]!
    node = next
  }
  return describe(resolved(node, schema), inside, { at, schema })
}

function describe(
  node: JsonObject,
  value: Json,
  { at, schema }: { readonly at: Path; readonly schema: JsonObject },
): Problem | undefined {
  const branch = branchFor(node, value)
  if (!isJsonObject(value) || branch['type'] !== 'object') {
    const { message } = expected(node, at)
    return { path: at, message: isScalar(value) ? `${message}, not ${JSON.stringify(value)}` : message }
  }
  const missing = ((branch['required'] ?? []) as readonly string[]).find((key) => !Object.hasOwn(value, key))
  if (missing !== undefined) return expected(resolved(childOf(branch, missing) as JsonObject, schema), [...at, missing])
  const choices = ((branch['oneOf'] ?? []) as readonly JsonObject[]).flatMap(({ required }) => required as string[])
  const what = at.length === 0 ? 'it' : quoted(at)
  if (choices.length > 0) return { path: at, message: `${what} needs exactly one of ${choices.join(', ')}` }
  return { path: at, message: `${what} must not be empty. Known: ${keysOf(branch).join(', ')}` }
}

function isScalar(value: Json): boolean {
  return typeof value !== 'object' && String(value).length <= 80
}

function expected(node: JsonObject, at: Path): Problem {
  return { path: at, message: `${at.length === 0 ? 'it' : quoted(at)} must be ${expectation(node)}` }
}

function expectation(node: JsonObject): string {
  const { type, minLength, pattern, minItems, items, exclusiveMinimum, minimum } = node
  if (Array.isArray(node['anyOf'])) return (node['anyOf'] as readonly JsonObject[]).map(expectation).join(' or ')
  if (Array.isArray(node['enum'])) return `one of ${node['enum'].join(', ')}`
  switch (type) {
    case 'string':
      if (pattern === undefined || pattern === NOT_BLANK)
        return (minLength ?? pattern) ? 'a non-empty string' : 'a string'
      return 'a URL that starts with http:// or https://'
    case 'boolean':
      return 'true or false'
    case 'integer':
      return typeof minimum === 'number' ? `an integer of at least ${minimum}` : 'an integer'
    case 'number':
      return exclusiveMinimum === undefined ? 'a number' : 'a positive number'
    case 'array': {
      const of = isJsonObject(items) && items['type'] === 'string' ? ' of strings' : ''
      return `a ${minItems === undefined ? '' : 'non-empty '}list${of}`
    }
    default: {
      const values = node['additionalProperties']
      return isJsonObject(values) && values['type'] === 'string' ? 'an object whose values are strings' : 'an object'
    }
  }
}

/** The pattern of texts that are more than white space. */
export const NOT_BLANK = '\\S'

/** Of several schemas, the one for values of this type. */
function branchFor(node: JsonObject, value: Json): JsonObject {
  const type = Array.isArray(value) ? 'array' : isJsonObject(value) ? 'object' : typeof value
  const branches = (node['anyOf'] ?? []) as readonly JsonObject[]
  return branches.find((branch) => branch['type'] === type) ?? node
}

function childOf(node: JsonObject, key: string): Json | undefined {
  const properties = (node['properties'] ?? {}) as JsonObject
  return Object.hasOwn(properties, key) ? properties[key] : node['additionalProperties']
}

function keysOf({ properties }: JsonObject): readonly string[] {
  return Object.keys(properties ?? {})
}

function resolved(node: JsonObject, schema: JsonObject): JsonObject {
  const { $ref } = node
  if (typeof $ref !== 'string') return node
  return (schema['definitions'] as { readonly [name: string]: JsonObject })[$ref.split('/').at(-1)!]!
}

/** Such as `"shell.args[0]"`. */
function quoted(at: Path): string {
  const keys = at.map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`))
  return `"${keys.join('').replace(/^\./, '')}"`
}
