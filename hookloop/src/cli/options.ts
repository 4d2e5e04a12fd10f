import { InvalidArgumentError, Option, type Command } from 'commander'

/** Where sessions are. */
export function storeOptions(command: Command): Command {
  return command
    .option('--store <where>', 'where sessions are: a file such as sessions.db, a folder, or postgres://…')
    .option('-a, --agent <file>', 'the agent; if it has a store of its own, that is used')
}

/** Which agent runs, and what it may do. */
export function agentOptions(command: Command): Command {
  return command
    .option('-m, --model <name>', 'provider/model (default: the one of the agent, or HOOKLOOP_MODEL)')
    .option('-a, --agent <file>', 'a module whose default export is the options of createAgent, or an agent')
    .option('-s, --system <text>', 'the system prompt')
    .option('--temperature <number>', 'how freely it words things', numberFrom(0))
    .option('--max-steps <n>', 'steps at most (default: 20)', wholeNumber)
    .option('--max-tokens <n>', 'tokens at most, in and out (default: 32768)', wholeNumber)
    .option('--max-time <seconds>', 'seconds at work at most (default: 300)', numberFrom(0))
    .option('--max-cost <dollars>', 'US dollars at most', numberFrom(0))
    .option('--store <where>', 'where sessions are: a file such as sessions.db, a folder, or postgres://…')
}

/** Which hooks in files apply. */
export function hooksOptions(command: Command): Command {
  return command
    .option('--no-hooks', 'leave out the hooks in files of this project; your own stay')
    .option('--trust-project <hash>', 'run the hooks in files of this project if they have this hash')
}

/** How a run is shown. */
export function showOptions(command: Command): Command {
  return command
    .option('--no-stream', 'wait for the whole answer')
    .option('--explain', 'say at the end who decided what, and why')
    .addOption(new Option('-q, --quiet', 'print only the answer').conflicts('json'))
    .option('--json', 'print every event, and at last the result, as lines of JSON')
}

export function jsonOption(command: Command): Command {
  return command.option('--json', 'print it as JSON')
}

export function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value]
}

/** For an option that also has a `--no-…`. */
export function collectUnlessOff(value: string, before: readonly string[] | boolean | undefined): readonly string[] {
  return collect(value, Array.isArray(before) ? (before as readonly string[]) : [])
}

export function wholeNumber(text: string): number {
  const value = Number(text)
  if (text.trim() !== '' && Number.isSafeInteger(value) && value >= 1) return value
  throw new InvalidArgumentError('It must be a whole number from 1 up.')
}

export function numberFrom(least: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (text.trim() !== '' && Number.isFinite(value) && value >= least) return value
    throw new InvalidArgumentError(`It must be a number from ${least} up.`)
  }
}
