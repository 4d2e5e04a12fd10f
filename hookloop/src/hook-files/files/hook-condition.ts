import type { Json, JsonObject } from '../../state/json.ts'
import { all, any, hasMetadata, not, stepType, type Matcher } from '../../hooks/matchers.ts'

/** The `when` of an entry, such as `{ "not": { "metadata": { "role": "guest" } } }`, as a matcher. The schema has checked it. */
export function toCondition(when: JsonObject): Matcher {
  const parts = Object.entries(when).map(([key, value]) => {
    switch (key) {
      case 'stepType':
        return stepType(value as never)
      case 'metadata':
        return all(
          ...Object.entries(value as JsonObject).map(([name, wanted]) => hasMetadata(name, wanted ?? undefined)),
        )
      case 'not':
        return not(toCondition(value as JsonObject))
      default: {
        const inner = (value as Json[]).map((each) => toCondition(each as JsonObject))
        return key === 'all' ? all(...inner) : any(...inner)
      }
    }
  })
  return all(...parts)
}
