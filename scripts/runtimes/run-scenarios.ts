import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { dirname } from 'node:path'
import { suite, test } from 'node:test'
import { scenarios } from './scenarios.ts'

type Result = { readonly title: string; readonly problem?: string }

/** Declares a test for each scenario. `started` returns the command that runs all of them; undefined if there is none. */
export function testScenarios(name: string, started: () => Promise<readonly string[] | undefined>): void {
  suite(`the scenarios ${name}`, () => {
    let results: Promise<ReadonlyMap<string, Result> | undefined> | undefined
    for (const title of Object.keys(scenarios)) {
      test(`${name}: ${title}`, async () => {
        const all = await (results ??= started().then((command) => command && runScenarios(command)))
        if (all === undefined) return
        const { problem } = all.get(title) ?? { problem: all.get('')!.problem }
        assert.equal(problem, undefined)
      })
    }
  })
}

/** By title. What the program printed otherwise is the problem of the title ''. */
async function runScenarios(command: readonly string[]): Promise<ReadonlyMap<string, Result>> {
  const [program, ...args] = command
  const env: NodeJS.ProcessEnv = { ...process.env, HOOKLOOP_RESTART: JSON.stringify(command) }
  for (const name of ['NODE_OPTIONS', 'NODE_COMPILE_CACHE', 'NODE_TEST_CONTEXT']) delete env[name]
  const child = spawn(program!, args, { cwd: dirname(args.at(-1)!), env, stdio: ['ignore', 'pipe', 'pipe'] })
  let [printed, failed] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (failed += text))
  const end = await new Promise((resolve, reject) => child.on('error', reject).on('close', resolve))
  const lines = printed.split('\n').filter((line) => line.startsWith('{'))
  const found = lines.map((line) => JSON.parse(line) as Result).map((result) => [result.title, result] as const)
  return new Map([
    ...found,
    ['', { title: '', problem: `It was not run. The program ended with ${String(end)}: ${failed}` }],
  ])
}
