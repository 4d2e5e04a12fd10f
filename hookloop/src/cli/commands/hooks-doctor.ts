import { resolve } from 'node:path'
import type { Capability } from '../../agent/capability.ts'
import { partsOf } from '../../agent/agent-parts.ts'
import { createAgent } from '../../create-agent.ts'
import { listHooks, problemsOf } from '../../hook-files/list-hooks.ts'
import { TrustStore } from '../../hook-files/trust/trust-store.ts'
import { abortable } from '../../system/timeout.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { loadAgent } from '../agents/load-agent.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { findCheckedHooks, type CheckedHook } from '../doctor/checked-hooks.ts'
import { findingOf, findingOfFailure, type Finding } from '../doctor/findings.ts'
import { probePaths, runProbe, type ProbePath } from '../doctor/probe-runs.ts'
import { conflicts, duplicates, fileProblems, hookProblems, notesOn, onDemand, unmatched } from '../doctor/problems.ts'
import { doctorReportText, type HookReport, type Report } from '../doctor/report.ts'
import { exitCodes, interruptionExitCode, type ExitCode } from '../exit-codes.ts'
import { jsonOption } from '../options.ts'
import { colorsFor } from '../terminal/colors.ts'
import { interruptible } from '../terminal/interruption.ts'
import { jsonText } from '../terminal/json.ts'
import { oneLine } from '../terminal/printable.ts'
import { Spinner } from '../terminal/spinner.ts'

type DoctorFlags = {
  readonly agent?: string
  readonly dir?: string
  readonly user: boolean
  readonly json?: boolean
}

export const command: CommandDefinition = {
  description:
    'Run every hook in probe runs, and report where it fires, where it does not and why, and what is wrong. ' +
    'The hooks are really run, many times; tools and models are not. Exits with 1 if there are problems.',
  examples: ['hookloop hooks doctor', 'hookloop hooks doctor --agent agent.ts --json'],
  configure: (command) =>
    jsonOption(command)
      .option('-a, --agent <file>', 'agent module whose hooks and tools to include')
      .option('--dir <folder>', 'project (default: the current folder)')
      .option('--no-user', 'leave out your own hooks'),
  run: hooksDoctor,
}

async function hooksDoctor(flags: DoctorFlags, cli: CliContext): Promise<ExitCode> {
  const interruption = interruptible(cli.out, () => undefined)
  try {
    const report = await checkHooks(flags, cli, interruption.signal)
    cli.out.write(flags.json === true ? `${jsonText(report)}\n` : doctorReportText(report, cli, dirOf(flags)))
    return report.problems.length > 0 ? exitCodes.failed : exitCodes.completed
  } catch (thrown) {
    if (interruption.by() === undefined) throw thrown
    if (flags.json !== true) cli.err.write('Cancelled.\n')
    return interruptionExitCode(interruption.by())
  } finally {
    interruption.dispose()
  }
}

function dirOf({ dir }: DoctorFlags): string {
  return resolve(dir ?? '.')
}

/** Runs the hooks that apply, and reports what is wrong with them. */
export async function checkHooks(flags: DoctorFlags, cli: CliContext, signal: AbortSignal): Promise<Report> {
  const { user, agent } = flags
  const dir = dirOf(flags)
  const own = await capabilitiesOf(agent)
  const home = user ? {} : { home: false as const, claudeHome: false as const }
  const commands = problemsOf({ dir, ...home })
  const found = findCheckedHooks(own, { dir, user })
  const listed = listHooks({ dir, trust: new TrustStore(), ...home })
  const checked = found.hooks
  if (flags.json !== true && checked.length > 0) {
    cli.err.write('The hooks are really run, many times; tools and models are not.\n')
  }
  const hooks = await probeAll(checked, cli, signal)
  const problems = [
    ...fileProblems(listed, dir, cli.command),
    ...found.problems,
    ...commands.map(({ message }) => message),
    ...(agent === undefined ? [] : unmatched(found)),
    ...hooks.flatMap((each, i) => hookProblems(each, checked[i]!, commands)),
    ...duplicates(listed),
    ...(await conflicts(found, signal)),
  ]
  return {
    hooks,
    problems: [...new Set(problems)],
    notes: [...notesOn(hooks, checked), ...onDemand(listed), ...listed.notes],
  }
}

/** The capabilities of the agent, without those that every agent has: probe runs have their own limits. */
async function capabilitiesOf(file: string | undefined): Promise<readonly Capability[]> {
  if (file === undefined) return []
  const loaded = await loadAgent(file)
  const agent = 'agent' in loaded ? loaded.agent : createAgent({ ...loaded.options, model: scriptedModel([]) })
  const usual = partsOf(createAgent({ model: scriptedModel([]) })).capabilities.map(({ name }) => name)
  return partsOf(agent).capabilities.filter(({ name }) => !usual.includes(name))
}

/** Probe runs at the same time. Each waits for processes most of the time. */
const CONCURRENCY = 6

/** Runs all probes, and shows on a terminal how many have ended. */
async function probeAll(
  checked: readonly CheckedHook[],
  { err, env }: CliContext,
  signal: AbortSignal,
): Promise<readonly HookReport[]> {
  const unprobed = Object.fromEntries(probePaths.map((path) => [path, findingOfFailure('')])) as HookReport['paths']
  const reports = checked.map(({ name, mode, on, source }): HookReport => {
    return { name, mode, on, source, paths: { ...unprobed } }
  })
  let [done, last] = [0, '']
  const probes = checked.flatMap((hook, i) => {
    const timeouts = { count: 0 }
    return probePaths.map((path) => async (): Promise<void> => {
      reports[i]!.paths[path] = await probe(hook, path, { signal, timeouts })
      done++
      last = ` · ${oneLine(hook.name, 40)}`
    })
  })
  const spinner = new Spinner(err, {
    line: () => `${done} of ${probes.length} probe runs${last}`,
    paint: colorsFor(err, env).dim,
    mayDraw: () => true,
  })
  const next = probes.values()
  const worker = async (): Promise<void> => {
    for (const run of next) await run()
  }
  if (err.isTTY === true && probes.length > 0) spinner.start()
  try {
    await abortable(Promise.all(Array.from({ length: CONCURRENCY }, worker)), signal)
    return reports
  } finally {
    spinner.stop()
  }
}

async function probe(hook: CheckedHook, path: ProbePath, how: Parameters<typeof runProbe>[2]): Promise<Finding> {
  if (hook.unchecked !== undefined) return { status: '–', fired: 0, expected: 0, why: hook.unchecked }
  try {
    return findingOf(hook, path, await runProbe(hook, path, how))
  } catch (thrown) {
    how.signal.throwIfAborted()
    return findingOfFailure(thrown)
  }
}
