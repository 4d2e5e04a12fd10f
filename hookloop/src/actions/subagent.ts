import { action, checkSpec, failureText, isAgent, type Action, type AgentSpec } from '../plugin.ts'
import { checkOptions } from '../values/check-options.ts'
import { AgentError, toAgentError } from '../errors.ts'
import { MAX_TIMER_MS } from '../system/timeout.ts'
import { inspect } from './inspect.ts'
import { actionFailed, blockAt, readOutcome } from './outcome.ts'
import { JUDGE, MAX_EVENT_CHARS, questionAbout, readAnswer, schemaFor, type AnswerKind } from './verdict.ts'

/** Options of `subagent`. */
export type SubagentOptions = {
  /** An agent from `createAgent`, or the definition of one. It has no tools unless `tools` lists some. */
  readonly definition: AgentSpec | { readonly describe: () => unknown }
  /** What the agent has to find out about the event. The event is added to it as data. */
  readonly prompt: string
  /** The name in the ledger. Default: `inspector`. */
  readonly name?: string
  /** `verdict` (default): the agent answers with ok or not, and why. `outcome`: with an `ActionOutcome`. */
  readonly answer?: AnswerKind
  /** Maximum length of the event. Default: 100,000. A longer event is a failure: it could only be judged in part. */
  readonly maxEventChars?: number
}

const TIMEOUT_MS = 60_000
const MAX_STEPS = 20

/**
 * Runs another agent that inspects the event. The guards and limits of the run apply to it, and its cost counts. It is
 * recorded as one effect: a replay does not run it again. Its last message is JSON, as `answer` says; an agent that ends
 * without it is a failure. Guards fail closed.
 *
 * @example
 * guard('onStop', subagent({ definition: { tools: ['read_file'] }, prompt: 'Do all tests pass?' }))
 */
export function subagent(options: SubagentOptions): Action {
  checkOptions('subagent', options, names)
  const { name = 'inspector', answer = 'verdict', maxEventChars: maxChars = MAX_EVENT_CHARS } = options
  const to = agentOf(options.definition)
  const schema = JSON.stringify(schemaFor(answer))
  const question = `${options.prompt}\n\nEnd with nothing but a JSON object that fits this schema: ${schema}`
  const label = `subagent:${name}`
  return action({
    kind: 'subagent',
    label,
    limitsItself: true,
    async perform(ctx, { mode, signal, timeoutMs = TIMEOUT_MS }) {
      const input = questionAbout(ctx, question, { maxChars, conversation: false })
      const timeout = AbortSignal.timeout(Math.min(timeoutMs, MAX_TIMER_MS))
      const agent = { name, to, input, signal: AbortSignal.any([signal, timeout]) }
      const { result, problem, spent } = await inspect(ctx, agent)
      try {
        if (timeout.aborted && !signal.aborted) {
          throw new AgentError('HOOK_TIMED_OUT', `"${label}" timed out after ${timeoutMs} ms.`)
        }
        if (problem !== undefined) throw actionFailed(label, 'did not answer', problem)
        return { ...readAnswer(result, answer, { ctx, by: label }), spent }
      } catch (thrown) {
        if (mode !== 'guard' || ctx.trigger === 'onStop') throw thrown
        const error = toAgentError(thrown, 'HOOK_FAILED')
        const warnings = [{ code: 'ACTION_WARNING' as const, message: error.message }]
        const reason = `"${label}" failed: ${failureText(error, true)}.`
        return { ...readOutcome(blockAt(ctx.trigger, reason), ctx, label), warnings, spent } // the cost counts
      }
    },
  })
}

const names = ['definition', 'prompt', 'name', 'answer', 'maxEventChars']

/** An agent that judges has no tools by default, unlike a subagent, which gets those of its parent. */
function agentOf(definition: SubagentOptions['definition']): object {
  if (isAgent(definition)) return definition
  checkSpec('subagent', definition)
  const { limits, ...spec } = definition
  return Object.freeze({
    tools: [],
    instructions: JUDGE,
    ...spec,
    limits: { maxSteps: MAX_STEPS, ...limits },
  })
}
