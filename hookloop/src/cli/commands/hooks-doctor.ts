import { resolve } from 'node:path'
import type { Capability } from '../../agent/capability.ts'
import { partsOf } from '../../agent/agent-parts.ts'
import { createAgent } from '../../create-agent.ts'
import { eventSpec, isClaudeEvent } from '../../hook-files/claude/events/claude-events.ts'
import { untrustedFiles, listHooks, problemsOf, type CommandProblem } from '../../hook-files/list-hooks.ts'
import { TrustStore } from '../../hook-files/trust/trust-store.ts'
import { messageOf } from '../../errors.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { loadAgent } from '../agents/load-agent.ts'
import { exitCodeOfInterruption, exitCodes, type ExitCode } from '../exit-codes.ts'
import type { Place } from '../cli-context.ts'
import { interruptible } from '../terminal/interruption.ts'
import { jsonText } from '../terminal/json-lines.ts'
import { oneLine } from '../terminal/printable.ts'
import { canaryPaths, changedArguments, flyCanary, type CanaryPath } from '../doctor/probe-runs.ts'
import { findingOf, findingOfFailure, type Finding } from '../doctor/findings.ts'
import { doctorProgress } from '../doctor/progress.ts'
import { toldReport, type Examined, type Report } from '../doctor/report.ts'
import { PATIENCE } from '../doctor/watched-hook.ts'
import { patientsOf, type Patient, type Patients } from '../doctor/checked-hooks.ts'

export type DoctorFlags = {
  readonly agent?: string
  readonly dir?: string
  readonly user: boolean
  readonly json?: boolean
}

/**
 * `hookloop hooks doctor`: lets every hook watch over canaries on every path, and says where it fires, where it does not and
 * why, and what is wrong. The hooks are really run; tools and models are not.
 */
export async function hooksDoctor(flags: DoctorFlags, place: Place): Promise<ExitCode> {
  const dir = resolve(flags.dir ?? '.')
  const own = await ownCapabilities(flags.agent)
  const interruption = interruptible(place.out, () => undefined)
  try {
    const report = await examineAll(own, { dir, flags, place, signal: interruption.signal })
    place.out.write(flags.json === true ? `${jsonText(report)}\n` : toldReport(report, place, dir))
    return report.problems.length > 0 ? exitCodes.failed : exitCodes.completed
  } catch (thrown) {
    if (interruption.by() === undefined) throw thrown
    if (flags.json !== true) place.err.write('Cancelled. Nothing of it runs any more.\n')
    return exitCodeOfInterruption(interruption.by())
  } finally {
    interruption.dispose()
  }
}

type Examining = {
  readonly dir: string
  readonly flags: DoctorFlags
  readonly place: Place
  readonly signal: AbortSignal
}

async function examineAll(own: readonly Capability[], { dir, flags, place, signal }: Examining): Promise<Report> {
  const { user, agent } = flags
  const commands = problemsOf({ dir, ...(!user && { home: false, claudeHome: false }) })
  const found = patientsOf(own, { dir, user })
  const listed = listHooks({ dir, trust: new TrustStore(), ...(!user && { home: false, claudeHome: false }) })
  const { patients } = found
  if (flags.json !== true && patients.length > 0) {
    place.err.write(`The hooks are really run, many times; tools and models are not.\n`)
  }
  const progress = doctorProgress(place, patients.length * canaryPaths.length)
  let findings: readonly (readonly (readonly [CanaryPath, Finding])[])[]
  try {
    findings = await flyAll(patients, { signal, onLanded: progress.step })
  } finally {
    progress.stop()
  }
  const hooks = patients.map(({ name, mode, on, source }, i): Examined => {
    return { name, mode, on, source, paths: Object.fromEntries(findings[i]!) }
  })
  const problems = [
    ...problemsOfFiles(listed, dir, place.command),
    ...found.problems,
    ...commands.map(({ message }) => message),
    ...(agent === undefined ? [] : unmatched(found)),
    ...hooks.flatMap((each, i) => problemsOfHook(each, { patient: patients[i]!, commands })),
    ...twice(listed.hooks),
    ...(await conflicts(found, signal)),
  ]
  return { hooks, problems: [...new Set(problems)], notes: [...notesOn(hooks, patients), ...onDemand(listed.hooks)] }
}

async function ownCapabilities(file: string | undefined): Promise<readonly Capability[]> {
  if (file === undefined) return []
  const loaded = await loadAgent(file)
  const agent = 'agent' in loaded ? loaded.agent : createAgent({ ...loaded.options, model: scriptedModel([]) })
  const usual = partsOf(createAgent({ model: scriptedModel([]) })).capabilities.map(({ name }) => name)
  return partsOf(agent).capabilities.filter(({ name }) => !usual.includes(name)) // limits are in force while canaries fly
}

/** Flights under way at once. Each waits for processes most of the time. */
const AT_ONCE = 6

async function flyAll(
  patients: readonly Patient[],
  { signal, onLanded }: { readonly signal: AbortSignal; readonly onLanded: (patient: Patient) => void },
): Promise<readonly (readonly (readonly [CanaryPath, Finding])[])[]> {
  const findings = patients.map((): (readonly [CanaryPath, Finding])[] => [])
  const flights = patients.flatMap((patient, row) => {
    const waiting = { late: 0 }
    return canaryPaths.map((path, column) => async (): Promise<void> => {
      findings[row]![column] = [path, await found(patient, path, { signal, waiting })]
      onLanded(patient)
    })
  })
  const cut = Promise.withResolvers<never>()
  const onAbort = (): void => cut.reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  const next = flights.values()
  const worker = async (): Promise<void> => {
    for (const fly of next) await fly()
  }
  try {
    await Promise.race([Promise.all(Array.from({ length: AT_ONCE }, worker)), cut.promise])
    return findings
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

async function found(patient: Patient, path: CanaryPath, how: Parameters<typeof flyCanary>[2]): Promise<Finding> {
  if (patient.untried !== undefined) return { status: '–', fired: 0, expected: 0, why: patient.untried }
  try {
    return findingOf(patient, path, await flyCanary(patient, path, how))
  } catch (thrown) {
    how.signal.throwIfAborted()
    return findingOfFailure(thrown)
  }
}

type Listed = ReturnType<typeof listHooks>

/** What is wrong with the files themselves. */
function problemsOfFiles({ hooks, problems }: Listed, dir: string, command: string): readonly string[] {
  return [
    ...problems,
    ...doubtsOf(dir).map(({ path, status }) => {
      const how = status === 'changed' ? 'changed after it was trusted' : 'is not trusted'
      return `${path} ${how}: its hooks do not run. Look at them with: ${command} trust`
    }),
    ...hooks.flatMap(({ trigger, event, source, runs }) =>
      trigger === undefined ? [`${event ?? ''} of ${source} never fires here: ${oneLine(runs, 60)}`] : [],
    ),
  ]
}

/** Handlers that fire only when somebody asks for it, which no canary does. */
function onDemand(hooks: Listed['hooks']): readonly string[] {
  return hooks.flatMap(({ event = '', runs }) =>
    isClaudeEvent(event) && eventSpec(event).isOnDemand === true
      ? [`${event} ${oneLine(runs, 60)} is not tried: it fires only when somebody asks for it`]
      : [],
  )
}

/** A file that cannot be used is among the problems already. */
function doubtsOf(dir: string): ReturnType<typeof untrustedFiles> {
  try {
    return untrustedFiles(dir, new TrustStore())
  } catch {
    return []
  }
}

/** Handlers that were taken over into our own file, and still stand where they were. */
function twice(hooks: Listed['hooks']): readonly string[] {
  return hooks.flatMap(({ event, runs, source }) => {
    const other = event === undefined ? undefined : hooks.find((each) => each.runs === `${event}: ${runs}`)
    return other === undefined
      ? []
      : [`${event} ${oneLine(runs, 60)} runs twice: for ${source} and for ${other.source}`]
  })
}

/** Hooks for tools that the agent does not have. */
function unmatched({ patients, tools }: Patients): readonly string[] {
  return patients.flatMap(({ name, tool, mode }) => {
    if (tool === undefined || tools.some((each) => tool.fits(each.name))) return []
    const near = tools.find((each) => each.name.toLowerCase() === tool.words.toLowerCase())
    const hint = near === undefined ? '' : `; did you mean "${near.name}"?`
    return [`the ${mode === 'claude' ? 'hook' : mode} "${name}" is for ${tool.words}, and no tool is called so${hint}`]
  })
}

const words = {
  never: 'never fires',
  missed: 'misses events',
  twice: 'fires more than once for an event',
  untried: 'could not be tried',
}

type Looking = { readonly patient: Patient; readonly commands: readonly CommandProblem[] }

function problemsOfHook({ name, paths }: Examined, { patient, commands }: Looking): readonly string[] {
  const all = Object.entries(paths)
  const wrong = all.flatMap(([path, { status, why = '' }]) =>
    Object.hasOwn(words, status) ? [`"${name}" ${words[status as 'never']} on the path "${path}": ${why}`] : [],
  )
  const failing = all.find(([, { status }]) => status === 'fails')
  const isNamed = commands.some(({ hook }) => hook === name)
  if (failing === undefined || isNamed || !isElsewhere(patient)) return wrong
  const meaning = patient.mode === 'guard' ? ', and a guard that fails says no' : ''
  return [...wrong, `"${name}" fails when it is run${meaning}: ${oneLine(failing[1].why ?? '', 300)}`]
}

/** A command or an address that fails with a canary fails with anything. A function may need more than a canary has. */
function isElsewhere({ isOfFile, hook }: Patient): boolean {
  return isOfFile || hook.action !== undefined
}

/** What is no mistake, and worth knowing. */
function notesOn(hooks: readonly Examined[], patients: readonly Patient[]): readonly string[] {
  const idle = hooks.flatMap(({ name, paths }) => {
    const none = Object.entries(paths).filter(([, { status }]) => status === '–')
    const byWhy = Map.groupBy(none, ([, { why = '' }]) => why)
    return [...byWhy].map(([why, these]) => ({ name, words: `on ${these.map(([path]) => path).join(', ')}: ${why}` }))
  })
  const together = [...Map.groupBy(idle, ({ words }) => words)].map(([said, these]) => {
    const names = these.map(({ name }) => oneLine(name, 60))
    return `${names.join(', ')} ${names.length === 1 ? 'has' : 'have'} nothing to do ${said}`
  })
  const conditional = hooks
    .filter(({ paths }) => Object.values(paths).some(({ isConditional }) => isConditional === true))
    .map(({ name }) => `the "when" of ${name} holds for no canary; it was fired all the same`)
  const failing = hooks.flatMap(({ name, paths }, i) => {
    const { why } = Object.values(paths).find(({ status }) => status === 'fails') ?? {}
    return why === undefined || isElsewhere(patients[i]!) ? [] : [`"${name}" fails with a canary: ${oneLine(why, 300)}`]
  })
  const slow = hooks
    .filter(({ paths }) => Object.values(paths).some(({ status }) => status === 'slow'))
    .map(({ name }) => `${name} takes more than ${PATIENCE.ms / 1000} seconds, and was not waited for`)
  return [...together, ...conditional, ...slow, ...failing]
}

/** Two hooks that change the same argument: which of them wins is a matter of their order. */
async function conflicts({ rewriters, tools }: Patients, signal: AbortSignal): Promise<readonly string[]> {
  if (rewriters.length < 2) return []
  try {
    const changes = await changedArguments(rewriters, { tools, signal })
    const byPlace = Map.groupBy(changes, ({ call, path }) => `${call} ${path}`)
    const both = [...byPlace.values()].flatMap((these) => {
      const by = [...new Set(these.map(({ hook }) => hook))]
      return by.length < 2
        ? []
        : [`${by.map((name) => `"${name}"`).join(' and ')} both change ${these[0]!.path}; the last one wins`]
    })
    return [...new Set(both)]
  } catch (error) {
    signal.throwIfAborted()
    return [`the hooks that change arguments could not be tried together: ${messageOf(error)}`]
  }
}
