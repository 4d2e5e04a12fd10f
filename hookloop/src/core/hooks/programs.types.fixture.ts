import { type } from 'arktype'
import * as z from 'zod'
import {
  all,
  approval,
  createAgent,
  explain,
  guard,
  guards,
  hasMetadata,
  hook,
  not,
  observe,
  tool,
  toolName,
  type Agent,
  type GuardContext,
  type Hook,
  type InferenceResponse,
  type LanguageModel,
  type ObserveContext,
  type SavedRun,
  type Use,
} from '../../index.ts'
import { fire } from '../../testing/index.ts'

// Fifteen programs a user would write, for the compiler. Nothing here ever runs.

const bash = tool({
  name: 'bash',
  description: 'Runs a command.',
  input: z.object({
    command: z.string(),
    cwd: z.string().default('.'),
    at: z
      .string()
      .transform((text) => new Date(text))
      .optional(),
  }),
  execute: ({ command, cwd, at }) => command + cwd.length + at?.getTime(),
})
const read = tool({
  name: 'read',
  description: 'Reads a file.',
  input: type({ path: 'string' }),
  execute: async ({ path }, run) => {
    run.signal.throwIfAborted()
    run.progress({ path, key: run.idempotencyKey })
    return path
  },
  concurrent: true,
})
const plain = tool({
  name: 'plain',
  description: 'Takes plain JSON Schema.',
  input: { type: 'object', properties: { path: { type: 'string' } } },
  execute: (args) => args['path'],
})

export function program1_anAuditTrail(): readonly Hook[] {
  class AuditTrail {
    readonly log: { tool: string; at: number; blocked: boolean }[] = []
    handle(ctx: ObserveContext<'afterToolUse'>): void {
      this.log.push({ tool: ctx.toolCall.name, at: ctx.now, blocked: ctx.toolExecution.status === 'blocked' })
    }
  }
  const everything = observe('*', (ctx) => console.error(ctx.trigger, ctx.state.stepCount))
  return [observe('afterToolUse', new AuditTrail()), everything]
}

export function program2_aRateLimit(): Hook<'beforeToolUse'> {
  return guard('beforeToolUse', (ctx) =>
    ctx.spent.toolCalls > 50 ? ctx.block(`Rate limit: ${ctx.spent.toolCalls}/50`) : ctx,
  )
}

export function program3_roles(): readonly Use[] {
  const byHand = guard(
    'beforeToolUse',
    (ctx) => (ctx.state.metadata['role'] === 'admin' ? ctx : ctx.block('Admins only.')),
    { tool: 'deploy' },
  )
  const byMatcher = guard('beforeToolUse', (ctx) => ctx.block('Admins only.'), {
    when: all(toolName('deploy'), not(hasMetadata('role', 'admin'))),
  })
  return [byHand, byMatcher]
}

export function program4_redaction(): Use {
  const redact = (text: string): string => text.replaceAll(/sk-\w+/g, '[redacted]')
  return hook(
    'afterToolUse',
    (ctx) => ctx.withOutput(JSON.parse(redact(JSON.stringify(ctx.toolExecution.output))) as unknown),
    { priority: -100 },
  )
}

export function program5_rewriteThenGuard(): readonly Use[] {
  const rewrite = hook('beforeToolUse', (ctx) => ctx.withArgs({ ...ctx.toolCall.args, cwd: '/srv' }), { tool: bash })
  const judge = guard(
    'beforeToolUse',
    (ctx) => (/git push/.test(ctx.toolCall.args.command) ? ctx.block('Agents never push.') : ctx),
    { tool: bash },
  )
  const judgeWhen = guard('beforeToolUse', (ctx) => ctx.block('Agents never push.'), {
    tool: bash,
    when: (ctx) => /git push/.test(ctx.toolCall.args.command),
  })
  return [rewrite, judge, judgeWhen]
}

export function program6_retryAndFallBack(backup: LanguageModel): Use {
  return hook('aroundInference', async (ctx, next) => {
    for (let attempt = 0; attempt < 3; attempt++) {
      try {
        return await next()
      } catch {
        ctx.signal.throwIfAborted()
      }
    }
    return next({ model: backup })
  })
}

export function program7_aCache(): Use {
  const cache = new Map<string, InferenceResponse>()
  return hook('aroundInference', async (ctx, next) => {
    const key = JSON.stringify(ctx.request)
    const hit = cache.get(key) ?? (await next())
    cache.set(key, hit)
    return hit
  })
}

export async function program8_aPersonInAnotherProcess(model: LanguageModel): Promise<void> {
  const ask = guard('beforeToolUse', (ctx) => ctx.ask('Deploy?'), { tool: 'deploy' })
  const agent = createAgent({ model, use: [guards({ maxSteps: 20 }), approval('suspend'), bash, read, plain, ask] })
  const run = await agent.run('deploy it', { metadata: { role: 'admin' } })
  if (run.status === 'suspended') {
    const text = JSON.stringify(run)
    const answers = Object.fromEntries(run.pending.map(({ id }) => [id, 'allow' as const]))
    const later = await agent.resume(JSON.parse(text) as SavedRun, { answers })
    console.log(later.text, explain(later))
  } else if (run.status === 'completed') {
    console.log(run.output.toUpperCase(), run.final.by)
  } else if (run.status === 'stopped') {
    console.log(run.reason, run.by)
  } else if (run.status === 'failed') {
    console.log(run.error.code)
  } else {
    console.log(run.status satisfies 'cancelled')
  }
}

export function program9_selfCritique(
  judge: (text: string, signal: AbortSignal) => Promise<{ ok: boolean; feedback: string }>,
): Use {
  return hook(
    'onStop',
    async (ctx) => {
      const verdict = await judge(ctx.state.lastStep?.text ?? '', ctx.signal)
      return verdict.ok || ctx.continuations > 2 ? ctx : ctx.requestContinuation(verdict.feedback)
    },
    { name: 'critic', effect: true },
  )
}

export function program10_aSharedBudget(): Use {
  return guard(['beforeStep', 'beforeInference'], (ctx) =>
    ctx.spent.costUsd >= 5 ? ctx.stop('5 USD are spent.', { reason: 'costLimit', value: ctx.spent.costUsd }) : ctx,
  )
}

export function program11_severalTriggers(): Use {
  return guard(['beforeExecution', 'beforeStep', 'beforeToolUse'], (ctx) => {
    if (ctx.trigger === 'beforeToolUse') return ctx.block('Not now.')
    return ctx.stop('Closing time.')
  })
}

export function program12_aClassOnTwoTriggers(): Use {
  class Timer {
    handle(ctx: GuardContext<'beforeExecution' | 'beforeStep'>): GuardContext<'beforeExecution' | 'beforeStep'> {
      return ctx.trigger === 'beforeStep' && ctx.now > 1 ? ctx.stop('late', { reason: 'timeLimit' }) : ctx
    }
  }
  return guard(['beforeExecution', 'beforeStep'], new Timer())
}

export function program13_typedArguments(): readonly Use[] {
  const written = hook(
    'beforeToolUse',
    (ctx) => {
      const { command, cwd, at } = ctx.toolCall.args
      return ctx.withArgs({ command: command.trim(), cwd: cwd?.trim(), at: at?.trim() })
    },
    { tool: bash },
  )
  const wrapped = hook(
    'aroundToolUse',
    async (ctx, next) => {
      const result = await next()
      return result.status === 'failed' && ctx.toolCall.args.cwd.length > 0 ? next() : result
    },
    { tool: bash },
  )
  const byArkType = hook('beforeToolUse', (ctx) => ctx.withArgs({ path: ctx.toolCall.args.path.trim() }), {
    tool: read,
  })
  return [written, wrapped, byArkType]
}

export function program14_failuresAndTime(): readonly Use[] {
  return [
    guard('beforeToolUse', async (ctx) => ctx, { tool: 'bash', timeoutMs: 5000 }),
    hook('afterToolUse', async (ctx) => ctx, { onFailure: 'continue', timeoutMs: 5000 }),
    observe('afterStep', (ctx) => console.log(ctx.step.text)),
  ]
}

export async function program15_testsOfOnesOwnHooks(): Promise<boolean> {
  const judge = guard('beforeToolUse', (ctx) => ctx.block('Agents never push.'), { tool: bash })
  const outcome = await fire(judge, 'beforeToolUse', { toolCall: { name: 'bash', args: { command: 'git push' } } })
  return outcome.decision === 'block' && outcome.message === 'Agents never push.'
}

export async function perRequest(agent: Agent): Promise<void> {
  await agent.with(observe('afterStep', (ctx) => console.log(ctx.step.text))).run('x')
  for await (const state of agent.iterate('x')) if (state.stepCount > 3) break
  const live = agent.stream('x')
  for await (const event of live) if (event.type === 'toolFinished') console.log(event.execution.status)
  console.log((await live.run).text)
}

export function interfacesAreOutputAndMetadata(row: { id: string }): Use {
  return hook('afterToolUse', (ctx) =>
    ctx
      .withOutput(row)
      .withState((state) => state.withMetadata('row', row))
      .stop('enough'),
  )
}
