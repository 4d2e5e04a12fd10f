import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { hashJson, isJsonObject, type Json, type JsonObject } from '../../state/json.ts'
import type { Environment } from '../../models/providers.ts'
import type { AgentFlags } from '../agents/create-cli-agent.ts'
import { quoted } from './next-steps.ts'
import { dataFolder } from '../sessions/open-store.ts'
import { UsageError } from '../usage-error.ts'

// A session remembers what the command line said about its agent, so that going on with it need not say so again. But a
// file that is named there is run, and a session may come from anybody: so what was written is sealed with a key that only
// this user has, and what has no such seal is shown, and not followed.

/** Where the metadata of a session say it. */
export const STARTED_WITH = 'hookloop.cli'

/** What a seal looks like. It is nobody else's business. */
export const sealPattern = /seal:[0-9a-f]{64}/g

const names = ['model', 'agent', 'system', 'temperature', 'maxSteps', 'maxTokens', 'maxCost', 'maxTime'] as const
const options: { readonly [K in (typeof names)[number]]: string } = {
  model: '--model',
  agent: '--agent',
  system: '--system',
  temperature: '--temperature',
  maxSteps: '--max-steps',
  maxTokens: '--max-tokens',
  maxCost: '--max-cost',
  maxTime: '--max-time',
}

/** What is kept with a session about the agent it runs with. */
export function startedWith(flags: AgentFlags, env: Environment): JsonObject {
  const given: { [name: string]: Json } = {}
  for (const name of names) if (flags[name] !== undefined) given[name] = flags[name]
  if (flags.agent === undefined) given['model'] ??= env['HOOKLOOP_MODEL'] ?? null
  else {
    given['agent'] = resolve(flags.agent)
    given['sha256'] = sha256(flags.agent) ?? null
  }
  const key = keyOf(env)
  return key === undefined ? given : { ...given, seal: sealOf(given, key) }
}

/** What the command line says, and where it says nothing about the agent, what the session was started with. */
export function flagsFor<F extends AgentFlags>(
  given: F,
  kept: Json | undefined,
  {
    env,
    note,
    session,
  }: { readonly env: Environment; readonly note: (words: string) => void; readonly session: string },
): F {
  if (given.agent !== undefined || !isJsonObject(kept)) return given
  const { seal, sha256: before, ...known } = kept
  if (!isSealed({ ...known, ...(before !== undefined && { sha256: before }) }, seal, env)) {
    if (given.model !== undefined) return given
    throw new UsageError(
      `The session "${session}" was not begun by this user, so what it says about its agent is not followed. ` +
        `It says: ${flagWords(known) || 'nothing'}. Name the agent yourself, with --agent or --model.`,
    )
  }
  const { agent } = known
  if (typeof agent === 'string' && sha256(agent) !== before) {
    note(`${fromHere(agent)} is not what it was when the session was begun with it.`)
  }
  const flags = Object.fromEntries(
    names.flatMap((name) => ((known[name] ?? undefined) === undefined ? [] : [[name, known[name]]])),
  )
  return { ...flags, ...given }
}

/** Options as they would be typed. */
export function flagWords(flags: { readonly [name: string]: unknown }): string {
  return names
    .flatMap((name) => {
      const value = flags[name]
      if (typeof value !== 'string' && typeof value !== 'number') return []
      return [`${options[name]} ${quoted(name === 'agent' ? fromHere(String(value)) : String(value))}`]
    })
    .join(' ')
}

function fromHere(path: string): string {
  const near = relative(process.cwd(), path)
  return near !== '' && near.length < path.length ? near : path
}

function sha256(file: string): string | undefined {
  try {
    return createHash('sha256').update(readFileSync(file)).digest('hex')
  } catch {
    return undefined // whoever loads it says what is wrong with it
  }
}

function isSealed(given: JsonObject, seal: Json | undefined, env: Environment): boolean {
  const key = keyOf(env)
  if (key === undefined || typeof seal !== 'string') return false
  const [expected, found] = [Buffer.from(sealOf(given, key)), Buffer.from(seal)]
  return expected.length === found.length && timingSafeEqual(expected, found)
}

function sealOf(given: JsonObject, key: string): string {
  return `seal:${createHmac('sha256', key).update(hashJson(given)).digest('hex')}`
}

/** The key of this user, made when it is first needed. Nothing where it cannot be kept. */
function keyOf(env: Environment): string | undefined {
  const folder = dataFolder(env)
  const file = join(folder, 'cli.key')
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    writeFileSync(file, randomBytes(32).toString('hex'), { flag: 'wx', mode: 0o600 })
  } catch {
    // It is there, or there is no place for it.
  }
  try {
    chmodSync(file, 0o600)
    const key = readFileSync(file, 'utf8')
    return /^[0-9a-f]{64}$/.test(key) ? key : undefined
  } catch {
    return undefined
  }
}
