import { choiceOf, optionTypes, type OptionType } from '../values/option-types.ts'
import { toNameTest, type ApprovalPolicy, type Capability, type NamePattern, type OnUnknownOutcome } from '../plugin.ts'
import { checkArgument, checkOptions } from '../values/check-options.ts'

/**
 * Asks an approver about one tool call. Returns `'allow'`, `{ allow: args }` to run it with other arguments,
 * `{ block: reason }`, or `'suspend'` to leave the question open.
 */
export type ApprovalHandler = Exclude<ApprovalPolicy['answer'], string>

/** Options of `approval`. */
export type ApprovalOptions = {
  /** `'block'`: every question is blocked. `'suspend'`: the run waits for `agent.resume(run, { answers })`. A function asks now. */
  readonly answer: 'block' | 'suspend' | ApprovalHandler
  /** Tools that need approval even if no guard asks. A guard's `allow` answers these questions only. Default none. */
  readonly tools?: readonly NamePattern[]
  /** How long a question can be approved. Default: without limit. */
  readonly expiresInMs?: number
  /** What happens to a call that a crash interrupted, if its tool does not say: `'tell'` the model, or `'ask'`. Default `'tell'`. */
  readonly onUnknownOutcome?: OnUnknownOutcome
}

/**
 * Defines how an approver is asked when a hook or tool requires approval. Without this capability every question is blocked.
 *
 * @example
 * // The run is suspended; resume it here or in another process.
 * const agent = createAgent({ model, use: [approval('suspend'), deploy] })
 * const run = await agent.run('Deploy it.')
 * if (run.status === 'suspended') await agent.resume(run, { answers: { [run.pending[0].id]: 'allow' } })
 *
 * @example
 * approval({ answer: (question) => (confirm(question.message) ? 'allow' : { block: 'Blocked.' }), tools: ['bash'] })
 */
export function approval(given: ApprovalOptions['answer'] | ApprovalOptions): Capability {
  const options: ApprovalOptions = typeof given === 'object' && given !== null ? given : { answer: given }
  checkOptions('approval', options, types)
  const { answer, tools = [], expiresInMs, onUnknownOutcome = 'tell' } = options
  checkArgument('approval', ['answer', answer], approvalAnswer[0](answer), approvalAnswer[1])
  const tests = tools.map(toNameTest)
  const asksAbout: ApprovalPolicy['asksAbout'] = (name) => tests.some((test) => test(name))
  return { name: 'approval', approval: { answer, expiresInMs, asksAbout, onUnknownOutcome } }
}

/** How an approver is asked. */
export const approvalAnswer: OptionType = [
  (value) => value === 'block' || value === 'suspend' || typeof value === 'function',
  `'block', 'suspend' or a function`,
]

const types = {
  answer: optionTypes.any, // checked above, because it is required
  tools: optionTypes.patterns,
  expiresInMs: optionTypes.positive,
  onUnknownOutcome: choiceOf('tell', 'ask'),
}
