import { untrustedParserOf, type Parsed } from '../../values/parse-schema.ts'
import type { Json, JsonObject } from '../../values/json.ts'
import { invalidKeyword } from '../../values/schema-problem.ts'

export type SafeParser = (value: Json) => Parsed

/** The parser of a schema that a server has sent. Throws if the schema is not valid: a provider would reject the request. */
export function safeParser(schema: JsonObject): SafeParser {
  const problem = invalidKeyword(schema)
  if (problem !== undefined) throw new TypeError(problem)
  return untrustedParserOf(schema)
}
