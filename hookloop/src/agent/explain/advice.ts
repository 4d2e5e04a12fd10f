import { inCode } from '../../state/text.ts'
import type { ErrorCode } from '../../errors.ts'
import type { Json } from '../../state/json.ts'
import type { TimedLedgerEntry } from '../../state/ledger.ts'
import type { Decided, ExplainedRun } from './explainable.ts'

/** A run that has ended or waits, and what the advice depends on. */
type Situation = {
  readonly run: ExplainedRun
  readonly decided: Decided
  /** Failed attempts at the model call of the last step. */
  readonly attempts: number
  /** Whether the run had a capability. */
  readonly has: (capability: string) => boolean
}

/** What would let the run continue, in its situation. Undefined if nothing is known to help, or nothing has to. */
export function adviceFor(run: ExplainedRun, decided: Decided, attempts: number): string | undefined {
  const { hooks } = run
  const has = (capability: string): boolean =>
    hooks.some(({ name }) => name === capability || name.startsWith(`${capability}.`))
  return advice[decided.reason]({ run, decided, attempts, has })
}

const advice: { readonly [R in Decided['reason']]: (at: Situation) => string | undefined } = {
  completed: () => undefined,
  stepsLimit: (at) => higherLimit(at, 'maxSteps'),
  tokenLimit: (at) => higherLimit(at, 'maxTokens'),
  timeLimit: (at) => higherLimit(at, 'maxTimeMs'),
  toolCallLimit: (at) => higherLimit(at, 'maxToolCalls'),
  costLimit: (at) =>
    (at.decided.by === 'guards.maxCost' || isBudget(at)) && at.decided.value === undefined
      ? 'a price for the model: createAgent({ prices })'
      : higherLimit(at, 'maxCost'),
  approval: ({ run }) => {
    return `agent.resume(${resumed(run)}, { answers: { ${run.pending.map(({ id }) => `${inCode(id)}: 'allow'`).join(', ')} } })`
  },
  paused: ({ run }) => `agent.resume(${resumed(run)})`,
  unfinished: ({ run }) => `agent.resume(${resumed(run)})`,
  userRequested: ({ run, decided }) =>
    run.status !== 'cancelled'
      ? withoutVote(decided)
      : `agent.run(input, ${run.session === undefined ? '{ from: run }' : `{ session: ${inCode(run.session)} }`})`,
  inputBlocked: ({ run, decided: { by } }) => {
    if (by === APPROVAL) return APPROVER
    const entry = run.ledger.findLast(({ trigger, hook, path }) => trigger === 'onUserInput' && hook === by && !path)
    return entry?.error === undefined ? `another input: "${by}" blocked this one` : notFailing(entry)
  },
  stopRequested: ({ decided }) => (decided.by === APPROVAL ? APPROVER : withoutVote(decided)),
  continuationLimit: () => 'a successful tool call between continuations: 8 in a row and 32 in total are allowed',
  retryLimit: ({ decided: { by } }) => {
    if (by === 'selfCritique.decide')
      return 'an answer that the critic approves, or a higher selfCritique({ maxRetries })'
    return by === 'retryLimit' ? 'a call that succeeds, or a higher retryLimit({ maxRetries })' : undefined
  },
  finishReason: (at) => (isForced(at) ? withoutVote(at.decided) : afterFinish(at)),
  persistenceFailed: ({ run }) =>
    run.session === undefined ? 'a recording that can be written' : 'a session store that can be written',
  errorForbade: afterError,
}

/** Who decides when a question without a tool call is denied, and what helps then. */
const APPROVAL = 'approval'
const APPROVER = `an approver that allows it: approval('suspend'), or approval() with a function`

function higherLimit(at: Situation, option: string): string {
  const { by } = at.decided
  if (isBudget(at)) return `a higher budget({ ${option} })`
  return by === `guards.${option}` ? `a higher guards({ ${option} })` : withoutVote({ by })
}

/** Whether a budget over processes ended the run: its name is part of the name of the guard. */
function isBudget({ decided }: Situation): boolean {
  return decided.by.endsWith('.reserve')
}

function withoutVote({ by }: Pick<Decided, 'by'>): string {
  return `"${by}" not voting to stop: hooks cannot overturn such a vote`
}

function resumed({ session }: ExplainedRun): string {
  return session === undefined ? 'run' : inCode(session)
}

function isForced({ run }: Situation): boolean {
  return run.final?.votes.some((vote) => vote.decision === 'forbidContinuation') === true
}

function afterFinish({ run, decided }: Situation): string | undefined {
  if (decided.value === 'length') return 'a higher createAgent({ settings: { maxOutputTokens } })'
  if (decided.value === 'content-filter') return 'another input, or another model'
  const by = decided.value === 'withheld' ? run.ledger.findLast(isWithholding) : undefined
  if (by?.error !== undefined) return notFailing(by)
  return by === undefined ? undefined : `an answer that "${by.hook}" does not withhold`
}

function isWithholding({ trigger, decision }: TimedLedgerEntry): boolean {
  return trigger === 'afterInference' && decision?.split('+').includes('block') === true
}

function afterError(at: Situation): string | undefined {
  const { run, decided } = at
  if (decided.by === 'output') return 'an answer that matches the output schema, or a higher outputOptions.maxRetries'
  const code = run.code ?? run.steps.at(-1)?.errors.at(-1)?.code
  const model = code === undefined ? undefined : modelAdvice(at, code)
  if (decided.by.startsWith('errorPolicy.')) {
    if (model !== undefined && !isTemporary(code)) return model
    const { limit } = (decided.value ?? {}) as { readonly limit?: Json }
    return limit === 0 ? `errorPolicy('patient'), which retries` : 'a higher errorPolicy({ maxRetries })'
  }
  if (model !== undefined) return model
  const failed = run.ledger.findLast(({ error, mode, path }) => error !== undefined && mode !== 'loop' && !path)
  if (failed === undefined) return code === 'SCRIPT_EXHAUSTED' ? 'a script with more turns' : undefined
  return notFailing(failed)
}

function notFailing({ definedAt, mode, hook }: TimedLedgerEntry): string {
  const place = definedAt === undefined ? '' : ` (${definedAt})`
  return `${mode === 'guard' ? 'guard' : 'hook'} "${hook}"${place} not failing`
}

/** Errors that may not happen the next time. */
const temporary: ReadonlySet<string> = new Set<ErrorCode>([
  'MODEL_RATE_LIMITED',
  'MODEL_OVERLOADED',
  'MODEL_TIMED_OUT',
  'MODEL_UNREACHABLE',
  'MODEL_REPLY_INVALID',
])

function isTemporary(code: ErrorCode | undefined): boolean {
  return code !== undefined && temporary.has(code)
}

const OTHER_MODEL = 'fallback() to another model'

/** What helps against an error of the model, unless the run had it already. */
function modelAdvice({ has, attempts }: Situation, code: ErrorCode): string | undefined {
  const other = has('fallback') ? [] : [OTHER_MODEL]
  if (isTemporary(code)) {
    const again = !has('retry') ? ['retry()'] : attempts > 1 ? ['a higher retry({ maxRetries })'] : []
    return either([...again, ...other]) ?? 'another try later'
  }
  switch (code) {
    case 'MODEL_UNAUTHORIZED':
      return either(['an API key that the provider accepts', ...other])
    case 'MODEL_REJECTED':
      return either(['a model name and settings that the provider accepts', ...other])
    case 'MODEL_CONTEXT_OVERFLOW':
      return either([...(has('summarization') ? [] : ['summarization()']), ...other])
    case 'MODEL_CONTENT_FILTERED':
      return 'another input, or another model'
    case 'MODEL_FAILED':
      return either(other)
    default:
      return undefined
  }
}

function either(ways: readonly string[]): string | undefined {
  return ways.length === 0 ? undefined : ways.join(', or ')
}
