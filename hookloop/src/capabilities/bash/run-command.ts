import type { ToolRun } from '../../agent/tool.ts'
import { ENVIRONMENT_KEY } from '../../state/agent-state.ts'
import { getSessionVariables } from '../../system/processes/session-variables.ts'
import { minimalEnvironment } from '../../system/processes/minimal-environment.ts'
import { reapOrphans } from '../../system/processes/process-tree.ts'
import { runProcess } from '../../system/processes/run-process.ts'
import { gitEnvironment } from './repository.ts'
import { wrapCommand, type Sandbox } from './sandbox.ts'
import { capFor, showResult, type Shown } from './show-output.ts'
import { streamProgress } from './stream-progress.ts'

export type Shell = { readonly path: string; readonly isBash: boolean }

export type Surroundings = {
  readonly cwd: string
  readonly shell: Shell
  readonly env: Readonly<Record<string, string | undefined>>
  readonly sandbox: Sandbox
  readonly shown: Shown
}

/**
 * Runs a command in a shell of its own and gives what a model reads of it. What did not start, did not end in time or was
 * cancelled is thrown; a command that failed is a result like any other.
 */
export async function runCommand(
  { command, timeoutMs }: { readonly command: string; readonly timeoutMs: number },
  surroundings: Surroundings,
  { signal, progress, state }: Pick<ToolRun, 'signal' | 'progress' | 'state'>,
): Promise<string> {
  const { cwd, shell, env, sandbox, shown } = surroundings
  reapOnce()
  const given = getSessionVariables(state.metadata[ENVIRONMENT_KEY])
  const inside = sandbox.active ? await wrapCommand(command, { sandbox, cwd, signal }) : undefined
  const { onOutput, end } = streamProgress(progress)
  try {
    const result = await runProcess([...shellWords(shell), inside?.command ?? command], {
      cwd,
      env: minimalEnvironment({ ...given, ...gitEnvironment(command), ...env, ...inside?.env }, { cwd }),
      timeoutMs,
      signal,
      output: capFor(shown),
      onOutput,
    })
    end()
    if (result.ended === 'notStarted') throw new Error(`The command was not started. ${result.problem ?? ''}`.trim())
    const text = showResult(result, shown, { timeoutMs })
    if (result.ended !== 'exited') throw new Error(text)
    return text
  } finally {
    inside?.cleanUp()
  }
}

/** No start-up files: what a command does depends on the command. */
function shellWords({ path, isBash }: Shell): [string, ...string[]] {
  return isBash ? [path, '--noprofile', '--norc', '-c', '--'] : [path, '-c', '--']
}

let hasReaped = false

/** What a runtime that was killed has left behind is ended when the next one runs its first command. */
function reapOnce(): void {
  if (hasReaped) return
  hasReaped = true
  reapOrphans()
}
