import { isJsonObject, type Json } from '../../state/json.ts'
import { all, any, hasMetadata, not, stepType, type Matcher } from '../../hooks/matchers.ts'
import { InvalidEntry } from './invalid-entry.ts'
import type { Path } from './read-document.ts'

/** What must hold for a hook of a file: what its entry says, and what holds for all of them. */
export function whenOf(given: Json | undefined, always: Matcher | undefined): { readonly when?: Matcher } {
  const own = given === undefined ? undefined : toMatcher(given, ['when'])
  const matchers = [always, own].filter((each) => each !== undefined)
  return matchers.length === 0 ? {} : { when: all(...matchers) }
}

/** `{ "metadata": { "role": "guest" } }`, `{ "stepType": "toolExecution" }`, and `all`, `any`, `not` over such. */
function toMatcher(given: Json, path: Path): Matcher {
  const entries = isJsonObject(given) ? Object.entries(given) : []
  if (entries.length === 0) throw new InvalidEntry(path, '"when" must be an object that says something')
  const parts = entries.map(([key, value]) => {
    const here = [...path, key]
    switch (key) {
      case 'stepType':
        if (!(stepTypes as readonly Json[]).includes(value)) {
          throw new InvalidEntry(here, `"stepType" must be one of ${stepTypes.join(', ')}`)
        }
        return stepType(value as never)
      case 'metadata':
        if (!isJsonObject(value)) throw new InvalidEntry(here, '"metadata" must be an object of keys and values')
        return all(...Object.entries(value).map(([name, wanted]) => hasMetadata(name, wanted ?? undefined)))
      case 'all':
      case 'any': {
        if (!Array.isArray(value)) throw new InvalidEntry(here, `"${key}" must be a list`)
        const inner = value.map((each: Json, i) => toMatcher(each, [...here, i]))
        return key === 'all' ? all(...inner) : any(...inner)
      }
      case 'not':
        return not(toMatcher(value, here))
      default:
        throw new InvalidEntry(here, `there is no "${key}" in "when". Known: metadata, stepType, all, any, not`)
    }
  })
  return all(...parts)
}

export const stepTypes = ['toolExecution', 'finalResponse', 'error'] as const
