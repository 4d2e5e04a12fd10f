import { findAvailable, setupSteps, type Availability, type Available } from '../agents/available-providers.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { jsonOption } from '../options.ts'
import { colorsFor, type Colors } from '../terminal/colors.ts'
import { printJson } from '../terminal/json.ts'
import { table, widthOf } from '../terminal/table.ts'

export const command: CommandDefinition = {
  description:
    'List model providers: which are ready, with a model to try, and what the others need. Keys are never printed.',
  examples: ['hookloop models', 'hookloop models --json'],
  configure: jsonOption,
  run: models,
}

const MAX_EXAMPLES = 3
/** The width where the terminal does not report one. */
const WIDTH = 80

async function models(flags: { readonly json?: boolean }, { out, env, command }: CliContext): Promise<void> {
  const available = await findAvailable(env)
  if (flags.json === true) printJson(out, available)
  else out.write(`${overview(available, colorsFor(out, env), out.columns)}\n\n${nextSteps(available, command)}\n`)
}

/** A table of the providers that are ready, then what the others need. */
function overview({ providers }: Available, colors: Colors, columns: number = WIDTH): string {
  const ready = providers.filter((each) => each.ready)
  const others = providers.filter((each) => !each.ready).map((each) => `  ${stepsFor(each, colors)}`)
  const parts = [
    ...(ready.length === 0 ? [] : [readyTable(ready, colors, columns)]),
    ...(others.length === 0 ? [] : [[colors.bold('Not ready, and what to do:'), ...others].join('\n')]),
  ]
  return parts.join('\n\n')
}

/** On a terminal that is too narrow, the packages are left out. */
function readyTable(ready: readonly Availability[], colors: Colors, columns: number): string {
  const head = ['  PROVIDER', 'KEY', 'EXAMPLE', 'PACKAGE'].map(colors.bold)
  const rows = [head, ...ready.map((each) => rowFor(each, colors))]
  return table(widthOf(rows) <= columns ? rows : rows.map((row) => row.slice(0, -1)))
}

function rowFor({ provider, version, key, example, package: from }: Availability, colors: Colors): readonly string[] {
  return [
    colors.green(`✓ ${provider}`),
    key ? colors.green(key) : colors.dim('not needed'),
    example,
    colors.dim(`${from} ${version}`),
  ]
}

function stepsFor({ provider, toInstall, toSet }: Availability, { yellow }: Colors): string {
  const steps = [toInstall, toSet].filter((step) => step !== null)
  const isLong = `  ${provider}: ${steps.join(', ')}`.length > WIDTH
  return `${provider}: ${steps.map((step) => yellow(step)).join(isLong ? ',\n    ' : ', ')}`
}

function nextSteps({ providers, ollama }: Available, command: string): string {
  const ready = providers.filter((each) => each.ready)
  const local =
    ollama.models === null || ollama.models.length === 0
      ? []
      : [`Ollama at ${ollama.host} has: ${ollama.models.join(', ')}`, '']
  if (ready.length === 0) return [...local, ...setupSteps(providers, command)].join('\n')
  const lines = ready.slice(0, MAX_EXAMPLES).map(({ example }) => `  ${command} run "hello" --model ${example}`)
  return [...local, 'Try it:', ...lines].join('\n')
}
