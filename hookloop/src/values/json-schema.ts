import { canonicalText, isJsonObject, type Json, type JsonObject } from './json.ts'
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
 *
 * Of an untrusted schema, patterns are not run, because they can be as expensive as the text is long, and references to nothing are
 * ignored: then a value may be valid that the complete schema rejects, but never the other way round.
 */
export function jsonSchemaValidator(
  schema: JsonObject,
  { isUntrusted = false } = {},
): (value: Json) => readonly SchemaProblem[] {
  const known = new SchemaIndex(schema, isUntrusted)
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
  /** Whether a keyword was left out: what fits may not fit the complete schema. What does not fit never does. */
  #isOpen = false

  constructor(known: SchemaIndex, value: Json) {
    this.#known = known
    this.#value = value
  }

  /** A large value may need more checks than a small one; alternatives that multiply them may not. */
  #raiseLimit(): void {
    const limit = this.#known.isUntrusted ? MAX_CHECKS : MAX_CHECKS + 20 * canonicalText(this.#value).length
    if (this.#checks > limit) throw new Error(`The schema needs more than ${limit} checks for this value.`)
    this.#maxChecks = limit
  }

  #countChecks(count: number): void {
    this.#checks += count
    if (this.#checks > this.#maxChecks) this.#raiseLimit()
  }

  /** A text for comparison. Its length counts: several keywords may compare the same large value. */
  #textOf(value: Json): string {
    const text = canonicalText(value)
    this.#countChecks(1 + (text.length >> 3))
    return text
  }

  /** Whether the value fits. Adds what does not to the problems, and to `outer` what was checked. */
  apply(schema: Json | undefined, value: Json, at: Place | undefined, outer?: Seen): boolean {
    if (schema === true || schema === undefined) return true
    if (schema === false) return this.#fail(at, 'Nothing is allowed here.')
    if (!isJsonObject(schema)) throw new Error(`${JSON.stringify(schema).slice(0, 40)} is not a schema.`)
    this.#countChecks(1)
    if (++this.#depth > MAX_DEPTH)
      throw new Error(`The schema or the value is nested more than ${MAX_DEPTH} levels deep.`)
    const seen = this.#newSeen() // what schemas beside it have checked does not count
    let fits = this.#applyValue(schema, value, at)
    fits = this.#applyOthers(schema, value, at, seen) && fits
    if (typeof value === 'string') fits = this.#applyString(schema, value, at) && fits
    else if (typeof value === 'number') fits = this.#applyNumber(schema, value, at) && fits
    else if (Array.isArray(value)) fits = this.#applyArray(schema, value, at, seen) && fits
    else if (isJsonObject(value)) fits = this.#applyObject(schema, value, at, seen) && fits
    this.#depth--
    addSeen(outer, seen)
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
    if (Array.isArray(allowed) && !this.#known.textsIn(allowed as readonly Json[]).has(this.#textOf(value))) {
      fits = this.#fail(at, `Instance does not match any of ${this.#known.shortText(allowed as Json)}.`)
    }
    if (only !== undefined && this.#known.textOf(only) !== this.#textOf(value)) {
      fits = this.#fail(at, `Instance does not match ${this.#known.shortText(only)}.`)
    }
    return fits
  }

  /** References and the keywords that combine schemas. */
  #applyOthers(schema: JsonObject, value: Json, at: Place | undefined, seen: Seen | undefined): boolean {
    const { allOf, anyOf, oneOf, not } = schema
    let fits = true
    for (const reference of [schema['$ref'], schema['$dynamicRef']]) {
      if (typeof reference !== 'string') continue
      const found = this.#known.find(reference)
      if (found === undefined) this.#isOpen = true
      fits = this.apply(found, value, at, seen) && fits
    }
    if (Array.isArray(allOf)) for (const each of allOf) fits = this.apply(each as Json, value, at, seen) && fits
    if (Array.isArray(anyOf) && this.#count(anyOf as Json[], value, at, seen).possible === 0) {
      fits = this.#fail(at, 'Instance does not match any subschemas.')
    }
    if (Array.isArray(oneOf)) {
      const { certain, possible } = this.#count(oneOf as Json[], value, at, seen)
      if (certain > 1 || possible === 0) {
        fits = this.#fail(at, `Instance does not match exactly one subschema (${certain} matches).`)
      }
    }
    if (not !== undefined && this.#try(not, value, at).isCertain) {
      fits = this.#fail(at, 'Instance matches what "not" excludes.')
    }
    if (schema['if'] !== undefined) {
      const { isCertain, isPossible } = this.#try(schema['if'], value, at, seen)
      if (isCertain) fits = this.apply(schema['then'], value, at, seen) && fits
      else if (!isPossible) fits = this.apply(schema['else'], value, at, seen) && fits
    }
    return fits
  }

  /** How many schemas the value fits. If it fits none, the problems of the closest one are added. */
  #count(
    schemas: readonly Json[],
    value: Json,
    at: Place | undefined,
    seen: Seen | undefined,
  ): { readonly certain: number; readonly possible: number } {
    let [certain, possible] = [0, 0]
    let closest: readonly SchemaProblem[] | undefined
    for (const schema of schemas) {
      const { isCertain, isPossible, problems } = this.#try(schema, value, at, seen)
      if (isCertain) certain++
      if (isPossible) possible++
      else if (closest === undefined || depthOf(problems) > depthOf(closest)) closest = problems
    }
    if (possible === 0) this.problems.push(...(closest ?? []).slice(0, MAX_PROBLEMS - this.problems.length))
    return { certain, possible }
  }

  /** Whether the value fits, without adding problems. */
  #try(schema: Json, value: Json, at: Place | undefined, seen?: Seen) {
    const [before, wasOpen] = [this.problems, this.#isOpen]
    this.problems = []
    this.#isOpen = false
    const own = this.#newSeen()
    const isPossible = this.apply(schema, value, at, own)
    const tried = { isPossible, isCertain: isPossible && !this.#isOpen, problems: this.problems }
    this.problems = before
    this.#isOpen ||= wasOpen
    if (isPossible) addSeen(seen, own)
    return tried
  }

  #applyString(schema: JsonObject, value: string, at: Place | undefined): boolean {
    const { minLength, maxLength, pattern, format } = schema
    let fits = true
    this.#countChecks(value.length >> 5)
    if (typeof minLength === 'number' && lengthOf(value) < minLength) {
      fits = this.#fail(at, `String is too short (${lengthOf(value)} < ${minLength}).`)
    }
    if (typeof maxLength === 'number' && lengthOf(value) > maxLength) {
      fits = this.#fail(at, `String is too long (${lengthOf(value)} > ${maxLength}).`)
    }
    if (typeof pattern === 'string' && !this.#matches(pattern, value)) {
      fits = this.#fail(at, `String does not match pattern ${this.#known.shortText(pattern)}.`)
    }
    if (typeof format === 'string' && formatTests.get(format)?.(value) === false) {
      fits = this.#fail(at, `String does not match format "${format}".`)
    }
    return fits
  }

  #matches(pattern: string, text: string): boolean {
    const test = this.#known.patterns.get(pattern)
    if (test !== undefined) return test(text)
    this.#isOpen = true
    return true
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
    this.#countChecks(value.length >> 3)
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
      const tried = value.map((each, i) => this.#try(contains, each, { key: String(i), outer: at }))
      const certain = tried.filter(({ isCertain }) => isCertain).length
      const possible = tried.filter(({ isPossible }) => isPossible).length
      if (possible < minContains || certain > maxContains) {
        fits = this.#fail(at, `Array contains ${certain} matching items.`)
      }
    }
    if (uniqueItems === true && new Set(value.map((each) => this.#textOf(each))).size < value.length) {
      fits = this.#fail(at, 'Array has items that are equal.')
    }
    if (unevaluatedItems !== undefined && seen !== undefined && !this.#isOpen) {
      from(seen.items, () => unevaluatedItems)
      seen.items = value.length
    }
    return fits
  }

  #applyObject(schema: JsonObject, value: JsonObject, at: Place | undefined, seen: Seen | undefined): boolean {
    const { required, minProperties, maxProperties } = schema
    const names = Object.keys(value)
    let fits = true
    this.#countChecks((names.length >> 3) + (Array.isArray(required) ? required.length : 0))
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
    for (const name of unevaluatedProperties === undefined || this.#isOpen ? [] : names) {
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
        if (!this.#matches(pattern, key)) continue
        isKnown = true
        if (this.#known.patterns.has(pattern)) fits = this.apply(each, inner, at) && fits
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
      const all = Object.entries(dependencies)
      this.#countChecks(all.length)
      for (const [name, needed] of all) {
        if (!Object.hasOwn(value, name)) continue
        if (!Array.isArray(needed)) fits = this.apply(needed, value, at, seen) && fits
        else if (!needed.every((each) => Object.hasOwn(value, each as string))) {
          fits = this.#fail(at, `Instance has "${name}" but not all of ${this.#known.shortText(needed as Json)}.`)
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
