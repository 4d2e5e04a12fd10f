import { readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { installCommand } from '../../models/by-name.ts'
import {
  addressOf,
  isInstalled,
  keyVariable,
  providers,
  type Environment,
  type Provider,
} from '../../models/providers.ts'
import { isJsonObject } from '../../values/json.ts'
import { exampleModel } from './example-models.ts'

/** For a server that accepts the connection and does not answer. A missing server is known at once. */
const OLLAMA_TIMEOUT_MS = 1500

/** Names are printed in command lines to copy, so names with characters that a shell interprets are left out. */
const MODEL_NAME = /^[\w./:@+-]+$/

/** Whether a provider can be used on this machine. It contains names of variables, never their values. */
export type Availability = {
  readonly provider: string
  readonly ready: boolean
  readonly package: string
  readonly installed: boolean
  readonly version: string | null
  /** The variable with the key, if one is set. */
  readonly key: string | null
  /** A model to try. */
  readonly example: string
  /** How to install the package, and what else to do before it can be used. */
  readonly toInstall: string | null
  readonly toSet: string | null
}

/** The models of the Ollama server; null if no server answers. */
type Ollama = { readonly host: string; readonly models: readonly string[] | null }

export type Available = { readonly providers: readonly Availability[]; readonly ollama: Ollama }

/** All providers: those that are ready first, then those that are installed. */
export async function findAvailable(env: Environment): Promise<Available> {
  const ollama = await findOllama(env)
  const all = providers.map((provider) => availabilityOf(provider, env, ollama))
  const rank = ({ ready, installed }: Availability): number => (ready ? 0 : installed ? 1 : 2)
  return { providers: all.toSorted((a, b) => rank(a) - rank(b)), ollama }
}

/** The models to name on this machine, for an error about a missing model. */
export async function suggestModels(env: Environment, command: string): Promise<string> {
  const { providers } = await findAvailable(env)
  const ready = providers.filter(({ ready }) => ready)
  if (ready.length === 0) return setupSteps(providers, command).join('\n')
  return ['These work on this machine:', ...ready.map(({ example }) => `  --model ${example}`)].join('\n')
}

/** The shortest ways to a model, for a machine without one. */
export function setupSteps(providers: readonly Availability[], command: string): readonly string[] {
  const stepsFor = (name: string): string => {
    const { toInstall, toSet } = providers.find(({ provider }) => provider === name)!
    return [toInstall, toSet].filter((step) => step !== null).join(', then\n  ')
  }
  return [
    'No provider is ready yet. To run a model on this machine, without a key:',
    `  ${stepsFor('ollama')}`,
    'To use a provider with a key:',
    `  ${stepsFor('anthropic')}`,
    `Then run again: ${command} models`,
  ]
}

function availabilityOf(provider: Provider, env: Environment, ollama: Ollama): Availability {
  const { name, package: packageName } = provider
  const installed = isInstalled(provider) === true
  const toSet = name === 'ollama' ? toStart(ollama) : toSetFor(provider, env)
  const model = name === 'ollama' ? ollama.models?.[0] : undefined
  return {
    provider: name,
    ready: installed && toSet === null,
    package: packageName,
    installed,
    version: installed ? versionOf(packageName) : null,
    key: keyVariable(provider, env) ?? null,
    example: model === undefined ? exampleModel(provider) : `ollama/${model}`,
    toInstall: installed ? null : installCommand(provider),
    toSet,
  }
}

async function findOllama(env: Environment): Promise<Ollama> {
  const api = providers.find(({ name }) => name === 'ollama')?.address?.(env) ?? ''
  const host = URL.parse(api)?.host ?? '' // the only part of an address that is never secret
  try {
    const response = await fetch(api.replace(/\/v1$/, '/api/tags'), { signal: AbortSignal.timeout(OLLAMA_TIMEOUT_MS) })
    return { host, models: response.ok ? namesIn(await response.json()) : null }
  } catch {
    return { host, models: null }
  }
}

/** Models that generate text, in the order of Ollama: the newest first. */
function namesIn(answer: unknown): readonly string[] | null {
  if (!isJsonObject(answer) || !Array.isArray(answer['models'])) return null
  return answer['models'].flatMap((model) => {
    const name = isJsonObject(model) ? model['name'] : undefined
    const isEmbedding = /embed|bert/i.test(JSON.stringify(model))
    return typeof name === 'string' && MODEL_NAME.test(name) && !isEmbedding ? [name] : []
  })
}

/** A provider without a fixed address needs that, and its key is optional. */
function toSetFor(provider: Provider, env: Environment): string | null {
  const { addressVariable, address, keys } = provider
  if (addressVariable !== undefined) return address?.(env) === undefined ? `set ${addressVariable}` : null
  return keyVariable(provider, env) === undefined && keys.length > 0 ? `set ${keys[0]!}` : null
}

function toStart({ models }: Ollama): string | null {
  if (models === null) return 'ollama serve'
  return models.length === 0 ? 'ollama pull llama3.2' : null
}

function versionOf(name: string): string {
  const file = findPackageJSON(name, addressOf(name))
  if (file === undefined) return '?'
  return (JSON.parse(readFileSync(file, 'utf8')) as { readonly version?: string }).version ?? '?'
}
