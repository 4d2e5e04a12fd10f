import { accessSync, constants, realpathSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'
import { minimalEnvironment } from '../../system/processes/minimal-environment.ts'
import { runProcess } from '../../system/processes/run-process.ts'
import type { Pattern } from './line-matcher.ts'
import { toRipgrepPattern } from './ripgrep-pattern.ts'
import { placeOf, type Root } from './roots.ts'

/** Files that may have a match, and the folders on the way to them. */
export type Candidates = {
  readonly has: (names: readonly string[]) => boolean
  readonly mayLeadTo: (names: readonly string[]) => boolean
}

/** Narrows a search down. What it does not know about must be searched without it. */
export type Ripgrep = (
  folder: string,
  pattern: Pattern,
  how: { readonly timeoutMs: number; readonly signal: AbortSignal },
) => Promise<Candidates | undefined>

export type RipgrepLimits = {
  readonly skip: readonly string[]
  readonly maxDepth: number
  readonly maxFileBytes: number
}

const MAX_OUTPUT = 8_388_608

/**
 * ripgrep as a fast first look: it names files, and every one of them is then opened, judged and searched like any
 * other. So it cannot show what is hidden or outside, and results do not depend on whether it is there.
 */
export function ripgrepAt(program: string, { skip, maxDepth, maxFileBytes }: RipgrepLimits): Ripgrep {
  return async (folder, { pattern, literal, ignoreCase }, { timeoutMs, signal }) => {
    const inline = !literal && pattern.startsWith('(?i)')
    const expression = literal ? pattern : toRipgrepPattern(inline ? pattern.slice(4) : pattern)
    if (expression === undefined || timeoutMs < 1) return undefined
    const switches =
      '--no-config --no-messages --color=never --files-with-matches --null --no-ignore --hidden --text --crlf'
    const { ended, exitCode, stdout } = await runProcess(
      [
        program,
        ...switches.split(' '),
        '--encoding=none',
        `--max-depth=${maxDepth}`,
        `--max-filesize=${maxFileBytes}`,
        ...skip.map((name) => `--glob=!${name}/`),
        ...(literal ? ['--fixed-strings'] : []),
        ...(ignoreCase || inline ? ['--ignore-case'] : []),
        `--regexp=${expression}`,
        '--regexp=\uFEFF', // the line after a byte order mark begins there for us, and not for ripgrep
        '--',
        '.',
      ],
      { cwd: folder, env: minimalEnvironment(), timeoutMs, signal, output: { head: MAX_OUTPUT, tail: 0 } },
    )
    signal.throwIfAborted()
    // 1: nothing was found. 2: something was not understood or could not be read, so nobody knows what is missing.
    if (ended !== 'exited' || (exitCode !== 0 && exitCode !== 1) || stdout.droppedBytes > 0) return undefined
    return toCandidates(stdout.head)
  }
}

/** The program, if there is one that nobody can have put there who may write below the roots. */
export function findRipgrep(roots: readonly Root[], path = process.env['PATH'] ?? ''): string | undefined {
  for (const folder of path.split(delimiter).filter((each) => isAbsolute(each))) {
    try {
      const program = realpathSync(join(folder, 'rg'))
      accessSync(program, constants.X_OK)
      if (placeOf(program, roots) === undefined && placeOf(folder, roots) === undefined) return program
    } catch {
      continue
    }
  }
  return undefined
}

function toCandidates(output: string): Candidates {
  const files = new Set<string>()
  const folders = new Set<string>()
  for (const line of output.split('\0')) {
    const path = line.startsWith('./') ? line.slice(2) : line
    if (path === '') continue
    files.add(path)
    for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) {
      const folder = path.slice(0, at)
      if (folders.has(folder)) break
      folders.add(folder)
    }
  }
  return {
    has: (names) => files.has(names.join('/')),
    mayLeadTo: (names) => {
      const path = names.join('/')
      return files.has(path) || folders.has(path)
    },
  }
}
