import { setTimeout as sleep } from 'node:timers/promises'
import { requestStop } from '../../sessions/session/request-stop.ts'
import type { SessionStore } from '../../sessions/stores/store.ts'
import type { JsonObject } from '../../values/json.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { storeOptions } from '../options.ts'
import { selectingOptions } from '../run/session-options.ts'
import { findSession, loadIfPresent } from '../sessions/find-session.ts'
import { withStore, type OpenStore, type StoreFlags } from '../sessions/open-store.ts'
import { jsonText } from '../terminal/json.ts'
import { exact, oneLine } from '../terminal/printable.ts'
import { shellQuote } from '../terminal/shell-quote.ts'
import { userName } from './approve.ts'

type StopFlags = StoreFlags & { readonly by?: string; readonly reason?: string; readonly wait: boolean }

export const command: CommandDefinition = {
  description:
    'Stop the run of a session, in whatever process it runs, and wait until it has ended: nothing new starts, and running calls ' +
    'are aborted. If no process runs it now, it ends when it is resumed, without another effect.',
  examples: ['hookloop stop k53u', "hookloop stop k53u --by jane --reason 'wrong branch'", 'hookloop stop k53u --json'],
  notes:
    'Exit codes: 0 stopped, or the request is stored; 2 there is no run to stop; 5 the process has not stopped within 30 s, ' +
    'the request stays.',
  configure: (command) =>
    storeOptions(command.argument('<session>', 'session id or prefix'))
      .option('--by <name>', 'who stops it, stored with the run (default: the user name)')
      .option('--reason <text>', 'why, stored with the run')
      .option('--no-wait', 'exit when the request is stored'),
  run: stop,
}

const [WAIT_MS, POLL_MS] = [30_000, 100]

function stop(given: string, flags: StopFlags, cli: CliContext): Promise<ExitCode> {
  return withStore(flags, cli, async (opened) => {
    const { store } = opened
    const session = await findSession(store, given)
    const { by = userName(), reason } = flags
    const isRequested = await requestStop(store, { session, by, ...(reason !== undefined && { reason }) })
    const now = await (isRequested ? whileRunning(store, session, flags.wait) : look(store, session))
    if (flags.json === true) cli.out.write(`${jsonText({ session, requested: isRequested, status: now.status })}\n`)
    else cli.err.write(`${await textFor({ ...now, session, isRequested }, opened, { flags, cli })}\n`)
    if (!isRequested) return exitCodes.usage
    return flags.wait && now.isStopping && now.status === 'running' ? exitCodes.busy : exitCodes.completed
  })
}

/** How a session is now. `isStopping`: its run is still to be stopped. */
type Now = { readonly status: string; readonly isStopping: boolean; readonly owner?: string | undefined }

/** Waits for the process that runs the session. */
async function whileRunning(store: SessionStore, session: string, waits: boolean): Promise<Now> {
  for (const until = performance.now() + WAIT_MS; ; await sleep(POLL_MS)) {
    const now = await look(store, session)
    if (now.status !== 'running' || !now.isStopping || !waits || performance.now() > until) return now
  }
}

async function look(store: SessionStore, session: string): Promise<Now> {
  const status = statusOf((await store.read(session, { after: Infinity }))?.head ?? {})
  if (status !== 'running') return { status, isStopping: status === 'suspended' }
  const listed = await store.list({ status: ['running', 'interrupted'] })
  const found = listed.find(({ id }) => id === session)
  if (found === undefined) return look(store, session) // it has ended meanwhile
  return { status: statusOf(found.head), isStopping: found.stop !== undefined, owner: found.lock?.owner }
}

/** Another program may have written the head. */
function statusOf({ status }: JsonObject): string {
  return typeof status === 'string' ? status : 'empty'
}

type Stopped = Now & { readonly session: string; readonly isRequested: boolean }

const endedBefore: readonly string[] = ['completed', 'stopped', 'failed']

async function textFor(
  { session, isRequested, status, isStopping, owner = 'another process' }: Stopped,
  { store, options }: OpenStore,
  { flags, cli }: { readonly flags: StopFlags; readonly cli: CliContext },
): Promise<string> {
  const name = exact(session)
  if (!isRequested) return `${name} has no run to stop: it is ${oneLine(status)}.`
  if (!isStopping) {
    const hasEnded = endedBefore.includes(status)
    return hasEnded ? `${name} has ended as ${status} before it was stopped.` : `${name} is stopped.`
  }
  if (status === 'running') return `The request is stored. ${name} is still running, in ${oneLine(owner)}.`
  const selected = selectingOptions(options, flags, { saved: await loadIfPresent(store, session), env: cli.env })
  return (
    `The request is stored. No process runs ${name} now (${oneLine(status)}): it ends without another effect when it is resumed, ` +
    `with: ${cli.command} resume ${shellQuote(session)}${selected}`
  )
}
