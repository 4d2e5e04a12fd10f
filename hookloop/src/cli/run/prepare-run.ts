import type { Agent } from '../../core/agent/agent.ts'
import { partsOf } from '../../core/agent/agent-parts.ts'
import type { Session } from '../../core/agent/session.ts'
import { messageOf } from '../../errors.ts'
import type { SessionReader } from '../../sessions/log/session-reader.ts'
import { sessionPort } from '../../sessions/session/session.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import type { JsonObject } from '../../values/json.ts'
import { createCliAgent, type AgentFlags } from '../agents/create-cli-agent.ts'
import { isInteractive, type CliContext } from '../cli-context.ts'
import { loadIfPresent, newSessionId } from '../sessions/find-session.ts'
import { openStore, type OpenStore, type StoreFlags } from '../sessions/open-store.ts'
import { note } from '../terminal/note.ts'
import { terminalApprover, type TerminalApprover } from './ask-approval.ts'
import type { HooksFlags } from './file-hooks.ts'
import type { SessionRef } from './next-steps.ts'
import { restoreOptions, SESSION_OPTIONS_KEY, signedOptions } from './session-options.ts'
import type { ShowFlags } from './watch-run.ts'

export type CommandFlags = AgentFlags & StoreFlags & HooksFlags & Partial<ShowFlags>

export type SessionTarget = OpenStore & {
  readonly session: string
  /** Its content, if it exists already. */
  readonly saved?: SessionReader | undefined
  /** It ends with this process, so nothing can be answered later. */
  readonly isEphemeral?: boolean
}

export type PreparedRun = {
  readonly agent: Agent<unknown>
  readonly session: Session<unknown>
  /** Answers approvals at this terminal. Undefined if it is not interactive, or the agent has its own approval. */
  readonly approver: TerminalApprover | undefined
  /** Stored with each input. */
  readonly metadata: JsonObject
  readonly ref: SessionRef
  readonly isSaved: boolean
  /** Warnings about hooks from files, which were printed before the run. */
  readonly reported: readonly string[]
}

/** Opens the session of `run` and `chat`. If the default store cannot be used, the run is more important than storing it. */
export async function openSession(
  flags: CommandFlags & { readonly session?: string },
  cli: CliContext,
): Promise<SessionTarget> {
  const ephemeral = (): SessionTarget => {
    return { store: memoryStore(), isDefault: true, options: '', session: flags.session ?? 'run', isEphemeral: true }
  }
  const opened = await openStore(flags, cli.env)
  if (opened === undefined) return ephemeral()
  const { store } = opened
  try {
    if (flags.session === undefined) return { ...opened, session: await newSessionId(store) }
    return { ...opened, session: flags.session, saved: await loadIfPresent(store, flags.session) }
  } catch (thrown) {
    await store.close()
    if (!opened.isDefault || flags.session !== undefined) throw thrown
    note(`This run is not saved: ${messageOf(thrown)}`, flags, cli)
    return ephemeral()
  }
}

type Preparing = { readonly cli: CliContext; readonly target: SessionTarget }

/** Creates the agent of a command, with hooks from files, approvals and the options stored with its session. */
export async function prepareRun(given: CommandFlags, { cli, target }: Preparing): Promise<PreparedRun> {
  const { env, command } = cli
  const { session, store, options } = target
  const flags = restoreOptions(given, target, cli)
  const canSuspend = target.isEphemeral !== true
  const approver =
    flags.json !== true && isInteractive(cli) ? terminalApprover({ stdin: cli.stdin, canSuspend }) : undefined
  const { agent, usesApprover, reported } = await createCliAgent(flags, cli, {
    approver: approver?.capability,
    canSuspend,
  })
  return {
    agent,
    session: sessionPort(store).session(partsOf(agent), session),
    approver: usesApprover ? approver : undefined,
    metadata: canSuspend ? { [SESSION_OPTIONS_KEY]: signedOptions(flags, env) } : {},
    ref: { session, command, options },
    isSaved: canSuspend,
    reported,
  }
}
