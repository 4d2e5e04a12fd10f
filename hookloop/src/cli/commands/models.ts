import type { Environment } from '../../models/providers.ts'
import { findAvailable, type Availability, type Available } from '../agents/available-providers.ts'
import { colorsFor, type Colors } from '../terminal/colors.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import type { Output } from '../terminal/screen.ts'
import { table, widthOf, type Cell } from '../terminal/table.ts'

const MAX_EXAMPLES = 3
/** Of a terminal that does not say how wide it is, and of lists that are to be read anywhere. */
const WIDTH = 80

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

/** What can be used as rows, then what to do about the others. */
function overview({ providers }: Available, colors: Colors, columns: number = WIDTH): string {
  const ready = providers.filter((each) => each.ready)
  const others = providers.filter((each) => !each.ready).map((each) => `  ${stepsFor(each, colors)}`)
  const parts = [
    ...(ready.length === 0 ? [] : [readyTable(ready, colors, columns)]),
    ...(others.length === 0 ? [] : [[colors.bold('Not ready, and what to do:'), ...others].join('\n')]),
  ]
  return parts.join('\n\n')
}

/** Where the terminal is too narrow for all columns, the packages go. */
function readyTable(ready: readonly Availability[], colors: Colors, columns: number): string {
  const head = ['  PROVIDER', 'KEY', 'EXAMPLE', 'PACKAGE'].map((text) => ({ text, paint: colors.bold }))
  const rows = [head, ...ready.map((each) => rowFor(each, colors))]
  return table(widthOf(rows) <= columns ? rows : rows.map((row) => row.slice(0, -1)))
}

function rowFor({ provider, version, key, example, package: from }: Availability, colors: Colors): readonly Cell[] {
  return [
    { text: `✓ ${provider}`, paint: colors.green },
    { text: key ?? 'not needed', paint: key ? colors.green : colors.dim },
    { text: example },
    { text: `${from} ${version}`, paint: colors.dim },
  ]
}

function stepsFor({ provider, toInstall, toSet }: Availability, { yellow }: Colors): string {
  const steps = [toInstall, toSet].filter((step) => step !== null)
  const isLong = `  ${provider}: ${steps.join(', ')}`.length > WIDTH
  return `${provider}: ${steps.map((step) => yellow(step)).join(isLong ? ',\n    ' : ', ')}`
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
    return [toInstall, toSet].filter((step) => step !== null).join(', then\n  ')
  }
  return [
    'Nothing is ready yet. On this machine, without a key:',
    `  ${wayTo('ollama')}`,
    'With a key:',
    `  ${wayTo('anthropic')}`,
    `Then again: ${command} models`,
  ]
}

/** For whoever named no model: those that would work here. */
export async function modelsToName(env: Environment, command: string): Promise<string> {
  const { providers } = await findAvailable(env)
  const ready = providers.filter(({ ready }) => ready)
  if (ready.length === 0) return waysToBegin(providers, command).join('\n')
  return ['On this machine these would work:', ...ready.map(({ example }) => `  --model ${example}`)].join('\n')
}
