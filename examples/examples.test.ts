import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AgentEvent } from 'hookloop'
import type { ModuleOutput } from '../scripts/run-modules.ts'
import { runProgram } from './repair/run-program.ts'

/** Output of each example that it prints only if what it shows works. */
const telling = {
  '01-hello.ts': /^It is 15:00 in Oslo\.$/m,
  '02-guard.ts': /blocked +step 2, shell, by never-push \(examples\/02-guard\.ts:19\): Agents never push\./,
  '03-transform.ts': /the model saw: 100 rows of orders, read with password=\[redacted\]/,
  '04-limits.ts': /stopped by guards\.maxTokens after 5 steps: Token limit reached: 5000\/5000\./,
  '05-ask-for-approval.ts':
    /\(building\)\nsuspended .*Deploy to production\?.*\n.*\n +\(deploying to staging\)\ncompleted/,
  '06-on-stop.ts': /tests-pass: The tests were not run after the edit\.\n(.*\n)+.*Now they pass\.\n$/,
  '07-retry-and-fallback.ts': /Second answer, from the backup\.\n(.*\n)+calls: 5 to best, 1 to backup/,
  '08-errors.ts': /patient: completed by completion \(errors: 2, waited: 750 ms\)/,
  '09-record-and-replay.ts':
    /replayed to the same state: 2 rolls in all(.*\n)+.*diverged.*the model call in step 1 has another input/,
  '10-stream-and-iterate.ts': /iterated: suspended\nresumed: +completed - Hooks and loops/,
  '11-observe.ts': /call 2: delete blocked by keep\n(.*\n)+completed, although: the log server is down/,
  '12-test-your-hooks.ts': /pass 4\n.*fail 0/,
  '13-parallel-tools.ts': /together, 8 at most .* 6 at once, results in order: 1 2 3 4 5 6/,
  '14-cancel.ts': /call 1: outcomeUnknown .*\ncall 2: blocked/,
  '15-metadata-and-matchers.ts': /"guest".*\n.*\n +blocked +Only admins drop tables\. \(admins-only\)/,
  '16-real-models.ts':
    /google\.generative-ai .*\n +Yes: light rain, 14 degrees\.\n +800 tokens in, 60 out, 0\.000\d+ USD/,
  '17-when-models-fail.ts':
    /Blue, by day\. \(15 tokens\)\n(.*\n)+.*Blue, by day\. \(0 tokens\)\n(.*\n)+calls: 5 to main, 1 to backup/,
  '18-typed-output.ts': /^Paper & Sons: 1250 cents\n\nOUTPUT_INVALID .* after 1 retry\./m,
  '19-streaming.ts':
    /at the end: "The sky is blue\."\n(.*\n)+And the key\?\n( +\+ \d+ characters\n)+ +discard all of it/,
  '20-tracing.ts': /execute_tool delete .*status: "blocked"/,
  '21-sessions.ts':
    /ended by SIGKILL\n.*suspended\n.*Run "pay"\?\n.*All done\.\nexecuted: packed\. shipped\. paid\. \n/,
  '22-counterfactual.ts':
    /diverges at +step 3, beforeToolUse, shell: the call would be blocked\n(.*\n)+The runs differ from step 3 on, in the results/,
  '23-shadow.ts':
    /shadows +step 1, no-push \(examples\/23-shadow\.ts:\d+\) at beforeToolUse, shell: would decide block: Agents never push\.(.*\n)+in force: 1 blocked/,
  '24-bash.ts': /blocked: Blocked: rm notes\.txt \(block "rm"\)/,
  '25-files.ts': /\.git\/hooks\/pre-commit is protected: it can be read/,
  '26-metadata.ts': /refund +blocked +Only admins refund\./,
  '27-tasks.ts': /\[x\] Read the log · \[x\] Fix the import · \[>\]/,
  '28-skills.ts': /The skill "changelog" allows only write_file until this task is done\./,
  '29-structured-output.ts': /contact +blocked +No more data of this type/,
  '30-summarization.ts': /At most 14 of 50 messages were sent\./,
  '31-self-critique.ts': /continued +after step 1 by selfCritique\.judge: (.*\n)+.*after step 2/,
  '32-subagents.ts':
    /scout completed: 2 steps(.*\n)+ +step 1, run blocked by onlyReads \(.*\): This repository is read-only\./,
  '33-tool-registry.ts': /step 4: 3 of 501 tools/,
  '34-mcp.ts':
    /asked about mcp__shelf__borrow(.*\n)+.*burn +blocked +Books are not burned\.\n.*crash +failed .*exit code 1/,
  '40-planning.ts': /The agent "fixer" is defined\./,
  '41-actions.ts':
    /blocked  Agents never push\.\nok       ran npm ci\nblocked  It deletes(.*\n)+.*after step 4 by tested/,
  '42-hook-files.ts':
    /no hooks\n(.*\n)+.*blocked  No pushes before Friday\.\n(.*\n)+.*no-push\.sh has changed since it was trusted/,
  '43-skill-hooks.ts':
    /ok +ran \.\/deploy production\nok .*loaded\nblocked +Staging comes first\.\nok +ran \.\/deploy staging/,
  '44-claude-hooks.ts':
    /PreToolUse:Bash hook error: Never force-push\.(.*\n)+.*\(pnpm test ran\)(.*\n)+Ship version 1\.2\.\nStop hook feedback:/,
  '45-workshop.ts':
    /blocked +step 5, edit_file, by files\.protect(.*\n)+.*continued +after step 13 by selfCritique(.*\n)+.*toSorted/,
}

const here = import.meta.dirname
const numbered = readdirSync(here).filter((file) => /^\d\d-.*\.ts$/.test(file))

/** Examples that need a process of their own: this one is a file of tests. */
const alone = ['12-test-your-hooks.ts']

describe('examples', { concurrency: 3 }, () => {
  const together = numbered.filter((file) => !alone.includes(file))
  const half = Math.ceil(together.length / 2)
  const groups = [together.slice(0, half), together.slice(half)].map(runTogether)

  for (const [file, line] of Object.entries(telling)) {
    test(`${file} runs offline and shows what it is about`, async () => {
      const { exitCode, stdout, stderr } = alone.includes(file)
        ? await start(file).ended
        : (await Promise.all(groups)).flatMap((outputs) => outputs[file] ?? [])[0]!
      assert.deepEqual({ exitCode, stderr }, { exitCode: 0, stderr: '' })
      assert.match(stdout, line)
    })
  }

  test('every numbered example has a test and is listed in the README', () => {
    const readme = readFileSync(join(here, 'README.md'), 'utf8')
    assert.deepEqual(numbered, Object.keys(telling))
    assert.deepEqual(
      numbered.filter((file) => !readme.includes(`(${file})`)),
      [],
    )
  })

  test('every numbered example fits on a page and starts with a comment that says what it shows', () => {
    for (const file of numbered) {
      const lines = readFileSync(join(here, file), 'utf8').trimEnd().split('\n')
      const comment = lines.findIndex((line) => !line.startsWith('// '))
      assert.ok(comment >= 1 && comment <= 3, `${file} begins with ${comment} lines of comment`)
      assert.ok(lines.length <= 85, `${file} has ${lines.length} lines`)
    }
  })
})

describe('the demo', { concurrency: 3 }, () => {
  const temp = mkdtempSync(join(tmpdir(), 'hookloop-demo-test-'))
  after(() => rmSync(temp, { recursive: true }))
  const demo = (args: readonly string[] = [], env: NodeJS.ProcessEnv = {}): Running =>
    start('repair.ts', args, { TMPDIR: temp, TEMP: temp, ...env })
  const piped = demo().ended
  const kept = demo(['--keep'], { FORCE_COLOR: '1' }).ended

  test('the demo repairs the program, and its timeline shows who decided what', async () => {
    const { exitCode, stdout, stderr } = await piped
    assert.deepEqual({ exitCode, stderr }, { exitCode: 0, stderr: '' })
    const story = [
      /⊘ blocked +edit_file test\/invoice\.test\.js\n(.*\n)+? +tests-are-the-spec: /,
      /\? asked +delete_file debug\.log\n +ask-before-deleting: Delete debug\.log\?\n.* ✓ approved +by rule/,
      /○ may stop +completion at afterStep: .*\n.* ↻ continue +tests-must-pass at onStop: The tests have not passed/,
      /▸ call +run_tests\n.* ✓ result +exit 0 · 4 passed · 0 failed/,
      /● completed +completion: /,
      /spent 8\/12 steps · 12\/20 calls · [\d,]+\/30,000 tokens · [\d.]+\/60 s/,
      /explain\(run\)\nThe run is complete: /,
      /^Repaired: 1 of 4 tests pass before, 4 of 4 tests pass now\.$/m,
    ]
    assert.deepEqual(
      story.filter((line) => !line.test(stdout)),
      [],
      stdout,
    )
  })

  test('the demo prints colors to a pipe only if they are requested', async () => {
    assert.equal((await piped).stdout.includes('\u001B['), false)
    assert.equal((await kept).stdout.includes('\u001B[31m⊘ blocked'), true)
  })

  test('the demo removes its folder, unless --keep is given', async () => {
    const [removed, left] = [folderOf((await piped).stdout), folderOf((await kept).stderr)]
    assert.equal(existsSync(removed), false)
    assert.match(readFileSync(join(left, 'src/invoice.js'), 'utf8'), /Math\.round\(sum - \(sum \* discount\) \/ 100\)/)
  })

  test('with --json the demo prints events, the last of which says how the run finished', async () => {
    const { exitCode, stdout } = await demo(['--json']).ended
    const events = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as AgentEvent)
    const finished = events.flatMap((event) => (event.type === 'finished' ? [event.record.status] : []))
    assert.deepEqual([exitCode, finished, events.at(-1)?.type], [0, ['completed'], 'finished'])
  })

  test('Ctrl-C cancels the demo, which reports it and cleans up', async () => {
    const running = demo()
    await running.printed(/▸ call +run_tests/)
    running.interrupt()
    const { exitCode, stdout, stderr } = await running.ended
    assert.deepEqual([exitCode, stderr.trim()], [130, 'Cancelled. No process is left running.'])
    assert.match(stdout, /● cancelled +signal: The run was cancelled\.\n(.*\n)+explain\(run\)\nThe run was cancelled/)
    assert.equal(existsSync(folderOf(stdout)), false)
  })

  test('--help explains the demo, and so does the error about an unknown option', async () => {
    const [help, unknown] = await Promise.all([demo(['--help']).ended, demo(['--faster']).ended])
    assert.deepEqual([help.exitCode, unknown.exitCode], [0, 1])
    assert.match(help.stdout, /--json .*\n +--keep .*\n +--help/)
    assert.equal(unknown.stderr, `Unknown option '--faster'\n\n${help.stdout}`)
  })
})

test('a cancelled program is ended with all its child processes', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'hookloop-run-test-'))
  const cancel = new AbortController()
  const parent = `
    const child = require('node:child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'])
    require('node:fs').writeFileSync(String(child.pid), '')
    setInterval(() => {}, 1000)`
  try {
    const running = runProgram('node', ['-e', parent], { folder, signal: cancel.signal })
    while (readdirSync(folder).length === 0) await sleep(10)
    const pid = Number(readdirSync(folder)[0])
    cancel.abort()
    await assert.rejects(running, /was interrupted/)
    while (isAlive(pid)) await sleep(10)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

type Ended = { readonly exitCode: number | null; readonly stdout: string; readonly stderr: string }
type Running = {
  readonly ended: Promise<Ended>
  readonly interrupt: () => void
  readonly printed: (text: RegExp) => Promise<void>
}

/** Runs examples one after the other in one process. */
async function runTogether(files: readonly string[]): Promise<{ readonly [file: string]: ModuleOutput }> {
  const { stdout, stderr } = await start(
    '../scripts/run-modules.ts',
    files.map((file) => join(here, file)),
  ).ended
  assert.equal(stderr, '')
  const outputs = JSON.parse(stdout) as readonly ModuleOutput[]
  return Object.fromEntries(files.map((file, i) => [file, outputs[i]!]))
}

function start(file: string, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}): Running {
  // The test runner around this test and its color settings must not change the output.
  const plain = { NODE_TEST_CONTEXT: undefined, FORCE_COLOR: undefined, NO_COLOR: undefined, NODE_NO_WARNINGS: '1' }
  const child = spawn(process.execPath, ['--conditions=hookloop-source', join(here, file), ...args], {
    env: { ...process.env, ...plain, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  return {
    ended: new Promise((resolve, reject) => {
      child.on('error', reject)
      child.on('close', (exitCode) => resolve({ exitCode, stdout, stderr }))
    }),
    interrupt: () => child.kill('SIGINT'),
    async printed(text) {
      while (!text.test(stdout)) await sleep(5)
    },
  }
}

function folderOf(output: string): string {
  return /^ *(?:program|The program is in) +(\S+)/m.exec(output)![1]!
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
