import type { Environment } from '../models/providers.ts'
import { findAvailable, type Availability, type Available } from './available.ts'
import { colorsFor, type Colors } from './colors.ts'
import { exitCodes, type ExitCode } from './exit-codes.ts'
import type { Output } from './screen.ts'
import { table, widthOf, type Cell } from './table.ts'

const MAX_EXAMPLES = 3

export type ModelsOptions = {
  readonly json: boolean
  readonly out: Output
  readonly env: Environment
  /** How this command was called, for lines to copy. */
  readonly command: string
}

/** `hookloop models`: what is installed, which keys are set, and what to type to use it. */
export async function models({ json, out, env, command }: ModelsOptions): Promise<ExitCode> {
  const available = await findAvailable(env)
  if (json) out.write(`${JSON.stringify(available, undefined, 2)}\n`)
  else out.write(`${overview(available, colorsFor(out, env), out.columns)}\n\n${nextSteps(available, command)}\n`)
  return exitCodes.completed
}

/** One row for each provider. Where the terminal is too narrow for all columns, the examples go. */
function overview({ providers }: Available, colors: Colors, columns: number | undefined): string {
  const head = ['  PROVIDER', 'PACKAGE', 'KEY, OR WHAT TO DO', 'EXAMPLE'].map((text) => ({ text, paint: colors.bold }))
  const rows = providers.map((each) => rowFor(each, colors))
  const fits = columns === undefined || widthOf([head, ...rows]) < columns
  return table([head, ...rows].map((row) => (fits ? row : row.slice(0, -1))))
}

function rowFor(each: Availability, { green, yellow, dim }: Colors): readonly Cell[] {
  const { ready, version, toInstall, toSet, key } = each
  return [
    { text: `${ready ? '✓' : ' '} ${each.provider}`, paint: ready ? green : String },
    toInstall === null ? { text: `${each.package} ${version}` } : { text: toInstall, paint: yellow },
    toSet === null ? { text: key ?? 'not needed', paint: key ? green : dim } : { text: toSet, paint: yellow },
    { text: each.example, paint: ready ? String : dim },
  ]
}

function nextSteps({ providers, ollama }: Available, command: string): string {
  const ready = providers.filter(({ ready }) => ready)
  const local =
    ollama.models === null || ollama.models.length === 0
      ? []
      : [`Ollama at ${ollama.host} has: ${ollama.models.join(', ')}`, '']
  if (ready.length === 0) return [...local, ...waysToBegin(providers, command)].join('\n')
  const lines = ready.slice(0, MAX_EXAMPLES).map((each) => `  ${exampleLine(each, command)}`)
  return [...local, 'Try it:', ...lines].join('\n')
}

/** A line that works when it is pasted. */
function exampleLine({ example }: Availability, command: string): string {
  return `${command} run "hello" --model ${example}`
}

/** Without any model: what would be the shortest way to one. */
function waysToBegin(providers: readonly Availability[], command: string): readonly string[] {
  const wayTo = (name: string): string => {
    const { toInstall, toSet } = providers.find(({ provider }) => provider === name)!
    return [toInstall, toSet].filter((step) => step !== null).join(', then ')
  }
  return [
    'Nothing is ready yet. On this machine, without a key:',
    `  ${wayTo('ollama')}, then ${command} models`,
    'With a key:',
    `  ${wayTo('anthropic')}, then ${command} models`,
  ]
}

/** For whoever named no model: those that would work here. */
export async function modelsToName(env: Environment, command: string): Promise<string> {
  const { providers } = await findAvailable(env)
  const ready = providers.filter(({ ready }) => ready)
  if (ready.length === 0) return waysToBegin(providers, command).join('\n')
  return ['On this machine these would work:', ...ready.map(({ example }) => `  --model ${example}`)].join('\n')
}
