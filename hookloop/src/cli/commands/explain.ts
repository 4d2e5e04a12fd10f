import { explanationText } from '../../agent/explain/explain.ts'
import type { Explainable } from '../../agent/explain/explainable.ts'
import { explanation, type Explanation } from '../../agent/explain/explanation.ts'
import { pendingOf } from '../../agent/run.ts'
import type { Json } from '../../state/json.ts'
import type { FinalRecord } from '../../state/execution.ts'
import type { SessionHistory } from '../../sessions/log/read-session.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { latestSessionArgument, storeOptions } from '../options.ts'
import type { SessionRef } from '../run/next-steps.ts'
import { agentOptionsFor, SESSION_OPTIONS_KEY, withAgent } from '../run/session-options.ts'
import { shortId } from '../sessions/approval-ids.ts'
import { loadSession } from '../sessions/find-session.ts'
import { withStore, type StoreFlags } from '../sessions/open-store.ts'
import { count, tokens } from '../terminal/amounts.ts'
import { printJson } from '../terminal/json.ts'
import { printable } from '../terminal/printable.ts'

export const command: CommandDefinition = {
  description: 'Explain the latest run of a session: how it ended, which hook decided what, and why.',
  examples: ['hookloop explain', 'hookloop explain k53u --verbose', 'hookloop explain k53u --json'],
  configure: (command) =>
    storeOptions(latestSessionArgument(command)).option(
      '-v, --verbose',
      'also show votes and what capabilities keep for themselves',
    ),
  run: explainSession,
}

type ExplainFlags = StoreFlags & { readonly verbose?: boolean }

function explainSession(given: string | undefined, flags: ExplainFlags, cli: CliContext): Promise<void> {
  return withStore(flags, cli, async ({ store, options: storeOptions }) => {
    const { id: session, saved } = await loadSession(store, given)
    const run = latestRun(saved)
    const options = withAgent(storeOptions, agentOptionsFor(flags, saved, cli.env))
    const ref = { session, command: cli.command, options, storeOptions }
    if (flags.json === true) printJson(cli.out, { session, ...(run ? explained(run, ref) : unfinished(saved, ref)) })
    else {
      const text = run ? explanationText(explained(run, ref), flags) : unfinishedText(unfinished(saved, ref))
      cli.out.write(`${printable(text)}\n`)
    }
  })
}

/** The latest run; undefined if it has not ended. */
function latestRun(saved: SessionHistory): Explainable | undefined {
  const { state, ledger, records } = saved
  const last = records.findLast((record) => record.type === 'state')
  if (state === undefined || last === undefined || saved.open?.phase === 'input') return undefined
  if (last.phase === 'inputBlocked') return { status: 'stopped', state, ledger, final: blockedInput(saved, last.at) }
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

type ExplainedRef = SessionRef & {
  /** The options that select only the store. */
  readonly storeOptions: string
}

/** With the commands that continue a suspended or cancelled run. */
function explained(run: Explainable, { session, command, options, storeOptions }: ExplainedRef): Explanation {
  const data = explanation(run)
  if (run.status === 'cancelled') return { ...data, wayOn: `${command} chat --session ${session}${options}` }
  const { agent } = (run.state.metadata[SESSION_OPTIONS_KEY] ?? {}) as { readonly agent?: Json }
  const limit = agent === undefined ? limitOptions[data.decided.by] : undefined // an agent file sets its own limits
  if (limit !== undefined && data.decided.value !== undefined) return { ...data, wayOn: `a higher ${limit}` }
  if (run.status !== 'suspended') return data
  const approve = run.pending.map((approval) => `${command} approve ${shortId(approval, run.pending)}${storeOptions}`)
  return { ...data, wayOn: [...approve, `${command} resume ${session}${options}`].join(', then ') }
}

/** The options of `run` and `chat` that set the limits of `guards`. */
const limitOptions: { readonly [guard: string]: string | undefined } = {
  'guards.maxSteps': '--max-steps',
  'guards.maxTokens': '--max-tokens',
  'guards.maxTimeMs': '--max-time',
  'guards.maxCost': '--max-cost',
}

type Unfinished = {
  readonly status: 'idle' | 'running'
  readonly spent: Explanation['spent'] | null
  readonly wayOn: string
}

function unfinished({ open, state }: SessionHistory, { session, command, options }: SessionRef): Unfinished {
  const spent = state?.execution?.usage ?? null
  if (open === undefined) return { status: 'idle', spent, wayOn: `${command} chat --session ${session}${options}` }
  return { status: 'running', spent, wayOn: `${command} resume ${session}${options}` }
}

function unfinishedText({ status, spent, wayOn }: Unfinished): string {
  const what =
    status === 'idle'
      ? 'Nothing has run yet.'
      : 'The run has not ended: it is still running, or its process was killed.'
  const amounts = spent === null ? [] : [`  spent        ${count(spent.steps, 'step')}, ${tokens(spent)}`]
  return [what, ...amounts, `  to continue  ${wayOn}`].join('\n')
}
