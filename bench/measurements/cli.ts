import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { printedBy, round, sideBySide, type Measurement } from '../measurement.ts'

const COMMAND = join(import.meta.dirname, '../../hookloop/bin/hookloop.mjs')

export const measurement: Measurement = {
  about: 'commands of the CLI, whole processes',
  rows: {
    cliMs: { label: 'ms for `hookloop policy bash`, the whole process', goal: 60 },
    cliVersionMs: { label: 'ms for `hookloop --version`' },
    nodeMs: { label: 'ms for Node with an empty script' },
  },
  async measure() {
    const folder = mkdtempSync(join(tmpdir(), 'hookloop-bench-'))
    try {
      writeFileSync(join(folder, 'empty.mjs'), '')
      const run = (...args: readonly string[]) =>
        printedBy(process.execPath, args, { cwd: folder, input: 'git status\n' })
      const sides = [
        () => run(COMMAND, 'policy', 'bash', '--allow', 'git status'),
        () => run(COMMAND, '--version'),
        () => run('empty.mjs'),
      ]
      await sideBySide(2, 1000, sides)
      const [policy, version, node] = await sideBySide(20, 1000, sides)
      return {
        cliMs: round(policy!.fast),
        cliVersionMs: round(version!.fast),
        nodeMs: round(node!.fast),
        median: { cliMs: round(policy!.median), nodeMs: round(node!.median) },
      }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
}
