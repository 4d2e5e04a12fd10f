import { sessionStatuses } from '../sessions/stores/list-sessions.ts'
import { InvalidArgumentError, Option, type Command } from 'commander'
import type { ListOptions } from '../sessions/stores/store.ts'

const STORE = ['--store <where>', 'session store: a file (sessions.db) or postgres://…'] as const

export function storeOptions(command: Command): Command {
  return jsonOption(
    command.option(...STORE).option('-a, --agent <file>', 'agent module; its store is used if it has one'),
  )
}

export function filterOptions(command: Command): Command {
  return command
    .option('--status <status>', 'only sessions with this status; can be repeated', collectStatus)
    .option('--user <name>', 'only sessions of this user')
    .option('--of-agent <name>', 'only sessions of the agent with this name')
}

export type FilterFlags = {
  readonly status?: readonly string[]
  readonly user?: string
  readonly ofAgent?: string
}

/** The same for `store.list` and `store.prune`. */
export function toFilter({ status, user, ofAgent }: FilterFlags): Pick<ListOptions, 'status' | 'user' | 'agent'> {
  return {
    ...(status !== undefined && { status }),
    ...(user !== undefined && { user }),
    ...(ofAgent !== undefined && { agent: ofAgent }),
  }
}

const units: { readonly [unit: string]: number } = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** Reads a duration such as `30d`, in milliseconds. */
export function duration(text: string): number {
  const [, amount, unit] = /^(\d{1,6})([mhdw])$/.exec(text) ?? []
  if (amount !== undefined && unit !== undefined) return Number(amount) * units[unit]!
  throw new InvalidArgumentError('It must be a number and m, h, d or w, such as 12h or 30d.')
}

export function agentOptions(command: Command): Command {
  return command
    .option('-m, --model <name>', 'provider/model (default: the model of the agent, or HOOKLOOP_MODEL)')
    .option('-a, --agent <file>', 'module whose default export is an agent or the options of createAgent')
    .option('-s, --system <text>', 'system prompt')
    .option('--temperature <number>', 'sampling temperature', numberFrom(0))
    .option('--max-steps <n>', 'maximum number of steps (default: 50)', wholeNumber)
    .option('--max-tokens <n>', 'maximum number of input and output tokens (default: 2000000)', wholeNumber)
    .option('--max-time <seconds>', 'maximum working time in seconds (default: 1800)', numberFrom(0))
    .option('--max-cost <dollars>', 'maximum cost in US dollars', numberFrom(0))
    .option(...STORE)
}

export function hooksOptions(command: Command): Command {
  return command
    .option('--no-hooks', 'ignore the hooks in files of this project; your own hooks still apply')
    .option('--trust-project <hash>', 'run the hooks in files of this project if they have this hash')
}

/** Options of commands that run an agent: the agent, hooks from files, and output. */
export function runOptions(command: Command): Command {
  return hooksOptions(agentOptions(command.optionsGroup('Agent:')).optionsGroup('Hooks:'))
    .optionsGroup('Output:')
    .option('--no-stream', 'wait for the complete answer instead of streaming it')
    .option('--explain', 'print at the end which hook decided what, and why')
    .option('-v, --verbose', 'also show votes and what capabilities keep for themselves')
    .addOption(new Option('-q, --quiet', 'print only the answer').conflicts('json'))
    .option('--json', 'print each event, then the result, as a line of JSON')
}

export function sessionOptions(command: Command): Command {
  return command
    .option('--session <id>', 'continue this session, or start it with this id (default: a new session)')
    .option('--no-store', 'do not save the session')
    .addOption(
      new Option(
        '--on-new-input <how>',
        'if the session waits for an answer: reject the message, or block what is asked',
      )
        .choices(['reject', 'block'])
        .default('reject'),
    )
}

/** For commands that resume a run. */
export function resumeOptions(command: Command): Command {
  const text = 'resume although the agent no longer has this guard; can be repeated'
  return command.option('--accept-missing <guard>', text, collect)
}

export function latestSessionArgument(command: Command): Command {
  return command.argument('[session]', 'session id or prefix (default: the latest session)')
}

export function jsonOption(command: Command): Command {
  return command.option('--json', 'print JSON')
}

/** Collects the values of an option that can be repeated. With a `--no-…` form, the earlier value may be `true`. */
export function collect(value: string, before: unknown): readonly string[] {
  return [...(Array.isArray(before) ? (before as readonly string[]) : []), value]
}

function collectStatus(value: string, before: unknown): readonly string[] {
  if (sessionStatuses.some((each) => each === value)) return collect(value, before)
  throw new InvalidArgumentError(`It must be one of ${sessionStatuses.join(', ')}.`)
}

export function portNumber(text: string): number {
  const value = Number(text)
  if (/^\d{1,5}$/.test(text) && value <= 65_535) return value
  throw new InvalidArgumentError('It must be a whole number from 0 to 65535.')
}

export function wholeNumber(text: string): number {
  const value = Number(text)
  if (text.trim() !== '' && Number.isSafeInteger(value) && value >= 1) return value
  throw new InvalidArgumentError('It must be a whole number of at least 1.')
}

function numberFrom(min: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (text.trim() !== '' && Number.isFinite(value) && value >= min) return value
    throw new InvalidArgumentError(`It must be a number of at least ${min}.`)
  }
}
