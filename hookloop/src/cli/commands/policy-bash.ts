import type { Writable } from 'node:stream'
import { commandJudge, type CommandVerdict, type Verdict } from '../../capabilities/bash/judge-command.ts'
import type { Environment } from '../../models/providers.ts'
import { colorsFor, type Colors } from '../terminal/colors.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import type { Stdin } from '../run/input.ts'
import { jsonText } from '../terminal/json-lines.ts'
import { exact } from '../terminal/printable.ts'
import type { Output } from '../terminal/screen.ts'
import { UsageError } from '../usage-error.ts'

export type PolicyFlags = {
  readonly allow?: readonly string[]
  readonly deny?: readonly string[]
  readonly ask?: readonly string[]
  readonly json?: boolean
}

export type PolicyPlace = {
  readonly stdin: Stdin
  readonly out: Writable & Output
  readonly err: Output
  readonly env: Environment
}

/** `hookloop policy bash`: what the bash tool would do about each command on stdin. Runs none of them. */
export async function policyBash(flags: PolicyFlags, { stdin, out, err, env }: PolicyPlace): Promise<ExitCode> {
  const { allow = [], deny = [], ask = [], json = false } = flags
  const judge = commandJudge({ allow: ruleList(allow), deny: ruleList(deny), ask: ruleList(ask) })
  const colors = colorsFor(out, env)
  if (stdin.isTTY === true) err.write('One command per line; Ctrl-D ends.\n')
  for await (const lines of linesOf(stdin)) {
    const commands = lines.map(commandOf).filter((command) => command.trim() !== '')
    const said = commands.map((command) => {
      const verdict = judge(command)
      return json ? `${jsonText({ command, ...inOrder(verdict) })}\n` : inWords(command, verdict, colors)
    })
    if (!(await written(out, said.join('')))) return exitCodes.readerGone
  }
  return exitCodes.completed
}

/** Rules are given with commas between them, and the option may be given again. */
function ruleList(given: readonly string[]): readonly string[] {
  return given.flatMap((text) => text.split(',')).filter((rule) => rule.trim() !== '')
}

const MAX_LINE = 20 * 1024 * 1024

/** Whole lines, as many as came at once. A line ends with LF or CRLF and with nothing else. */
async function* linesOf(stdin: Stdin): AsyncGenerator<readonly string[]> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const decode = (bytes?: Uint8Array): string => {
    try {
      return bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true })
    } catch {
      throw new UsageError('What is piped in is not text: commands are read as UTF-8, one per line.')
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

/** A line that is a string of JSON is what that string says; every other line is a command as it stands. */
function commandOf(line: string): string {
  if (!/^\s*".*"\s*$/s.test(line)) return line
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'string' ? value : line
  } catch {
    return line // "my program" -x "a"
  }
}

function inOrder({ verdict, commands, rule, reason }: CommandVerdict): CommandVerdict {
  return { verdict, commands, rule, reason }
}

function inWords(command: string, { verdict, commands, rule }: CommandVerdict, colors: Colors): string {
  const head = `${painted(verdict, colors)} ${oneLine(command)} ${colors.dim(`[${oneLine(rule)}]`)}`
  const found = commands.map((each) => {
    return `  ${painted(each.verdict, colors)} ${oneLine(each.text)} ${colors.dim(`[${oneLine(each.rule)}]`)}`
  })
  return `${[head, ...found].join('\n')}\n`
}

function painted(verdict: Verdict, { green, yellow, red }: Colors): string {
  const paint = { allow: green, ask: yellow, deny: red }[verdict]
  return paint(verdict.padEnd(5))
}

/** On one line, with everything that cannot be seen made visible. */
function oneLine(text: string): string {
  return exact(text).replace(/\n/g, '\\n').replace(/\t/g, '\\t')
}

/** Waits until there is room again; false when nobody reads any more. */
async function written(out: Writable, text: string): Promise<boolean> {
  if (text === '') return true
  return new Promise((resolve) => {
    out.write(text, (failed) => resolve(failed === null || failed === undefined))
  })
}
