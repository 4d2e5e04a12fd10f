import { readJson } from '../agent/output/answer-shape.ts'
import type { AgentSpec } from '../agent/subagents/agent-tool.ts'
import { runForHook } from '../agent/subagents/hook-agent.ts'
import { isAgent } from '../agent/subagents/known-agents.ts'
import { checkOptions, invalidOption } from '../agent/check-options.ts'
import type { Run } from '../agent/run.ts'
import { isJsonObject } from '../state/json.ts'
import { toTokens } from '../state/usage.ts'
import { AgentError, messageOf } from '../errors.ts'
import { action, type Action } from '../hooks/action.ts'
import { BaseContext } from '../hooks/base-context.ts'
import { noAt, readOutcome } from './outcome.ts'
import { checkQuestion, JUDGE, questionAbout, readAnswer, schemaFor, type AnswerKind } from './verdict.ts'

export type SubagentOptions = {
  /** An agent as made by `createAgent`, or what one is to be made of. It has no tools unless `tools` names some. */
  readonly definition: AgentSpec | { readonly describe: () => unknown }
  /** What it is to find out about the event, which is added to it as data. */
  readonly prompt: string
  readonly name?: string
  /** `verdict`: yes or no, and why. `outcome`: everything an action may answer with. */
  readonly answer?: AnswerKind
  /** The longest event that is told; a longer one is a failure, because half of it cannot be judged. */
  readonly maxEventCharacters?: number
}

export const subagentDefaults = Object.freeze({
  timeoutMs: 60_000,
  name: 'inspector',
  answer: 'verdict',
  maxEventCharacters: 100_000,
  maxSteps: 20,
})

/**
 * Lets another agent look into the event. The guards and limits of the run hold for it, and what it spends is counted; it is
 * recorded as a whole, and a replay does not run it again. It ends with JSON, as `answer` says; one that ends otherwise has
 * failed, which is a no of a guard.
 */
export function subagent(options: SubagentOptions): Action {
  checkOptions('subagent', options, ['definition', 'prompt', 'name', 'answer', 'maxEventCharacters'])
  checkQuestion('subagent', options)
  const { name, answer, maxEventCharacters: maxCharacters } = { ...subagentDefaults, ...options }
  const to = agentOf(options.definition)
  if (typeof name !== 'string' || name === '') throw invalidOption('subagent', '"name" must be a text', name)
  const schema = JSON.stringify(schemaFor(answer))
  const question = `${options.prompt}\n\nEnd with nothing but a JSON object that fits this schema: ${schema}`
  const label = `subagent:${name}`
  return action({
    kind: 'subagent',
    label,
    async perform(ctx, { mode, signal, timeoutMs = subagentDefaults.timeoutMs }) {
      const input = questionAbout(ctx, question, { maxCharacters, conversation: false })
      const late = AbortSignal.timeout(Math.min(timeoutMs, 2 ** 31 - 1))
      const run = await runForHook(BaseContext.hostOf(ctx), {
        name,
        to,
        input,
        signal: AbortSignal.any([signal, late]),
      })
      if (run === undefined) throw failed(label, 'needs a run to look into')
      const spent = toTokens(run.state.usage)
      try {
        if (late.aborted && !signal.aborted) {
          throw new AgentError('HOOK_TIMED_OUT', `"${label}" did not answer within ${timeoutMs} ms.`)
        }
        return { ...readAnswer(answerOf(run, label), answer, { ctx, by: label }), spent }
      } catch (thrown) {
        if (mode !== 'guard' || ctx.trigger === 'onStop') throw thrown
        return { ...readOutcome(noAt(ctx.trigger, messageOf(thrown)), ctx, label), spent } // a no that is paid for
      }
    },
  })
}

/** What is left out of a definition is nothing here: an agent that judges is not given every tool of the one it judges. */
function agentOf(definition: SubagentOptions['definition']): object {
  if (typeof definition !== 'object' || definition === null) {
    throw invalidOption('subagent', '"definition" must be an agent, or what one is made of', definition)
  }
  if (isAgent(definition)) return definition
  const names = ['instructions', 'tools', 'disallowedTools', 'model', 'settings', 'use', 'limits']
  checkOptions('subagent', definition, names)
  const { limits, ...spec } = definition as AgentSpec
  return Object.freeze({
    tools: [],
    instructions: JUDGE,
    ...spec,
    limits: { maxSteps: subagentDefaults.maxSteps, ...limits },
  })
}

function answerOf(run: Run, label: string): unknown {
  switch (run.status) {
    case 'completed': {
      const output: unknown = run.output
      return isJsonObject(output) ? output : (readJson(String(output)) ?? null)
    }
    case 'stopped':
      throw failed(label, `was stopped by "${run.by}": ${run.final.message}`)
    case 'failed':
      throw failed(label, `failed: ${run.error.message}`)
    case 'cancelled':
      throw failed(label, 'was cancelled')
    case 'suspended':
      throw failed(label, 'waits for a person, and a hook cannot')
    default:
      return run satisfies never
  }
}

function failed(label: string, how: string): AgentError {
  return new AgentError('HOOK_FAILED', `"${label}" ${how.replace(/\.$/, '')}.`)
}
