import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Json, JsonObject } from '../../values/json.ts'
import { executableProblem } from '../../system/processes/executable-problem.ts'
import type { ClaudeEvent } from './events/claude-events.ts'
import { HookTable, runEvent, type EventResult } from './run/run-event.ts'
import type { HandlerContext } from './run/run-handler.ts'
import { readSettings } from './load/read-settings.ts'
import { examplePayload } from './events/example-payload.ts'

/** A temporary folder with hooks, deleted by `using`. */
export class HookProject implements Disposable {
  readonly dir = mkdtempSync(join(tmpdir(), 'hookloop-project-'));

  [Symbol.dispose](): void {
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 10 }) // a handler in the background may still write to it
  }

  read(name: string): string {
    return readFileSync(this.path(name), 'utf8')
  }

  path(name: string): string {
    return join(this.dir, name)
  }

  write(name: string, text: string, mode = 0o644): string {
    const path = this.path(name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
    chmodSync(path, mode)
    return path
  }

  settings(value: JsonObject, name = '.claude/settings.json'): this {
    this.write(name, JSON.stringify(value))
    return this
  }

  /** One event with these handlers, all in one group. */
  handlers(event: ClaudeEvent, handlers: readonly JsonObject[], matcher?: string): this {
    return this.settings({ hooks: { [event]: [{ ...(matcher !== undefined && { matcher }), hooks: [...handlers] }] } })
  }

  /** Runs the handlers of an event. */
  async fire(event: ClaudeEvent, input: JsonObject = {}, context: Partial<HandlerContext> = {}): Promise<EventResult> {
    const { groups } = readSettings({ dir: this.dir, home: false })
    return runEvent(new HookTable(groups), examplePayload(input, event, this.dir), {
      context: { ...contextIn(this.dir), ...context },
    })
  }
}

export function contextIn(dir: string): HandlerContext {
  return { projectDir: dir, cwd: dir, env: process.env, passEnv: [] }
}

/** Runs one command as the only handler of an event. */
export async function fireCommand(
  event: ClaudeEvent,
  command: string,
  { input = {}, ...handler }: { readonly input?: JsonObject; readonly [field: string]: Json | undefined } = {},
): Promise<EventResult> {
  using project = new HookProject()
  const given = Object.entries({ type: 'command', command, ...handler }).filter((entry) => entry[1] !== undefined)
  project.handlers(event, [Object.fromEntries(given)])
  return await project.fire(event, input)
}

/** Whether a program is installed. */
export function isHere(program: string): boolean {
  return executableProblem(program, { cwd: '.', path: process.env['PATH'] }) === undefined
}

export type Said = { readonly stdout?: string; readonly stderr?: string; readonly exit?: number }

/** The command of a script that reads its input, prints this and exits. */
export function scriptIn(project: HookProject, { stdout = '', stderr = '', exit = 0 }: Said): string {
  const lines = [
    '#!/bin/bash',
    'input=$(cat)',
    `printf '%s' ${quoted(stdout)}`,
    `printf '%s' ${quoted(stderr)} >&2`,
    `exit ${exit}`,
  ]
  return `"${project.write(`.claude/hooks/${crypto.randomUUID().slice(0, 8)}.sh`, `${lines.join('\n')}\n`, 0o755)}"`
}

/** A command that prints an expression about its event `e`: strings as they are, other values as JSON. */
export function prints(expression: string): string {
  return node(
    `const value = ${expression}; console.log(typeof value === "string" ? value : JSON.stringify(value ?? null))`,
  )
}

/** A command that succeeds if an expression about its event `e` is true. */
export function holds(expression: string): string {
  return node(`process.exitCode = (${expression}) ? 0 : 1`)
}

function node(code: string): string {
  const read = 'const e = JSON.parse(require("node:fs").readFileSync(0, "utf8"))'
  return `${quoted(process.execPath)} -e ${quoted(`${read}; ${code}`)}`
}

/** Quotes a text for a shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/** The fields that a row of a table expects. */
export function saidOf({ merged }: EventResult): JsonObject {
  const { reason, ...rest } = merged
  return JSON.parse(JSON.stringify({ ...rest, ...(reason !== '' && { reason }) })) as JsonObject
}

export const bashCall: JsonObject = { tool_name: 'Bash', tool_input: { command: 'ls' }, tool_use_id: 'toolu_1' }
