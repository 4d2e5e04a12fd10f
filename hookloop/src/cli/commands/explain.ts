import { explanationText } from '../../agent/explain/explain.ts'
import type { Explainable } from '../../agent/explain/explainable.ts'
import type { Explanation } from '../../agent/explain/explanation.ts'
import { pendingOf } from '../../agent/run.ts'
import type { FinalRecord } from '../../state/execution.ts'
import type { SessionHistory } from '../../sessions/log/read-session.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { latestSessionArgument, storeOptions } from '../options.ts'
import type { SessionRef } from '../run/next-steps.ts'
import { explainRun } from '../run/explain-run.ts'
import { agentOptionsFor, withAgent } from '../run/session-options.ts'
import type { PageFlags } from '../run/write-page.ts'
import { loadSession } from '../sessions/find-session.ts'
import { withStore, type StoreFlags } from '../sessions/open-store.ts'
import { count, tokens } from '../terminal/amounts.ts'
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
    const run = latestRun(saved)
    const agentOptions = agentOptionsFor(flags, saved, cli.env)
    const { html } = flags
    if (html !== undefined) {
      const { writePage } = await import('../run/write-page.ts')
      return writePage(store, session, { ...flags, html }, cli)
    }
    const ref = { session, command: cli.command, options }
    const data = run ? explainRun(run, ref, agentOptions) : unfinished(saved, ref, agentOptions)
    if (flags.json === true) printJson(cli.out, { session, ...data })
    else {
      const text = 'decided' in data ? explanationText(data, flags) : unfinishedText(data)
      cli.out.write(`${wrapExplanation(printable(text), cli.out.isTTY === true ? cli.out.columns : undefined)}\n`)
    }
  })
}

/** The latest run; undefined if it has not ended. */
function latestRun(saved: SessionHistory): Explainable | undefined {
  const { state, ledger, records } = saved
  const last = records.findLast((record) => record.type === 'state')
  if (state === undefined || last === undefined || saved.open?.phase === 'input') return undefined
  if (last.phase === 'inputBlocked') {
    const final = blockedInput(saved, last.at)
    return { status: final.status, state, ledger, final }
  }
  const { execution } = state
  if (execution?.status === 'suspended') return { status: 'suspended', state, ledger, pending: pendingOf(state) }
  return execution?.final === undefined
    ? undefined
    : { status: execution.final.status, state, ledger, final: execution.final }
}

/** A blocked input starts no execution, so only the ledger says who blocked it. */
function blockedInput({ ledger }: SessionHistory, at: number): FinalRecord {
  const by = ledger.findLast(({ decision, error }) => decision?.includes('block') === true || error !== undefined)
  return {
    status: by?.error === undefined ? 'stopped' : 'failed',
    reason: by?.error === undefined ? 'inputBlocked' : 'errorForbade',
    by: by?.hook ?? 'hookloop',
    message: by?.error ?? by?.message ?? 'The input was blocked.',
    votes: [],
    at,
  }
}

type Unfinished = {
  readonly status: 'idle' | 'running'
  readonly spent: Explanation['spent'] | null
  readonly wayOn: string
}

function unfinished({ open, state }: SessionHistory, ref: SessionRef, agentOptions: string): Unfinished {
  const { session, command } = ref
  const options = withAgent(ref.options, agentOptions)
  const spent = state?.execution?.usage ?? null
  if (open === undefined)
    return { status: 'idle', spent, wayOn: `${command} chat --session ${shellQuote(session)}${options}` }
  return { status: 'running', spent, wayOn: `${command} resume ${shellQuote(session)}${options}` }
}

function unfinishedText({ status, spent, wayOn }: Unfinished): string {
  const what =
    status === 'idle'
      ? 'Nothing has run yet.'
      : 'The run has not ended: it is still running, or its process was killed.'
  const amounts = spent === null ? [] : [`  spent        ${count(spent.steps, 'step')}, ${tokens(spent)}`]
  return [what, ...amounts, `  to continue  ${wayOn}`].join('\n')
}
