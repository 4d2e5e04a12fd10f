import type { StopReason } from '../state/continuation.ts'
import { guard, hook, type Hook } from '../hooks/hook.ts'
import type { GuardTrigger, HookTrigger, PlainTrigger } from '../hooks/triggers.ts'

// One run with a failure at one trigger: the model requests two calls of the tool "work", then answers
// "done". A case has what is added to that run, which triggers fire, and how the run ends.

export type Case = {
  readonly title: string
  readonly use: (run: { readonly cancel: () => void }) => readonly Hook[]
  readonly model?: 'fails once' | 'waits for the signal'
  readonly tool?: 'throws' | 'waits for the signal'
  /** `status reason by`, as in the final record. */
  readonly ending: string
  readonly fired: readonly HookTrigger[]
  /** The results of the calls of all steps, in order. */
  readonly calls?: string
  readonly requests?: number
}

export const begin: readonly HookTrigger[] = ['onUserInput', 'beforeExecution']
export const ask: readonly HookTrigger[] = ['beforeStep', 'beforeInference', 'afterInference']
export const call: readonly HookTrigger[] = ['beforeToolUse', 'afterToolUse']
export const end: readonly HookTrigger[] = ['onStop', 'afterExecution']
const answered: readonly HookTrigger[] = [...ask, 'afterStep', ...end]
export const unanswered: readonly HookTrigger[] = ['beforeStep', 'beforeInference']

/** The triggers of a run without failures. */
export const natural: readonly HookTrigger[] = [...begin, ...ask, ...call, ...call, 'afterStep', ...answered]

export const completed = 'completed completed completion'

/** The triggers of a run without failures, with others inserted after the first time that a trigger fires. */
function after(trigger: HookTrigger, ...more: readonly HookTrigger[]): readonly HookTrigger[] {
  const at = natural.indexOf(trigger) + 1
  return [...natural.slice(0, at), ...more, ...natural.slice(at)]
}

/** Throws the first time it fires. */
export function failing(trigger: PlainTrigger): Hook {
  let failed = false
  return hook(
    trigger,
    (ctx) => {
      if (failed) return ctx
      failed = true
      throw new Error('boom')
    },
    { name: 'failing' },
  )
}

export const policies = {
  'no policy': [],
  retry: [hook('onError', (ctx) => ctx.retry(), { name: 'policy' })],
  ignore: [hook('onError', (ctx) => ctx.ignore(), { name: 'policy' })],
  stop: [hook('onError', (ctx) => ctx.stop('enough'), { name: 'policy' })],
} satisfies { readonly [name: string]: readonly Hook[] }

// ── column "throws"

type Throwing = {
  readonly trigger: HookTrigger
  readonly says: string
  readonly failing: () => readonly Hook[]
  readonly model?: 'fails once'
  /** How the run ends when no hook handles the error. */
  readonly ends: readonly HookTrigger[]
  readonly endsCalls?: string
  readonly endsRequests?: number
  readonly retried: readonly HookTrigger[]
  readonly retriedRequests?: number
  readonly ignored: readonly HookTrigger[]
  readonly ignoredCalls?: string
  readonly ignoredRequests?: number
  readonly ignoredEnding?: string
}

function throwing(at: PlainTrigger, row: Omit<Throwing, 'trigger' | 'failing' | 'retried'>): Throwing {
  return { trigger: at, failing: () => [failing(at)], retried: after(at, 'onError', at), ...row }
}

const aroundFails = (): readonly Hook[] => {
  let attempts = 0
  return [hook('aroundInference', (_ctx, next) => (attempts++ === 0 ? Promise.reject(new Error('boom')) : next()))]
}

const noAnswer = {
  trigger: 'aroundInference',
  ends: [...begin, ...unanswered, 'onError', 'afterStep', ...end],
  retried: after('beforeInference', 'onError'),
  ignored: [...begin, ...unanswered, 'onError', 'afterStep', ...natural.slice(begin.length)],
} as const

const rows: readonly Throwing[] = [
  throwing('beforeExecution', {
    says: 'onError; the step is not opened',
    ends: [...begin, 'onError', ...end],
    endsRequests: 0,
    ignored: after('beforeExecution', 'onError'),
  }),
  throwing('beforeStep', {
    says: 'onError; the step is not opened',
    ends: [...begin, 'beforeStep', 'onError', ...end],
    endsRequests: 0,
    ignored: after('beforeStep', 'onError'),
  }),
  throwing('beforeInference', {
    says: 'onError; retry repeats this trigger',
    ends: [...begin, ...unanswered, 'onError', 'afterStep', ...end],
    endsRequests: 0,
    ignored: after('beforeInference', 'onError'),
  }),
  { ...noAnswer, says: 'onError; retry is a new attempt', failing: aroundFails, endsRequests: 0 },
  {
    ...noAnswer,
    says: '(the model itself): onError; retry is a new attempt',
    failing: () => [],
    model: 'fails once',
    retriedRequests: 3,
    ignoredRequests: 3,
  },
  throwing('afterInference', {
    says: 'onError; response withheld',
    ends: [...begin, ...ask, 'onError', 'afterStep', ...end],
    ignored: [...begin, ...ask, 'onError', 'afterStep', ...end],
    ignoredCalls: '',
    ignoredRequests: 1,
    ignoredEnding: 'stopped finishReason completion', // a withheld answer does not complete the run
  }),
  throwing('beforeToolUse', {
    says: 'call not run, onError',
    ends: [...begin, ...ask, 'beforeToolUse', 'onError', 'afterToolUse', 'afterToolUse', 'afterStep', ...end],
    endsCalls: 'failed blocked',
    ignored: after('beforeToolUse', 'onError'),
    ignoredCalls: 'failed ok',
  }),
  throwing('afterToolUse', {
    says: 'onError; result withheld',
    ends: [...begin, ...ask, ...call, 'onError', 'afterToolUse', 'afterStep', ...end],
    endsCalls: 'ok(withheld) blocked',
    ignored: after('afterToolUse', 'onError'),
    ignoredCalls: 'ok(withheld) ok',
  }),
  throwing('afterStep', {
    says: 'onError',
    ends: [...begin, ...ask, ...call, ...call, 'afterStep', 'onError', ...end],
    endsCalls: 'ok ok',
    ignored: after('afterStep', 'onError'),
  }),
]

const throwsWithPolicy: readonly Case[] = rows.flatMap((row): readonly Case[] => {
  const { trigger, says } = row
  const model = row.model && { model: row.model }
  const ends = { ...model, fired: row.ends, calls: row.endsCalls ?? '', requests: row.endsRequests ?? 1 }
  const title = `${trigger} throws: ${says}`
  return [
    {
      ...ends,
      title: `${title}; without a policy the run fails`,
      use: row.failing,
      ending: `failed errorForbade error at ${trigger}`,
    },
    {
      ...ends,
      title: `${title}; a stop at onError ends the run as stopped`,
      use: () => [...row.failing(), ...policies.stop],
      ending: 'stopped stopRequested policy',
    },
    {
      ...model,
      title: `${title}; with a retry the run completes`,
      use: () => [...row.failing(), ...policies.retry],
      ending: completed,
      fired: row.retried,
      requests: row.retriedRequests ?? 2,
    },
    {
      ...model,
      title: `${title}; ignored, the run continues without it`,
      use: () => [...row.failing(), ...policies.ignore],
      ending: row.ignoredEnding ?? completed,
      fired: row.ignored,
      calls: row.ignoredCalls ?? 'ok ok',
      requests: row.ignoredRequests ?? 2,
    },
  ]
})

const throwsElsewhere: readonly Case[] = [
  {
    title: 'onUserInput throws: failed, no execution',
    use: () => [failing('onUserInput'), ...policies.retry],
    ending: 'failed errorForbade error at onUserInput',
    fired: ['onUserInput'],
    calls: '',
    requests: 0,
  },
  {
    title: "beforeToolUse throws with onFailure: 'block': blocked, and onError is not asked",
    use: () => {
      let failed = false
      const handler = (): never => {
        failed = true
        throw new Error('boom')
      }
      return [hook('beforeToolUse', handler, { name: 'failing', onFailure: 'block', when: () => !failed })]
    },
    ending: completed,
    fired: natural,
    calls: 'blocked ok',
  },
  {
    title: 'aroundToolUse throws: failed, and onError is not asked',
    use: () => [hook('aroundToolUse', () => Promise.reject(new Error('boom')))],
    ending: completed,
    fired: natural,
    calls: 'failed failed',
  },
  {
    title: 'aroundToolUse throws after next had succeeded: done, result withheld',
    use: () => [hook('aroundToolUse', (_ctx, next) => next().then(() => Promise.reject(new Error('boom'))))],
    ending: completed,
    fired: natural,
    calls: 'ok(withheld) ok(withheld)',
  },
  {
    title: 'the tool throws: failed, and onError is not asked',
    use: () => [],
    tool: 'throws',
    ending: completed,
    fired: natural,
    calls: 'failed failed',
  },
  {
    title: 'onStop throws in a transform: the stop stands, and onError is not asked',
    use: () => [failing('onStop'), ...policies.retry],
    ending: completed,
    fired: natural,
  },
  {
    title: 'onError throws: failed; the first error is reported; no recursion',
    use: () => [failing('beforeStep'), hook('onError', () => Promise.reject(new Error('second')), { name: 'policy' })],
    ending: 'failed errorForbade error at beforeStep',
    fired: [...begin, 'beforeStep', 'onError', ...end],
    calls: '',
    requests: 0,
  },
  {
    title: 'afterExecution throws: noted; status stands',
    use: () => [failing('afterExecution'), ...policies.retry],
    ending: completed,
    fired: natural,
  },
]

// ── column "guard blocks": by deciding, and by failing

type Judged = Omit<Case, 'title' | 'use' | 'ending'> & {
  readonly trigger: GuardTrigger
  readonly says: string
  readonly no: (ctx: never) => unknown
  readonly reason: StopReason | 'completed'
  readonly by?: string
}

const block = (ctx: { block: (message: string) => unknown }): unknown => ctx.block('no')
const stop = (ctx: { stop: (message: string) => unknown }): unknown => ctx.stop('no')

const judged: readonly Judged[] = [
  {
    trigger: 'onUserInput',
    says: 'inputBlocked, input dropped',
    no: block,
    reason: 'inputBlocked',
    fired: ['onUserInput'],
    calls: '',
    requests: 0,
  },
  { trigger: 'beforeExecution', says: 'forbid', no: stop, reason: 'stopRequested', fired: [...begin, ...end] },
  { trigger: 'beforeStep', says: 'forbid', no: stop, reason: 'stopRequested', fired: [...begin, 'beforeStep', ...end] },
  {
    trigger: 'beforeInference',
    says: 'forbid',
    no: stop,
    reason: 'stopRequested',
    fired: [...begin, ...unanswered, 'afterStep', ...end],
  },
  {
    trigger: 'afterInference',
    says: 'withheld',
    no: block,
    reason: 'finishReason',
    by: 'completion',
    fired: [...begin, ...answered],
    requests: 1,
  },
  {
    trigger: 'beforeToolUse',
    says: 'blocked',
    no: block,
    reason: 'completed',
    by: 'completion',
    fired: natural,
    calls: 'blocked blocked',
    requests: 2,
  },
  {
    trigger: 'afterToolUse',
    says: 'withheld',
    no: block,
    reason: 'completed',
    by: 'completion',
    fired: natural,
    calls: 'ok(withheld) ok(withheld)',
    requests: 2,
  },
  {
    trigger: 'afterStep',
    says: 'forbid',
    no: stop,
    reason: 'stopRequested',
    fired: [...begin, ...ask, ...call, ...call, 'afterStep', ...end],
    calls: 'ok ok',
    requests: 1,
  },
]

const guarded: readonly Case[] = judged.flatMap(({ trigger, says, no, reason, by = 'judge', ...row }) => {
  const judge = (handle: (ctx: never) => unknown): readonly Hook[] => {
    const first = trigger === 'afterStep' ? 1 : 0 // only in the first step: the second must be able to complete the run
    return [guard(trigger, handle as never, { name: 'judge', when: (ctx) => ctx.state.stepCount === first })]
  }
  const status = reason === 'completed' ? 'completed' : 'stopped'
  const failedReason = reason === 'stopRequested' ? 'errorForbade' : reason
  const base = { calls: '', requests: 0, ...row }
  return [
    { ...base, title: `${trigger}: a guard's no: ${says}`, use: () => judge(no), ending: `${status} ${reason} ${by}` },
    {
      ...base,
      title: `${trigger}: a guard that throws blocks: ${says}`,
      use: () => judge(() => Promise.reject(new Error('boom'))),
      ending: `${status} ${failedReason} ${by}`,
    },
  ]
})

const guardedStop: Case = {
  title: 'onStop throws in a guard: stopped with errorForbade, never completed',
  use: () => [guard('onStop', () => Promise.reject(new Error('boom')), { name: 'judge' }), ...policies.ignore],
  ending: 'stopped errorForbade judge',
  fired: natural,
}

export const cases: readonly Case[] = [...throwsWithPolicy, ...throwsElsewhere, ...guarded, guardedStop]
