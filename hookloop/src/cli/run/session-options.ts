import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { hashJson, isJsonObject, type Json, type JsonObject } from '../../values/json.ts'
import type { Environment } from '../../models/providers.ts'
import type { SessionReader } from '../../sessions/log/session-reader.ts'
import type { AgentFlags } from '../agents/create-cli-agent.ts'
import type { CliContext } from '../cli-context.ts'
import { dataFolder } from '../sessions/open-store.ts'
import { note, type Quietness } from '../terminal/note.ts'
import { relativePath } from '../terminal/relative-paths.ts'
import { shellQuote } from '../terminal/shell-quote.ts'
import { UsageError } from '../usage-error.ts'

// A session stores the options of its agent, so that a command that continues it need not repeat them. The agent file is
// executed, and a session may come from another user. So the options are signed with a key of this user, and options
// without a valid signature are shown, not applied.

/** The metadata key of the options. */
export const SESSION_OPTIONS_KEY = 'hookloop.cli'

/** Matches signatures, which exports redact. */
export const signaturePattern = /signature:[0-9a-f]{64}/g

const names = ['model', 'agent', 'system', 'temperature', 'maxSteps', 'maxTokens', 'maxCost', 'maxTime'] as const

/** The options to store with a session. */
export function signedOptions(flags: AgentFlags, env: Environment): JsonObject {
  const options: { [name: string]: Json } = {}
  for (const name of names) if (flags[name] !== undefined) options[name] = flags[name]
  if (flags.agent === undefined) options['model'] ??= env['HOOKLOOP_MODEL'] ?? null
  else {
    options['agent'] = resolve(flags.agent)
    options['sha256'] = sha256(flags.agent) ?? null
  }
  const key = signingKey(env)
  return key === undefined ? options : { ...options, signature: sign(options, key) }
}

/** The options that this user has stored with a session; undefined if there are none, or if another user wrote them. */
export function signedFlags(stored: Json | undefined, env: Environment): AgentFlags | undefined {
  const { signature, ...options } = isJsonObject(stored) ? stored : {}
  if (!isSigned(options, signature, env)) return undefined
  return Object.fromEntries(names.flatMap((name) => ((options[name] ?? null) === null ? [] : [[name, options[name]]])))
}

type StartedSession = { readonly session: string; readonly saved?: SessionReader | undefined }

/** The state does not have the input of a run before its first step is closed. */
function storedIn(saved: SessionReader | undefined): Json | undefined {
  return (saved?.open?.input?.metadata ?? saved?.state?.metadata)?.[SESSION_OPTIONS_KEY]
}

/** The options of the command line, completed by those stored with the session unless `--agent` is given. */
export function restoreOptions<F extends AgentFlags & Quietness>(
  given: F,
  { session, saved }: StartedSession,
  cli: Pick<CliContext, 'err' | 'env'>,
): F {
  const stored = storedIn(saved)
  if (given.agent !== undefined || !isJsonObject(stored)) return given
  const { signature: _signature, ...options } = stored
  const flags = signedFlags(stored, cli.env)
  if (flags === undefined) {
    if (given.model !== undefined) return given
    throw new UsageError(
      `The session "${session}" was not started by this user, so its stored options are not applied. ` +
        `They are: ${optionsText(options) || 'none'}. Name the agent with --agent or --model.`,
    )
  }
  const { agent } = options
  if (typeof agent === 'string' && sha256(agent) !== options['sha256']) {
    note(`${relativePath(agent, process.cwd())} has changed since the session was started.`, given, cli)
  }
  return { ...flags, ...given }
}

/** The options that select a store and the agent of a session, for a command line that continues it. */
export function selectingOptions(
  storeOptions: string,
  given: AgentFlags,
  { saved, env }: { readonly saved?: SessionReader | undefined; readonly env: Environment },
): string {
  return storeOptions.includes(' --agent ') ? storeOptions : `${storeOptions}${agentOptionsFor(given, saved, env)}`
}

/** None if they are stored with the session, otherwise those of this command line. */
function agentOptionsFor(given: AgentFlags, saved: SessionReader | undefined, env: Environment): string {
  if (given.agent !== undefined) return ` --agent ${shellQuote(given.agent)}`
  const stored = storedIn(saved)
  const { signature, ...options } = isJsonObject(stored) ? stored : {}
  const isNamed = isSigned(options, signature, env) && typeof (options['agent'] ?? options['model']) === 'string'
  if (isNamed || (stored === undefined && (env['HOOKLOOP_MODEL'] ?? '') !== '')) return ''
  return given.model === undefined ? ' --agent <file>' : ` --model ${shellQuote(given.model)}`
}

/** The options as they would be typed. */
function optionsText(options: JsonObject): string {
  return names
    .flatMap((name) => {
      const value = options[name]
      if (typeof value !== 'string' && typeof value !== 'number') return []
      const shown = name === 'agent' ? relativePath(String(value), process.cwd()) : String(value)
      return [`--${name.replace(/[A-Z]/, (letter) => `-${letter.toLowerCase()}`)} ${shellQuote(shown)}`]
    })
    .join(' ')
}

function sha256(file: string): string | undefined {
  try {
    return createHash('sha256').update(readFileSync(file)).digest('hex')
  } catch {
    return undefined // loading the agent reports the error
  }
}

function isSigned(options: JsonObject, signature: Json | undefined, env: Environment): boolean {
  const key = signingKey(env)
  if (key === undefined || typeof signature !== 'string') return false
  const [expected, found] = [Buffer.from(sign(options, key)), Buffer.from(signature)]
  return expected.length === found.length && timingSafeEqual(expected, found)
}

function sign(options: JsonObject, key: string): string {
  return `signature:${createHmac('sha256', key).update(hashJson(options)).digest('hex')}`
}

/** The key of this user, created on first use. Undefined if it cannot be stored. */
function signingKey(env: Environment): string | undefined {
  const folder = dataFolder(env)
  const file = join(folder, 'cli.key')
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    writeFileSync(file, randomBytes(32).toString('hex'), { flag: 'wx', mode: 0o600 })
  } catch {
    // it exists, or the folder cannot be written
  }
  try {
    chmodSync(file, 0o600)
    const key = readFileSync(file, 'utf8')
    return /^[0-9a-f]{64}$/.test(key) ? key : undefined
  } catch {
    return undefined
  }
}
