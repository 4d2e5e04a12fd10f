import type { Writable } from 'node:stream'
import { commandJudge, type CommandVerdict } from '../../capabilities/bash/policy/judge-command.ts'
import { colorsFor, type Colors } from '../terminal/colors.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import type { CliContext, Stdin } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { collect, jsonOption } from '../options.ts'
import { jsonText } from '../terminal/json.ts'
import { exact } from '../terminal/printable.ts'
import { UsageError } from '../usage-error.ts'

type PolicyFlags = {
  readonly allow?: readonly string[]
  readonly block?: readonly string[]
  readonly ask?: readonly string[]
  readonly json?: boolean
}

export const command: CommandDefinition = {
  description:
    'Read shell commands from stdin, one per line, and print what the bash tool would decide about each. No command is run.',
  examples: [`echo 'git log | head' | hookloop policy bash --allow 'git log,head' --block 'rm,curl'`],
  configure: (command) =>
    jsonOption(command)
      .option('--allow <rules>', 'rules for commands that may run, separated by commas; can be repeated', collect)
      .option('--block <rules>', 'rules for commands that may not run; can be repeated', collect)
      .option('--ask <rules>', 'rules for commands that need approval; can be repeated', collect),
  run: policyBash,
}

async function policyBash(flags: PolicyFlags, { stdin, out, err, env }: CliContext): Promise<ExitCode> {
  const { allow = [], block = [], ask = [], json = false } = flags
  const judge = commandJudge({ allow: ruleList(allow), block: ruleList(block), ask: ruleList(ask) })
  const colors = colorsFor(out, env)
  if (stdin.isTTY === true) err.write('One command per line; Ctrl-D ends.\n')
  for await (const lines of linesOf(stdin)) {
    const commands = lines.map(commandOf).filter((command) => command.trim() !== '')
    const said = commands.map((command) => {
      const verdict = judge(command)
      return json ? `${jsonText({ command, ...ordered(verdict) })}\n` : verdictText(command, verdict, colors)
    })
    if (!(await written(out, said.join('')))) return exitCodes.pipeClosed
  }
  return exitCodes.completed
}

/** An option has rules separated by commas, and can be repeated. */
function ruleList(given: readonly string[]): readonly string[] {
  return given.flatMap((text) => text.split(',')).filter((rule) => rule.trim() !== '')
}

const MAX_LINE = 20 * 1024 * 1024

/** Complete lines, as many as have arrived. Only LF and CRLF end a line. */
async function* linesOf(stdin: Stdin): AsyncGenerator<readonly string[]> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const decode = (bytes?: Uint8Array): string => {
    try {
      return bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true })
    } catch {
      throw new UsageError('The piped input is not text: it must be UTF-8, one command per line.')
    }
  }
  let rest = ''
  for await (const piece of stdin) {
    const [first = '', ...others] = decode(piece as Uint8Array).split('\n')
    rest += first
    if (rest.length > MAX_LINE) throw new UsageError('A line is longer than 20 MB.')
    if (others.length === 0) continue
    const lines = [rest, ...others.slice(0, -1)]
    rest = others.at(-1)!
    yield lines.map((line) => line.replace(/\r$/, ''))
  }
  yield [rest + decode()]
}

/** A line that is a JSON string stands for its value; any other line is a command as it is. */
function commandOf(line: string): string {
  if (!/^\s*".*"\s*$/s.test(line)) return line
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'string' ? value : line
  } catch {
    return line // "my program" -x "a"
  }
}

function ordered({ verdict, commands, rule, reason }: CommandVerdict): CommandVerdict {
  return { verdict, commands, rule, reason }
}

function verdictText(command: string, { verdict, commands, rule }: CommandVerdict, colors: Colors): string {
  const paint = { allow: colors.green, ask: colors.yellow, block: colors.red }
  const lines = [{ verdict, text: command, rule, indent: '' }, ...commands.map((each) => ({ ...each, indent: '  ' }))]
  return lines
    .map(({ verdict, text, rule, indent }) => {
      return `${indent}${paint[verdict](verdict.padEnd(5))} ${oneLine(text)} ${colors.dim(`[${oneLine(rule)}]`)}\n`
    })
    .join('')
}

/** On one line, with invisible characters made visible. */
function oneLine(text: string): string {
  return exact(text).replace(/\n/g, '\\n').replace(/\t/g, '\\t')
}

/** Waits until it is written; false if the pipe is closed. */
async function written(out: Writable, text: string): Promise<boolean> {
  if (text === '') return true
  return new Promise((resolve) => {
    out.write(text, (failed) => resolve(failed === null || failed === undefined))
  })
}
