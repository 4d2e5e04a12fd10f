import { canonicalText, isJsonObject, sameJson, type Json, type JsonObject } from './json.ts'
import { formatTests } from './json-schema-formats.ts'
import { MAX_DEPTH, SchemaIndex } from './schema-index.ts'

// Written here instead of taken from a library: the schema and the value may both come from a model or a server, so every
// check must take linear time, and the sum of all checks must have a limit. Keywords of draft 2020-12, and `items` with a
// list, `dependencies` and `definitions` of earlier ones.

/** What does not fit a schema: where in the value, and why. */
export type SchemaProblem = { readonly path: readonly string[]; readonly message: string }

const MAX_PROBLEMS = 100
/** How many subschemas are applied to how many values: nested alternatives multiply them. */
const MAX_CHECKS = 1_000_000

/**
 * Returns a function that lists what does not fit a JSON Schema. The list is empty when the value is valid. Throws a
 * TypeError for a pattern that cannot be matched in linear time.
 */
export function jsonSchemaValidator(schema: JsonObject): (value: Json) => readonly SchemaProblem[] {
  const known = new SchemaIndex(schema)
  return (value) => {
    const check = new Check(known, value)
    check.apply(schema, value, undefined)
    return check.problems
  }
}

/** A place in a value, from the inside to the outside. */
type Place = { readonly key: string; readonly outer: Place | undefined }

/** What of an object or array other keywords have checked, for `unevaluated…`. */
type Seen = { readonly names: Set<string>; items: number }

/** One validation of one value. */
class Check {
  problems: SchemaProblem[] = []
  readonly #known: SchemaIndex
  readonly #value: Json
  #checks = 0
  #maxChecks = MAX_CHECKS
  #depth = 0

  constructor(known: SchemaIndex, value: Json) {
    this.#known = known
    this.#value = value
  }

  /** A large value may need more checks than a small one; alternatives that multiply them may not. */
  #raiseLimit(): void {
    const limit = MAX_CHECKS + 20 * canonicalText(this.#value).length
    if (this.#checks > limit) throw new Error(`The schema needs more than ${limit} checks for this value.`)
    this.#maxChecks = limit
  }

  /** Whether the value fits. Adds what does not to the problems. */
  apply(schema: Json | undefined, value: Json, at: Place | undefined, seen = this.#newSeen()): boolean {
    if (schema === true || schema === undefined) return true
    if (schema === false) return this.#fail(at, 'Nothing is allowed here.')
    if (!isJsonObject(schema)) throw new Error(`${JSON.stringify(schema).slice(0, 40)} is not a schema.`)
    if (++this.#checks > this.#maxChecks) this.#raiseLimit()
    if (++this.#depth > MAX_DEPTH)
      throw new Error(`The schema or the value is nested more than ${MAX_DEPTH} levels deep.`)
    let fits = this.#applyValue(schema, value, at)
    fits = this.#applyOthers(schema, value, at, seen) && fits
    if (typeof value === 'string') fits = this.#applyString(schema, value, at) && fits
    else if (typeof value === 'number') fits = this.#applyNumber(schema, value, at) && fits
    else if (Array.isArray(value)) fits = this.#applyArray(schema, value, at, seen) && fits
    else if (isJsonObject(value)) fits = this.#applyObject(schema, value, at, seen) && fits
    this.#depth--
    return fits
  }

  /** Only schemas with `unevaluated…` need it. */
  #newSeen(): Seen | undefined {
    return this.#known.hasUnevaluated ? { names: new Set(), items: 0 } : undefined
  }

  #fail(at: Place | undefined, message: string): false {
    if (this.problems.length < MAX_PROBLEMS) this.problems.push({ path: pathTo(at), message })
    return false
  }

  #applyValue({ type, enum: allowed, const: only }: JsonObject, value: Json, at: Place | undefined): boolean {
    let fits = true
    if (type !== undefined && !(Array.isArray(type) ? type : [type]).some((each) => isOfType(value, each))) {
      const expected = (Array.isArray(type) ? type : [type]).map((each) => `"${String(each)}"`).join(' or ')
      fits = this.#fail(at, `Instance type "${typeOf(value)}" is invalid. Expected ${expected}.`)
    }
    const text = Array.isArray(allowed) ? canonicalText(value) : ''
    if (Array.isArray(allowed) && !allowed.some((each) => canonicalText(each as Json) === text)) {
      fits = this.#fail(at, `Instance does not match any of ${shortText(allowed as Json)}.`)
    }
    if (only !== undefined && !sameJson(only, value)) {
      fits = this.#fail(at, `Instance does not match ${shortText(only)}.`)
    }
    return fits
  }

  /** References and the keywords that combine schemas. */
  #applyOthers(schema: JsonObject, value: Json, at: Place | undefined, seen: Seen | undefined): boolean {
    const { allOf, anyOf, oneOf, not } = schema
    let fits = true
    for (const reference of [schema['$ref'], schema['$dynamicRef']]) {
      if (typeof reference === 'string') fits = this.apply(this.#known.find(reference), value, at, seen) && fits
    }
    if (Array.isArray(allOf)) for (const each of allOf) fits = this.apply(each as Json, value, at, seen) && fits
    if (Array.isArray(anyOf) && this.#count(anyOf as Json[], value, at, seen) === 0) {
      fits = this.#fail(at, 'Instance does not match any subschemas.')
    }
    if (Array.isArray(oneOf)) {
      const count = this.#count(oneOf as Json[], value, at, seen)
      if (count !== 1) fits = this.#fail(at, `Instance does not match exactly one subschema (${count} matches).`)
    }
    if (not !== undefined && this.#isFit(not, value, at)) fits = this.#fail(at, 'Instance matches what "not" excludes.')
    if (schema['if'] !== undefined) {
      const branch = this.#isFit(schema['if'], value, at, seen) ? 'then' : 'else'
      fits = this.apply(schema[branch], value, at, seen) && fits
    }
    return fits
  }

  /** How many schemas the value fits. If it fits none, the problems of the closest one are added. */
  #count(schemas: readonly Json[], value: Json, at: Place | undefined, seen: Seen | undefined): number {
    const before = this.problems
    let count = 0
    let closest: SchemaProblem[] | undefined
    for (const schema of schemas) {
      this.problems = []
      const own = this.#newSeen()
      if (this.apply(schema, value, at, own)) {
        count++
        addSeen(seen, own)
      } else if (closest === undefined || depthOf(this.problems) > depthOf(closest)) {
        closest = this.problems
      }
    }
    this.problems = before
    if (count === 0) this.problems.push(...(closest ?? []).slice(0, MAX_PROBLEMS - before.length))
    return count
  }

  /** Whether the value fits, without adding problems. */
  #isFit(schema: Json, value: Json, at: Place | undefined, seen?: Seen): boolean {
    const before = this.problems
    this.problems = []
    const own = this.#newSeen()
    const fits = this.apply(schema, value, at, own)
    this.problems = before
    if (fits) addSeen(seen, own)
    return fits
  }

  #applyString(schema: JsonObject, value: string, at: Place | undefined): boolean {
    const { minLength, maxLength, pattern, format } = schema
    let fits = true
    if (typeof minLength === 'number' && lengthOf(value) < minLength) {
      fits = this.#fail(at, `String is too short (${lengthOf(value)} < ${minLength}).`)
    }
    if (typeof maxLength === 'number' && lengthOf(value) > maxLength) {
      fits = this.#fail(at, `String is too long (${lengthOf(value)} > ${maxLength}).`)
    }
    if (typeof pattern === 'string' && !this.#known.patterns.get(pattern)!(value)) {
      fits = this.#fail(at, `String does not match pattern ${shortText(pattern)}.`)
    }
    if (typeof format === 'string' && formatTests.get(format)?.(value) === false) {
      fits = this.#fail(at, `String does not match format "${format}".`)
    }
    return fits
  }

  #applyNumber(schema: JsonObject, value: number, at: Place | undefined): boolean {
    const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema
    let fits = true
    if (typeof minimum === 'number' && value < minimum) fits = this.#fail(at, `${value} is less than ${minimum}.`)
    if (typeof maximum === 'number' && value > maximum) fits = this.#fail(at, `${value} is greater than ${maximum}.`)
    if (typeof exclusiveMinimum === 'number' && value <= exclusiveMinimum) {
      fits = this.#fail(at, `${value} is not greater than ${exclusiveMinimum}.`)
    }
    if (typeof exclusiveMaximum === 'number' && value >= exclusiveMaximum) {
      fits = this.#fail(at, `${value} is not less than ${exclusiveMaximum}.`)
    }
    if (typeof multipleOf === 'number' && !isMultiple(value, multipleOf)) {
      fits = this.#fail(at, `${value} is not a multiple of ${multipleOf}.`)
    }
    return fits
  }

  #applyArray(schema: JsonObject, value: readonly Json[], at: Place | undefined, seen: Seen | undefined): boolean {
    const { prefixItems, items, additionalItems, unevaluatedItems, contains, minItems, maxItems, uniqueItems } = schema
    const first = Array.isArray(items) ? items : Array.isArray(prefixItems) ? prefixItems : []
    const rest = Array.isArray(items) ? additionalItems : items
    let fits = true
    if (typeof minItems === 'number' && value.length < minItems) {
      fits = this.#fail(at, `Array has too few items (${value.length} < ${minItems}).`)
    }
    if (typeof maxItems === 'number' && value.length > maxItems) {
      return this.#fail(at, `Array has too many items (${value.length} > ${maxItems}).`) // the items are not checked
    }
    const from = (start: number, of: (index: number) => Json | undefined): void => {
      for (let i = start; i < value.length; i++) {
        fits = this.apply(of(i), value[i]!, { key: String(i), outer: at }) && fits
      }
    }
    if (first.length > 0 || rest !== undefined) from(0, (i) => (i < first.length ? (first[i] as Json) : rest))
    const checked = rest === undefined ? Math.min(first.length, value.length) : value.length
    if (seen !== undefined) seen.items = Math.max(seen.items, checked)
    if (contains !== undefined) {
      const { minContains = 1, maxContains = Infinity } = schema as { minContains?: number; maxContains?: number }
      const count = value.filter((each, i) => this.#isFit(contains, each, { key: String(i), outer: at })).length
      if (count < minContains || count > maxContains) fits = this.#fail(at, `Array contains ${count} matching items.`)
    }
    if (uniqueItems === true && new Set(value.map(canonicalText)).size < value.length) {
      fits = this.#fail(at, 'Array has items that are equal.')
    }
    if (unevaluatedItems !== undefined && seen !== undefined) {
      from(seen.items, () => unevaluatedItems)
      seen.items = value.length
    }
    return fits
  }

  #applyObject(schema: JsonObject, value: JsonObject, at: Place | undefined, seen: Seen | undefined): boolean {
    const { required, minProperties, maxProperties } = schema
    const names = Object.keys(value)
    let fits = true
    for (const name of Array.isArray(required) ? required : []) {
      if (!Object.hasOwn(value, name as string)) {
        fits = this.#fail(at, `Instance does not have required property "${String(name)}".`)
      }
    }
    if (typeof minProperties === 'number' && names.length < minProperties) {
      fits = this.#fail(at, `Instance does not have at least ${minProperties} properties.`)
    }
    if (typeof maxProperties === 'number' && names.length > maxProperties) {
      fits = this.#fail(at, `Instance does not have at most ${maxProperties} properties.`)
    }
    fits = this.#applyDependencies(schema, value, at, seen) && fits
    for (const name of names) fits = this.#applyProperty(schema, value, { key: name, outer: at }, seen) && fits
    const { unevaluatedProperties } = schema
    for (const name of unevaluatedProperties === undefined ? [] : names) {
      if (seen?.names.has(name) === true) continue
      seen?.names.add(name)
      fits = this.#applyExtra(unevaluatedProperties!, value[name]!, { key: name, outer: at }) && fits
    }
    return fits
  }

  #applyProperty(schema: JsonObject, value: JsonObject, at: Place, seen: Seen | undefined): boolean {
    const { properties, patternProperties, additionalProperties, propertyNames } = schema
    const { key } = at
    const inner = value[key]!
    let [fits, isKnown] = [true, false]
    if (propertyNames !== undefined) fits = this.apply(propertyNames, key, at) && fits
    if (isJsonObject(properties) && Object.hasOwn(properties, key)) {
      isKnown = true
      fits = this.apply(properties[key], inner, at) && fits
    }
    if (isJsonObject(patternProperties)) {
      for (const [pattern, each] of Object.entries(patternProperties)) {
        if (!this.#known.patterns.get(pattern)!(key)) continue
        isKnown = true
        fits = this.apply(each, inner, at) && fits
      }
    }
    if (!isKnown && additionalProperties !== undefined) {
      isKnown = true
      fits = this.#applyExtra(additionalProperties, inner, at) && fits
    }
    if (isKnown) seen?.names.add(key)
    return fits
  }

  #applyExtra(schema: Json, value: Json, at: Place): boolean {
    if (schema !== false) return this.apply(schema, value, at)
    return this.#fail(at, `Property "${at.key}" is not allowed.`)
  }

  #applyDependencies(schema: JsonObject, value: JsonObject, at: Place | undefined, seen: Seen | undefined): boolean {
    let fits = true
    for (const keyword of ['dependentRequired', 'dependentSchemas', 'dependencies']) {
      const dependencies = schema[keyword]
      if (!isJsonObject(dependencies)) continue
      for (const [name, needed] of Object.entries(dependencies)) {
        if (!Object.hasOwn(value, name)) continue
        if (!Array.isArray(needed)) fits = this.apply(needed, value, at, seen) && fits
        else if (!needed.every((each) => Object.hasOwn(value, each as string))) {
          fits = this.#fail(at, `Instance has "${name}" but not all of ${shortText(needed as Json)}.`)
        }
      }
    }
    return fits
  }
}

function addSeen(seen: Seen | undefined, more: Seen | undefined): void {
  if (seen === undefined || more === undefined) return
  for (const name of more.names) seen.names.add(name)
  seen.items = Math.max(seen.items, more.items)
}

function pathTo(at: Place | undefined): readonly string[] {
  const path: string[] = []
  for (let place = at; place !== undefined; place = place.outer) path.unshift(place.key)
  return path
}

function depthOf(problems: readonly SchemaProblem[]): number {
  return Math.max(0, ...problems.map(({ path }) => path.length))
}

function typeOf(value: Json): string {
  return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
}

function isOfType(value: Json, type: unknown): boolean {
  return type === 'integer' ? Number.isInteger(value) : typeOf(value) === type
}

function isMultiple(value: number, of: number): boolean {
  const times = value / of
  return Math.abs(times - Math.round(times)) < Number.EPSILON * Math.max(1, Math.abs(times))
}

/** In code points. */
function lengthOf(text: string): number {
  return text.length - (text.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0)
}

function shortText(value: Json): string {
  const text = JSON.stringify(value)
  return text.length <= 200 ? text : `${text.slice(0, 200).toWellFormed()}…`
}
