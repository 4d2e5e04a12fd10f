import { approval, guard, hook, type AgentState, type Limits, type Use } from 'hookloop'
import type { RepairTools } from './tools.ts'

export const limits = { maxSteps: 12, maxToolCalls: 20, maxTokens: 30_000, maxTimeMs: 60_000 } satisfies Limits

/** Shown when the approval below answers: the demo has no approver, so a rule stands in for one. */
export const policy = 'by rule: log files may be deleted (a user would be asked here)'

/** The rules of the demo. The model is not asked to follow them; it cannot break them. */
export function repairHooks(tools: RepairTools): readonly Use[] {
  return [
    guard(
      'beforeToolUse',
      (ctx) =>
        ctx.toolCall.args.path.startsWith('test/')
          ? ctx.block('The tests are the specification. Fix the program.')
          : ctx,
      { name: 'tests-are-the-spec', tool: tools.editFile },
    ),
    guard(
      'beforeToolUse',
      (ctx) => {
        const { command, args } = ctx.toolCall.args
        const isProgram = command === 'node' && args.length === 1 && args[0] === 'main.js'
        return isProgram ? ctx : ctx.block('Only "node main.js" may be run.')
      },
      { name: 'only-the-program', tool: tools.run },
    ),
    guard('beforeToolUse', (ctx) => ctx.ask(`Delete ${ctx.toolCall.args.path}?`), {
      name: 'ask-before-deleting',
      tool: tools.deleteFile,
    }),
    approval(({ toolCall }) => {
      const { path } = toolCall.args
      return typeof path === 'string' && path.endsWith('.log') ? 'allow' : { block: 'Only log files may be deleted.' }
    }),
    hook(
      'afterToolUse',
      (ctx) => {
        const { output } = ctx.toolExecution
        const clean = typeof output === 'string' ? output.replaceAll(SECRET, '$1[redacted]') : output
        return clean === output ? ctx : ctx.withOutput(clean)
      },
      { name: 'redact-secrets', priority: -100 },
    ),
    guard(
      'onStop',
      (ctx) =>
        testsPassedAfterLastEdit(ctx.state)
          ? ctx
          : ctx.requestContinuation('The tests have not passed since the last edit. Run them before you finish.'),
      { name: 'tests-must-pass' },
    ),
  ]
}

const SECRET = /(token=)\S+/g

function testsPassedAfterLastEdit({ execution }: AgentState): boolean {
  const calls = execution!.steps.flatMap((step) =>
    step.toolCalls.map(({ name }, i) => {
      const { status, output } = step.toolExecutions[i]!
      return { name, status, output }
    }),
  )
  const edited = calls.findLastIndex(({ name, status }) => name === 'edit_file' && status === 'ok')
  const passed = calls.findLastIndex(
    ({ name, output }) => name === 'run_tests' && (output as { exitCode?: number }).exitCode === 0,
  )
  return passed > edited
}
