// The demo behind `npm start`: an agent repairs a small broken program. The model is scripted, everything else is real.
import { rm } from 'node:fs/promises'
import { parseArgs, styleText } from 'node:util'
import { createAgent, explain, guards, type Agent } from 'hookloop'
import { limits, policy, repairHooks } from './repair/hooks.ts'
import { writeBrokenProgram } from './repair/program.ts'
import { repairModel } from './repair/script.ts'
import { repairTools, runTests, type TestReport } from './repair/tools.ts'
import { Timeline } from './timeline.ts'

const help = `Usage: npm start -- [options]

An agent repairs a small broken program in a temporary folder. The model follows a script, so no network and no API key
are needed. Files, processes, tests, hooks and limits are real.

  --json   print the events of the run as JSON lines
  --keep   keep the temporary folder and print its path
  --help   print this help

Exit codes: 0 the program was repaired, 130 cancelled with Ctrl-C, 1 anything else.`

const task = 'The totals on our invoices are wrong. Please repair the program.'

const options = readOptions()
if (options === undefined) process.exitCode = 1
else if (options.help) console.log(help)
else process.exitCode = await repair(options)

function readOptions(): { json: boolean; keep: boolean; help: boolean } | undefined {
  try {
    const flag = { type: 'boolean', default: false } as const
    return parseArgs({ options: { json: flag, keep: flag, help: { ...flag, short: 'h' } } }).values
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${help}`)
    return undefined
  }
}

async function repair({ json, keep }: { readonly json: boolean; readonly keep: boolean }): Promise<number> {
  const cancel = new AbortController()
  const stop = (): void => cancel.abort()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, stop)
  process.stdout.on('error', stop) // the reader of the pipe has gone
  const say = (text = ''): void => (json ? undefined : console.log(text))

  const folder = await writeBrokenProgram()
  try {
    const tools = repairTools(folder)
    const agent = createAgent({
      name: 'repair',
      model: repairModel({ delayMs: process.stdout.isTTY && !json ? 25 : 0 }),
      instructions: 'Repair the program until its tests pass. Make the smallest possible change.',
      use: [guards(limits), ...Object.values(tools), ...repairHooks(tools)],
    })
    const before = await runTests(folder, cancel.signal)
    for (const line of opening(agent, { folder, before })) say(line)

    const stream = agent.stream(task, {
      signal: cancel.signal,
    })
    const timeline = new Timeline({ limits, answeredBy: policy })
    for await (const event of stream) {
      if (json) console.log(JSON.stringify(event))
      else timeline.show(event)
    }
    const run = await stream.run
    say(`\n${styleText('bold', 'explain(run)')}\n${explain(run)}`)
    if (run.status === 'cancelled') return cancelled()

    const after = await runTests(folder, cancel.signal)
    const repaired = run.status === 'completed' && before.failed > 0 && after.failed === 0 && after.passed > 0
    const verdict = styleText(['bold', repaired ? 'green' : 'red'], repaired ? 'Repaired' : 'Not repaired')
    say(`\n${verdict}: ${words(before)} before, ${words(after)} now.`)
    say()
    say(
      styleText(
        'dim',
        'The rules are in examples/repair/hooks.ts. More examples: examples/README.md. Docs: npm run docs:dev',
      ),
    )
    return repaired ? 0 : 1
  } catch (error) {
    if (cancel.signal.aborted) return cancelled()
    throw error
  } finally {
    if (keep) console.error(`The program is in ${folder}`)
    else await rm(folder, { recursive: true, force: true })
  }
}

/** The task, the tools and the rules, printed before the run starts. */
function opening(agent: Agent, { folder, before }: { folder: string; before: TestReport }): string[] {
  const { model, tools, hooks } = agent.describe()
  const own = hooks.filter(({ name }) => !name.startsWith('guards.') && name !== 'completion')
  const row = (title: string, text: string): string => `  ${styleText('dim', title.padEnd(8))}${text}`
  return [
    styleText('bold', 'Hookloop demo: an agent repairs a program, and hooks decide what it may do'),
    '',
    row('task', task),
    row('program', `${folder} (${words(before)})`),
    row('model', `${model} (offline, no API key)`),
    row('tools', tools.map(({ name }) => name).join(', ')),
    row('hooks', own.map(({ name }) => name).join(', ')),
    row(
      'limits',
      `${limits.maxSteps} steps, ${limits.maxToolCalls} tool calls, ${limits.maxTokens.toLocaleString('en-US')} tokens, ${limits.maxTimeMs / 1000} s`,
    ),
  ]
}

function cancelled(): number {
  console.error('\nCancelled. No process is left running.')
  return 130
}

function words({ passed, failed }: TestReport): string {
  return `${passed} of ${passed + failed} tests pass`
}
