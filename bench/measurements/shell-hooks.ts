import { spawn } from 'node:child_process'
import { createAgent, guard, tool, type Hook } from 'hookloop'
import { claudeHooks } from 'hookloop/hook-files'
import { shell } from 'hookloop/actions'
import { scriptedModel } from 'hookloop/testing'
import { round, sideBySide, type Measurement } from '../measurement.ts'

export const measurement: Measurement = {
  about: 'shell commands as hooks, beside the commands alone',
  rows: {
    'shellHooks.addedMs': { label: 'ms that a hook adds to its command', goal: 1 },
    'shellHooks.bareMs': { label: '  the command alone' },
    'shellHooks.groupTimesSlowest': { label: 'five commands as one group, times the slowest', goal: 1.5 },
  },
  async measure() {
    const figures = Object.entries(await measureShellHooks())
    return { shellHooks: Object.fromEntries(figures.map(([name, value]) => [name, round(value)])) }
  },
}

/** The cost of a shell command as a hook, compared with one that Node starts directly. In milliseconds. */
type ShellFigures = {
  /** `sh -c 'cat > /dev/null'`, started by Node, with its input and output. */
  readonly bareMs: number
  /** The same as a guard of a tool call, without the cost of the run. */
  readonly hookMs: number
  readonly addedMs: number
  readonly addedMsByMedian: number
  /** The longest of five commands that sleep, started by Node. */
  readonly slowestMs: number
  /** All five, as one group of Claude Code hooks. */
  readonly groupMs: number
  readonly groupTimesSlowest: number
}

const COMMAND = 'cat > /dev/null'
const SLEEPS = [20, 40, 60, 80, 100]
const longest = `${COMMAND}; sleep ${Math.max(...SLEEPS) / 1000}`

async function measureShellHooks(rounds = 250): Promise<ShellFigures> {
  const [without, withOne] = [agentWith([]), agentWith([guard('beforeToolUse', shell({ command: COMMAND }))])]
  const withGroup = agentWith(claudeHooks({ dir: '.', home: false, settings: groupOf(SLEEPS) }).hooks ?? [])
  const [bare, one, none] = await timed(rounds, [
    () => start(COMMAND),
    () => withOne.run('go'),
    () => without.run('go'),
  ])
  const [slowest, all] = await timed(15, [() => start(longest), () => withGroup.run('go')])
  const groupMs = all!.fast - none!.fast
  return {
    bareMs: bare!.fast,
    hookMs: one!.fast - none!.fast,
    addedMs: one!.fast - none!.fast - bare!.fast,
    addedMsByMedian: one!.median - none!.median - bare!.median,
    slowestMs: slowest!.fast,
    groupMs,
    groupTimesSlowest: groupMs / slowest!.fast,
  }
}

function groupOf(sleeps: readonly number[]) {
  const hooks = sleeps.map((ms) => ({ type: 'command', command: `cat > /dev/null; sleep ${ms / 1000}` }))
  return { hooks: { PreToolUse: [{ hooks }] } }
}

function agentWith(hooks: readonly Hook[]) {
  const work = tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: () => 'done' })
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'tool' ? 'done' : { toolCalls: [{ name: 'work', args: {} }] },
  )
  return createAgent({ model, use: [work, ...hooks] })
}

/** The hand-written equivalent. */
function start(command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn('sh', ['-c', command])
    let printed = ''
    child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
    child.on('error', reject)
    child.on('close', () => resolve(printed))
    child.stdin
      .on('error', () => undefined)
      .end(JSON.stringify({ trigger: 'beforeToolUse', toolCall: { name: 'work' } }))
  })
}

/** In ms, after a few rounds that are not counted. */
async function timed(rounds: number, sides: readonly (() => Promise<unknown>)[]) {
  await sideBySide(3, 1000, sides)
  return sideBySide(rounds, 1000, sides)
}
