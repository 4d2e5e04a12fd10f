import type { Explainable } from '../../core/explain/explainable.ts'
import { explanation, type Explanation } from '../../core/explain/explanation.ts'
import type { JsonObject } from '../../values/json.ts'
import { shortId } from '../sessions/approval-ids.ts'
import type { SessionRef } from './next-steps.ts'
import { SESSION_OPTIONS_KEY } from './session-options.ts'
import { shellQuote } from '../terminal/shell-quote.ts'

/** The explanation of a run, whose advice is a command line or an option where there is one. */
export function explainRun(run: Explainable, ref: SessionRef | undefined, selected = ref?.options): Explanation {
  const data = explanation(run)
  const option = limitOption(run, data)
  if (option !== undefined) return { ...data, wayOn: `raise ${option}` }
  if (ref === undefined) return data
  const { session, command, options } = ref
  if (run.status === 'cancelled')
    return { ...data, wayOn: `${command} chat --session ${shellQuote(session)}${selected}` }
  if (run.status === 'running') return { ...data, wayOn: `${command} resume ${shellQuote(session)}${selected}` }
  if (run.status !== 'suspended') return data
  const approve = run.pending.map((approval) => `${command} approve ${shortId(approval, run.pending)}${options}`)
  return { ...data, wayOn: [...approve, `${command} resume ${shellQuote(session)}${selected}`].join(', then ') }
}

/** The option of `run` and `chat` that sets the limit that was reached, unless the limit is that of an agent file. */
function limitOption(run: Explainable, { decided: { by, value } }: Explanation): string | undefined {
  const { metadata = {} } = 'state' in run ? run.state : run
  const stored = (metadata[SESSION_OPTIONS_KEY] ?? {}) as JsonObject
  const [name, option] = limits[by] ?? []
  if (name === undefined || value === undefined) return undefined
  return stored['agent'] === undefined || stored[name] !== undefined ? option : undefined
}

const limits: { readonly [guard: string]: readonly [name: string, option: string] | undefined } = {
  'guards.maxSteps': ['maxSteps', '--max-steps'],
  'guards.maxTokens': ['maxTokens', '--max-tokens'],
  'guards.maxTimeMs': ['maxTime', '--max-time'],
  'guards.maxCost': ['maxCost', '--max-cost'],
}
