import { explanationText } from '../../core/explain/explain.ts'
import { readRuns } from '../../sessions/log/read-runs.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { latestSessionArgument, storeOptions } from '../options.ts'
import { explainRun } from '../run/explain-run.ts'
import { selectingOptions } from '../run/session-options.ts'
import type { PageFlags } from '../run/write-page.ts'
import { loadSession } from '../sessions/find-session.ts'
import { withStore, type StoreFlags } from '../sessions/open-store.ts'
import { printJson } from '../terminal/json.ts'
import { printable } from '../terminal/printable.ts'
import { wrapExplanation } from '../terminal/wrap.ts'
import { shellQuote } from '../terminal/shell-quote.ts'

export const command: CommandDefinition = {
  description: 'Explain the latest run of a session: how it ended, which hook decided what, and why.',
  examples: ['hookloop explain', 'hookloop explain k53u --verbose', 'hookloop explain k53u --html run.html'],
  configure: (command) =>
    storeOptions(latestSessionArgument(command))
      .option('-v, --verbose', 'also show votes and what capabilities keep for themselves')
      .option('--html <file>', 'write the run as one HTML file to share, without values that look like secrets')
      .option('--force', 'overwrite an existing file'),
  run: explainSession,
}

type ExplainFlags = StoreFlags & PageFlags & { readonly verbose?: boolean }

function explainSession(given: string | undefined, flags: ExplainFlags, cli: CliContext): Promise<void> {
  return withStore(flags, cli, async ({ store, options }) => {
    const { id: session, saved } = await loadSession(store, given)
    const [run] = await readRuns(store, session, { run: -1 })
    const { html } = flags
    if (html !== undefined) {
      const { writePage } = await import('../run/write-page.ts')
      return writePage(store, session, { ...flags, html }, cli)
    }
    const ref = { session, command: cli.command, options }
    const selected = selectingOptions(options, flags, { saved, env: cli.env })
    const wayOn = `${cli.command} chat --session ${shellQuote(session)}${selected}`
    const data = run === undefined ? idle(wayOn) : explainRun(run, ref, selected)
    if (flags.json === true) printJson(cli.out, { session, ...data })
    else {
      const text = 'decided' in data ? explanationText(data, flags) : idleText(data)
      cli.out.write(`${wrapExplanation(printable(text), cli.out.isTTY === true ? cli.out.columns : undefined)}\n`)
    }
  })
}

type Idle = { readonly status: 'idle'; readonly spent: null; readonly wayOn: string }

function idle(wayOn: string): Idle {
  return { status: 'idle', spent: null, wayOn }
}

function idleText({ wayOn }: Idle): string {
  return ['Nothing has run yet.', `  to continue  ${wayOn}`].join('\n')
}
