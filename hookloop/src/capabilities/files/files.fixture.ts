import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Use } from '../../core/agent/capability.ts'
import type { Run } from '../../core/agent/run.ts'
import { createAgent } from '../../create-agent.ts'
import { textOfJson, type JsonObject } from '../../values/json.ts'
import type { ToolExecution } from '../../core/state/tool-call.ts'
import { observe } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { guards } from '../guards.ts'
import { files } from './files.ts'
import type { FilesOptions } from './options.ts'

export const CANARY = 'CANARY-7f3a'

export type Call = readonly [name: string, args: JsonObject]
/** A step of a test: a tool call, or something that happens between two calls. */
export type Happening = Call | (() => unknown)

/** A root folder, with a secret next to it that must never be read, and a mark that must never appear. */
export class Workshop {
  readonly home = realpathSync(mkdtempSync(join(tmpdir(), 'hookloop-files-')))
  readonly inside = join(this.home, 'w')
  readonly outside = join(this.home, 'o')
  readonly secret = join(this.outside, 'secret')
  readonly mark = join(this.outside, 'MARK')

  constructor() {
    mkdirSync(this.inside)
    mkdirSync(this.outside)
    writeFileSync(this.secret, `${CANARY}\n`)
  }

  path(...names: readonly string[]): string {
    return join(this.inside, ...names)
  }

  put(name: string, content: string | Uint8Array, mode = 0o644): string {
    const path = this.path(name)
    mkdirSync(join(path, '..'), { recursive: true })
    writeFileSync(path, content, { mode })
    return path
  }

  /** Runs an agent that makes these calls one after the other, and returns their results. */
  async run(happenings: readonly Happening[], options: FilesOptions & { use?: readonly Use[] } = {}): Promise<Ran> {
    const { use = [], ...policy } = options
    const executions: ToolExecution[] = []
    let next = 0
    const model = scriptedModel(async () => {
      for (;;) {
        const happening = happenings[next++]
        if (happening === undefined) return 'Done.'
        if (typeof happening !== 'function') return { toolCalls: [{ name: happening[0], args: happening[1] }] }
        await happening()
      }
    })
    const agent = createAgent({
      model,
      use: [
        files({ ...(policy.roots === undefined && { root: this.inside }), ...policy }),
        guards({ maxSteps: null, maxTokens: null, maxTimeMs: null }),
        observe('afterToolUse', (ctx) => void executions.push(ctx.toolExecution)),
        ...use,
      ],
    })
    const run = await agent.run('Go.')
    return { run, executions, outputs: executions.map(textOf) }
  }

  async call(name: string, args: JsonObject, options: FilesOptions & { use?: readonly Use[] } = {}): Promise<Called> {
    const { executions, run } = await this.run([[name, args]], options)
    const [execution] = executions as [ToolExecution]
    return { status: execution.status, output: textOf(execution), by: execution.by, run }
  }

  /** Makes calls that must all fail, and checks that nothing outside was changed or revealed. */
  async refused(calls: readonly Call[]): Promise<readonly string[]> {
    const { executions, outputs, run } = await this.run(calls, { readFirst: false })
    assert.ok(!statuses(executions).includes('ok'), outputs.join('\n'))
    assert.equal(executions.length, calls.length)
    assert.equal(run.status, 'completed')
    assert.ok(!everythingOf(run).includes(CANARY))
    assert.deepEqual(readdirSync(this.outside), ['secret'])
    assert.equal(readFileSync(this.secret, 'utf8'), `${CANARY}\n`)
    return outputs
  }

  remove(): void {
    rmSync(this.home, { recursive: true, force: true })
  }
}

/** Every tool on one path, each in a way that would reveal or destroy the secret. */
export function everyTool(path: string): readonly Call[] {
  return [
    ['read_file', { path }],
    ['list_dir', { path }],
    ['search_files', { path, pattern: 'CAN.RY' }],
    ['search_files', { path, glob: '*' }],
    ['write_file', { path, content: 'x', overwrite: true }],
    ['edit_file', { path, old_string: 'CANARY', new_string: 'x' }],
  ]
}

export function statuses(executions: readonly ToolExecution[]): readonly string[] {
  return executions.map(({ status }) => status)
}

function textOf({ output }: ToolExecution): string {
  return textOfJson(output)
}

export type Ran = {
  readonly run: Run
  readonly executions: readonly ToolExecution[]
  readonly outputs: readonly string[]
}
export type Called = {
  readonly status: ToolExecution['status']
  readonly output: string
  readonly by: string | undefined
  readonly run: Run
}

/** Everything in a run as one text, to check that a secret is not in it. */
export function everythingOf(run: Run): string {
  return JSON.stringify(run)
}
