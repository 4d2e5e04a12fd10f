import { type } from 'arktype'
import * as z from 'zod'
import { guard, hook, tool, type Use } from '../../index.ts'

// Hooks that are typed by tools and triggers, for the compiler. Nothing here ever runs. The snippets of the docs are compiled as well.

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

export function rewriteThenGuard(): readonly Use[] {
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

export function selfCritique(
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

export function severalTriggers(): Use {
  return guard(['beforeExecution', 'beforeStep', 'beforeToolUse'], (ctx) => {
    if (ctx.trigger === 'beforeToolUse') return ctx.block('Not now.')
    return ctx.stop('Closing time.')
  })
}

export function typedArguments(): readonly Use[] {
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

export function interfacesAreOutputAndMetadata(row: { id: string }): Use {
  return hook('afterToolUse', (ctx) =>
    ctx
      .withOutput(row)
      .withState((state) => state.withMetadata('row', row))
      .stop('enough'),
  )
}
