import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { installCommand } from '../../models/by-name.ts'
import {
  addressOf,
  isInstalled,
  keyVariable,
  providers,
  type Environment,
  type Provider,
} from '../../models/providers.ts'
import { exampleModel } from './example-models.ts'
import { findOllama, type Ollama } from './ollama.ts'

/** What this machine has of one provider. Names of variables only, never what is in them. */
export type Availability = {
  readonly provider: string
  /** Whether it can be used as it is. */
  readonly ready: boolean
  readonly package: string
  readonly installed: boolean
  readonly version: string | null
  /** The variable that holds the key, if one is set. */
  readonly key: string | null
  /** Something to try: a model that is there, or one that would be. */
  readonly example: string
  /** How to install the package, and what else to do before it can be used. */
  readonly toInstall: string | null
  readonly toSet: string | null
}

export type Available = { readonly providers: readonly Availability[]; readonly ollama: Ollama }

/** What can be used right now comes first, then what is installed. */
export async function findAvailable(env: Environment): Promise<Available> {
  const ollama = await findOllama(env)
  const all = providers.map((provider) => availabilityOf(provider, env, ollama))
  const rank = ({ ready, installed }: Availability): number => (ready ? 0 : installed ? 1 : 2)
  return { providers: all.toSorted((a, b) => rank(a) - rank(b)), ollama }
}

function availabilityOf(provider: Provider, env: Environment, ollama: Ollama): Availability {
  const { name, package: packageName } = provider
  const installed = isInstalled(provider)
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

/** A provider that could be anywhere needs its address; a key only if it wants one. */
function toSetFor(provider: Provider, env: Environment): string | null {
  const { addressVariable, address, keys } = provider
  if (addressVariable !== undefined) return address?.(env) === undefined ? `set ${addressVariable}` : null
  return keyVariable(provider, env) === undefined && keys.length > 0 ? `set ${keys[0]!}` : null
}

function toStart({ models }: Ollama): string | null {
  if (models === null) return 'ollama serve'
  return models.length === 0 ? 'ollama pull llama3.2' : null
}

/** From the package's own description, beside or above the file that is loaded. */
function versionOf(name: string): string {
  for (let folder = dirname(fileURLToPath(addressOf(name)!)); folder !== dirname(folder); folder = dirname(folder)) {
    const file = join(folder, 'package.json')
    if (!existsSync(file)) continue
    const described = JSON.parse(readFileSync(file, 'utf8')) as { readonly name?: string; readonly version?: string }
    if (described.name === name) return described.version ?? '?'
  }
  return '?'
}
