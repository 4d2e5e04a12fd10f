import { metadataKeys, type ToolRun } from '../../plugin.ts'
import { getSessionVariables } from '../../system/processes/session-variables.ts'
import { minimalEnvironment } from '../../system/processes/minimal-environment.ts'
import { runProcess } from '../../system/processes/run-process.ts'
import { gitEnvironment } from './repository.ts'
import { wrapCommand, type Sandbox } from './sandbox.ts'
import { capFor, showResult, type OutputWindow } from './show-output.ts'
import { streamProgress } from './stream-progress.ts'

export type Shell = { readonly path: string; readonly isBash: boolean }

export type CommandContext = {
  readonly cwd: string
  readonly shell: Shell
  readonly env: Readonly<Record<string, string | undefined>>
  readonly sandbox: Sandbox
  readonly window: OutputWindow
}

/**
 * Runs a command in a new shell and returns the text for the model. Throws if the command did not start, timed out or was
 * cancelled. An exit code other than 0 is a normal result.
 */
export async function runCommand(
  { command, timeoutMs }: { readonly command: string; readonly timeoutMs: number },
  context: CommandContext,
  { signal, progress, state }: Pick<ToolRun, 'signal' | 'progress' | 'state'>,
): Promise<string> {
  const { cwd, shell, env, sandbox, window } = context
  const variables = getSessionVariables(state.metadata[metadataKeys.environment])
  const sandboxed = sandbox.active ? await wrapCommand(command, { sandbox, cwd, signal }) : undefined
  const { onOutput, end } = streamProgress(progress)
  try {
    const result = await runProcess([...shellWords(shell), sandboxed?.command ?? command], {
      cwd,
      env: minimalEnvironment({ ...variables, ...gitEnvironment(command), ...env, ...sandboxed?.env }, { cwd }),
      timeoutMs,
      signal,
      output: capFor(window),
      onOutput,
    })
    end()
    if (result.ended === 'notStarted') throw new Error(`The command was not started. ${result.problem ?? ''}`.trim())
    const text = showResult(result, window, { timeoutMs })
    if (result.ended !== 'exited') throw new Error(text)
    return text
  } finally {
    sandboxed?.cleanUp()
  }
}

/** Without start-up files. */
function shellWords({ path, isBash }: Shell): [string, ...string[]] {
  return isBash ? [path, '--noprofile', '--norc', '-c', '--'] : [path, '-c', '--']
}
