import { listPoints, type SessionPoint } from '../../sessions/session/fork-session.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { latestSessionArgument, storeOptions } from '../options.ts'
import { findSession } from '../sessions/find-session.ts'
import { withStore, type StoreFlags } from '../sessions/open-store.ts'
import { ago } from '../terminal/amounts.ts'
import { colorsFor } from '../terminal/colors.ts'
import { printJson } from '../terminal/json.ts'
import { exact, oneLine } from '../terminal/printable.ts'
import { table } from '../terminal/table.ts'

export const command: CommandDefinition = {
  description: 'List the steps of a session, with the numbers that fork --at and rewind --at take.',
  examples: ['hookloop steps', 'hookloop steps k53u --json'],
  configure: (command) => storeOptions(latestSessionArgument(command)),
  run: steps,
}

const MAX_TEXT = 60
const MAX_CALLS = 40

function steps(given: string | undefined, flags: StoreFlags, cli: CliContext): Promise<void> {
  return withStore(flags, cli, async ({ store }) => {
    const session = await findSession(store, given)
    const points = await listPoints(store, session)
    if (flags.json === true) printJson(cli.out, { session, steps: points })
    else if (points.length === 0) cli.err.write(`${exact(session)} has no steps yet.\n`)
    else cli.out.write(`${overview(points, cli)}\n`)
  })
}

function overview(points: readonly SessionPoint[], { out, env }: CliContext): string {
  const { bold, dim } = colorsFor(out, env)
  const head = ['AT', 'RUN', 'STEP', 'WHEN', 'CALLS', 'TEXT'].map(bold)
  const rows = points.map(({ seq, execution, step, at, toolCalls, text, isRewound }) => [
    String(seq),
    String(execution + 1),
    String(step + 1),
    dim(ago(Date.now() - at)),
    oneLine(toolCalls.map(callText).join(', '), MAX_CALLS),
    `${isRewound === true ? dim('(rewound) ') : ''}${oneLine(text, MAX_TEXT)}`,
  ])
  return table([head, ...rows])
}

function callText({ name, status }: SessionPoint['toolCalls'][number]): string {
  return status === 'ok' ? name : `${name} (${status})`
}
