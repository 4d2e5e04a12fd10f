import { inCode } from '../../values/text.ts'
import type { ErrorCode } from '../../errors.ts'
import type { Json } from '../../values/json.ts'
import type { TimedLedgerEntry } from '../state/ledger.ts'
import { has } from './warnings.ts'
import type { Decided, ExplainedRun } from './explainable.ts'

/** A run that has ended or waits, and what the advice depends on. */
type Situation = {
  readonly run: ExplainedRun
  readonly decided: Decided
  /** Failed attempts at the model call of the last step. */
  readonly attempts: number
  /** The hook whose failure ended the run. */
  readonly failed: TimedLedgerEntry | undefined
}

/** What would let the run continue, in its situation. Undefined if nothing is known to help, or nothing has to. */
export function adviceFor(run: ExplainedRun, at: Omit<Situation, 'run'>): string | undefined {
  return advice[at.decided.reason]({ run, ...at })
}

const advice: { readonly [R in Decided['reason']]: (at: Situation) => string | undefined } = {
  completed: () => undefined,
  stepsLimit: (at) => higherLimit(at, 'maxSteps'),
  tokenLimit: (at) => higherLimit(at, 'maxTokens'),
  timeLimit: (at) => higherLimit(at, 'maxTimeMs'),
  toolCallLimit: (at) => higherLimit(at, 'maxToolCalls'),
  costLimit: (at) =>
    (at.decided.by === 'guards.maxCost' || isBudget(at)) && at.decided.value === undefined
      ? 'set the price of the model: createAgent({ prices })'
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
  inputBlocked: ({ decided: { by }, failed }) => {
    if (by === APPROVAL) return APPROVER
    return failed === undefined ? `send another input: "${by}" blocked this one` : fix(failed)
  },
  stopRequested: ({ decided }) => (decided.by === APPROVAL ? APPROVER : withoutVote(decided)),
  continuationLimit: () =>
    'request fewer continuations: 8 in a row without a successful tool call and 32 in total are allowed',
  retryLimit: ({ decided: { by } }) => {
    if (by === 'selfCritique.decide')
      return 'raise selfCritique({ maxRetries }), or change the task so that the critic approves an answer'
    return by === 'retryLimit' ? 'fix the call that fails, or raise retryLimit({ maxRetries })' : undefined
  },
  finishReason: (at) => (isForced(at) ? withoutVote(at.decided) : afterFinish(at)),
  persistenceFailed: () => 'use a session store that can be written',
  errorForbade: afterError,
}

/** Who decides when a question without a tool call is blocked, and what helps then. */
const APPROVAL = 'approval'
const APPROVER = `use an approver that allows it: approval('suspend'), or approval() with a function`

function higherLimit(at: Situation, option: string): string {
  if (isBudget(at)) return `raise budget({ ${option} })`
  return at.decided.by === `guards.${option}` ? `raise guards({ ${option} })` : withoutVote(at.decided)
}

/** Whether a budget over processes ended the run: its name is part of the name of the guard. */
function isBudget({ decided }: Situation): boolean {
  return decided.by.endsWith('.reserve')
}

function withoutVote({ by, definedAt }: Decided): string {
  return `change "${by}"${placeIn(definedAt)}, which stopped the run: other hooks cannot overturn that`
}

function resumed({ session }: ExplainedRun): string {
  return session === undefined ? 'run' : inCode(session)
}

function isForced({ run }: Situation): boolean {
  return run.final?.votes.some((vote) => vote.decision === 'forbidContinuation') === true
}

function afterFinish({ run, decided }: Situation): string | undefined {
  if (decided.value === 'length') return 'raise createAgent({ settings: { maxOutputTokens } })'
  if (decided.value === 'content-filter') return 'use another input or another model'
  const by = decided.value === 'withheld' ? run.ledger.findLast(isWithholding) : undefined
  if (by?.error !== undefined) return fix(by)
  return by === undefined
    ? undefined
    : `change the input or "${by.hook}"${placeIn(by.definedAt)}, which withheld the answer`
}

function isWithholding(entry: TimedLedgerEntry): boolean {
  return entry.trigger === 'afterInference' && has(entry, 'block')
}

function afterError(at: Situation): string | undefined {
  const { run, decided, failed } = at
  if (decided.by === 'output') return 'change the output schema or the task, or raise outputOptions.maxRetries'
  const code = run.code ?? run.steps.at(-1)?.errors.at(-1)?.code
  const model = code === undefined ? undefined : modelAdvice(at, code)
  if (model === undefined && failed !== undefined) return fix(failed)
  if (!decided.by.startsWith('errorPolicy.'))
    return model ?? (code === 'SCRIPT_EXHAUSTED' ? 'add turns to the script' : undefined)
  if (model !== undefined && !isTemporary(code)) return model
  const { limit } = (decided.value ?? {}) as { readonly limit?: Json }
  return limit === 0 ? `use errorPolicy('patient'), which retries` : 'raise errorPolicy({ maxRetries })'
}

function fix({ definedAt, mode, hook }: TimedLedgerEntry): string {
  return `fix ${mode === 'guard' ? 'guard' : 'hook'} "${hook}"${placeIn(definedAt)}, which failed`
}

function placeIn(definedAt: string | undefined): string {
  return definedAt === undefined ? '' : ` (${definedAt})`
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

const OTHER_MODEL = 'use fallback() to another model'

/** What helps against an error of the model, unless the run had it already. */
function modelAdvice({ run, attempts }: Situation, code: ErrorCode): string | undefined {
  const uses = (capability: string): boolean =>
    run.hooks.some(({ name }) => name === capability || name.startsWith(`${capability}.`))
  const other = uses('fallback') ? [] : [OTHER_MODEL]
  if (isTemporary(code)) {
    const again = !uses('retry') ? ['use retry()'] : attempts > 1 ? ['raise retry({ maxRetries })'] : []
    return either([...again, ...other]) ?? 'try again later'
  }
  switch (code) {
    case 'MODEL_UNAUTHORIZED':
      return either(['use an API key that the provider accepts', ...other])
    case 'MODEL_REJECTED':
      return either(['use a model name and settings that the provider accepts', ...other])
    case 'MODEL_CONTEXT_OVERFLOW':
      return either([...(uses('summarization') ? [] : ['use summarization()']), ...other])
    case 'MODEL_CONTENT_FILTERED':
      return 'use another input or another model'
    case 'MODEL_FAILED':
      return either(other)
    default:
      return undefined
  }
}

function either(ways: readonly string[]): string | undefined {
  return ways.length === 0 ? undefined : ways.join(', or ')
}
