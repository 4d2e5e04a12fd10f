import type { AgentState, Message } from '../index.ts'
import { listApprovals, type StoredCall, type StoredRun } from '../sessions/index.ts'
import { replay } from '../sessions/replay/index.ts'
import { checkConversation, resultsIn } from './conversation.fixture.ts'
import { finalsIn } from './crashing-store.fixture.ts'
import { observedName } from './hooks.fixture.ts'
import { historyOf, openProcess, SESSION, storedRuns, type Life } from './drive.fixture.ts'
import { summaryOf, type Summary } from './summary.fixture.ts'
import { canonical, type Recorded, type World } from './world.fixture.ts'

// What must be true of a session, whatever became of the processes that worked on it.

/** Notes the calls that have begun when a process has died. Whatever happens next, they and their results must not be lost. */
export async function leftBehind(life: Life): Promise<void> {
  const { world } = life
  const runs = await storedRuns(life)
  const late = world.late.splice(0)
  const begun = runs.flatMap(({ calls }) => calls.flatMap((call) => (call.kind === 'tool' ? [nameOf(call)] : [])))
  for (const name of late)
    if (!begun.includes(name)) world.violate(`${name} is called after its process failed to store it`)
  for (const { id: run, calls } of runs)
    for (const each of calls) {
      const { kind, ended, call, step, path } = each
      if (kind !== 'tool' || call === undefined || isAttempt(each)) continue
      const status = ended === undefined ? undefined : statusOf(each)
      const by = path && { path: canonical(path) }
      world.recorded.push({ run, name: nameOf(each), call, step, ...by, status })
    }
}

/** An attempt is part of a call with hooks around it, which ends when they do. */
const isAttempt = ({ key }: StoredCall): boolean => / attempt /.test(key)
const nameOf = ({ input }: StoredCall): string => (input as { readonly name: string }).name
const statusOf = ({ output, error }: StoredCall): string =>
  error === undefined ? ((output as { readonly status?: string } | undefined)?.status ?? 'ok') : 'failed'

/** What is not known of a session that was rewound or forked. */
type Known = { readonly runs?: boolean; readonly costs?: boolean }

/** The session when its last run has ended. */
export async function checkEnded(life: Life, known: Known = {}): Promise<void> {
  const { world, store, session = SESSION } = life
  const runs = await storedRuns(life)
  if (known.runs !== false && runs.length !== world.inputs)
    world.violate(`${runs.length} runs of ${world.inputs} messages`)
  for (const { status, final, pending } of runs) {
    if (final === undefined || status !== final.status)
      world.violate(`a run is ${status} and has ended as ${final?.status}`)
    if (pending.length > 0) world.violate('a run that has ended waits for an answer')
  }
  const finals = await finalsIn(store, session)
  if (known.runs !== false && finals.some((each) => each !== 1))
    world.violate(`runs have ${finals.join(', ')} final records`)
  const open = (await listApprovals(store)).filter((each) => each.session === session)
  if (open.length > 0) world.violate('a session whose run has ended has open questions')
  const state = await stateOf(life)
  const messages = [...(state?.messages ?? [])]
  checkConversation(world, messages)
  checkResults(life, { runs, messages })
  if (known.costs !== false) checkCosts(world, { runs, billed: state?.usage.costUsd ?? 0 })
  checkLimits(life, runs)
}

function checkCosts(world: World, { runs, billed }: { runs: readonly StoredRun[]; billed: number }): void {
  const spent = runs.reduce((sum, { models }) => sum + models.reduce((each, { costUsd }) => each + costUsd, 0), 0)
  world.tell(() => `  recorded costs are ${spent}, and ${billed} is billed`)
  if (billed < spent) world.violate('a recorded cost is not billed')
  if (billed > spent) world.violate('a cost is billed that is not recorded')
}

export async function stateOf(life: Life): Promise<AgentState | undefined> {
  return (await historyOf(life)).state
}

type Ended = { readonly runs: readonly StoredRun[]; readonly messages: readonly Message[] }

/** A result that was recorded is in the conversation, unless a summary has replaced it, with the same status. */
function checkResults({ world, change }: Life, { runs, messages }: Ended): void {
  const text = JSON.stringify(messages)
  if (text.includes('There were ')) return
  const inMessages = new Set(resultsIn(messages))
  for (const each of world.recorded) {
    const { run, name, call, path, status } = each
    if (path !== undefined) {
      const listed = change === 'sub-removed' ? `- ${name} ` : name
      if (!isTold(each, runs) && !text.includes(listed)) world.violate(`the result of ${name} in a subagent is lost`)
      continue
    }
    if (!inMessages.has(call)) {
      world.violate(`the result of ${name} is lost`)
      continue
    }
    const steps = runs.find(({ id }) => id === run)?.steps ?? []
    const found = steps.flatMap(({ toolCalls }) => toolCalls).find(({ id }) => id === call)
    const isRepeated = world.answers.some(
      ({ question }) => question.toolCall.id === call && question.interruptions !== undefined,
    )
    if (status !== undefined && found?.result?.status !== status && !isRepeated)
      world.violate(`the result of ${name} was ${status} and is ${found?.result?.status}`)
  }
}

/** Whether the model of a subagent has answered to the result of a call. */
function isTold({ run, step, path }: Recorded, runs: readonly StoredRun[]): boolean {
  const calls = runs.find(({ id }) => id === run)?.calls ?? []
  const answers = calls.filter(
    ({ kind, hook, ended }) => kind === 'inference' && hook === undefined && ended !== undefined,
  )
  return answers.some((each) => each.step > step && canonical(each.path ?? '') === path)
}

function checkLimits({ world, spec: { limits = {} } }: Life, runs: readonly StoredRun[]): void {
  const { maxSteps = 8, maxToolCalls = Infinity, maxCost = Infinity } = limits
  for (const { steps, usage, calls } of runs) {
    if (steps.length > maxSteps) world.violate(`${steps.length} steps of ${maxSteps}`)
    const executed = new Set(calls.flatMap((each) => (each.kind === 'tool' ? [each.call] : [])))
    if (executed.size > maxToolCalls) world.violate(`${executed.size} tool calls of ${maxToolCalls}`)
    if (usage.costUsd > maxCost + 1) world.violate(`a cost of ${usage.costUsd} of ${maxCost}`) // a call may exceed it once
  }
}

/** What is true of a run whose agent has not changed, and that no user has ended. */
export async function checkSame(life: Life): Promise<void> {
  const { world, spec, answers, answered = 'all' } = life
  const runs = await storedRuns(life)
  const state = await stateOf(life)
  // A call that runs while an earlier one waits does not know of it.
  const isTogether = answered !== 'all' || JSON.stringify(spec).includes('"concurrent":true')
  if (spec.hooks.includes('budget') && !isTogether && ((state?.metadata['used'] as number | undefined) ?? 0) > 1)
    world.violate('more calls ended than the budget allows')
  if (answers !== 'block' && !spec.hooks.some((name) => blocking.has(name))) checkLost(life, runs)
  if (
    spec.hooks.includes('pause-trace') &&
    !world.isDisturbed &&
    world.pauses.size > 0 &&
    state?.metadata['paused'] !== 1
  )
    world.violate('what onPause has changed is lost')
  const { startedAt = 0, waitedMs = 0 } = state?.execution ?? {}
  if (waitedMs > world.clock.now() - startedAt) world.violate('a run has waited longer than it took')
  for (const { final, calls } of runs)
    if (final?.status === 'completed' && calls.some(isDenied)) world.violate('a run is completed that was blocked')
  await checkSeen(life)
}

/** Observers of this agent see what has happened, also if the tools have changed since. */
export async function checkSeen(life: Life): Promise<void> {
  if (!life.spec.hooks.includes('observe')) return
  checkObserved(life.world, await storedRuns(life), (await stateOf(life))?.agentId ?? '')
}

/** Whether an approver has said that the run must not go on. */
function isDenied({ kind, input, output }: StoredCall): boolean {
  if (kind !== 'approval' || typeof output !== 'object' || output === null || !('block' in output)) return false
  const { trigger } = input as { readonly trigger?: string }
  return trigger !== undefined && trigger !== 'onStop'
}

const blocking: ReadonlySet<string> = new Set([
  'block-A',
  'throw-A',
  'budget',
  'slow-guard',
  'slow-step',
  'slow-effect',
])

/** A call that was lost runs again if it is idempotent. Of others, someone is asked whether they run again. */
function checkLost({ world, spec }: Life, runs: readonly StoredRun[]): void {
  const calls = runs.flatMap(({ steps }) => steps.flatMap(({ toolCalls }) => toolCalls))
  for (const { id, name, result } of calls) {
    if (result?.status !== 'outcomeUnknown') continue
    const isAsked = world.answers.some(
      ({ question }) => question.toolCall.id === id && question.interruptions !== undefined,
    )
    if (isAsked && spec.hooks.includes('ask-second')) continue // it asks when others have ended, and about nothing that has begun
    const { idempotent, again } = spec.tools.find((tool) => tool.name === name) ?? {}
    if (again === true || spec.approval === 'again')
      world.violate(`${name} was lost, and no approver was asked about it`)
    else if (idempotent === true) world.violate(`${name} was lost, and has not run again`)
  }
}

/** Observers see what has happened, and only once if no process has died. */
function checkObserved(world: World, runs: readonly StoredRun[], agent: string): void {
  for (const [index, { steps, final }] of runs.entries()) {
    if (final?.reason === 'inputBlocked' || (final?.status === 'failed' && steps.length === 0)) continue
    const see = (what: Omit<Parameters<typeof observedName>[1], 'agent'>): void => {
      const name = observedName(index + 1, { ...what, agent })
      if (!world.observed.has(name)) world.violate(`no observer has seen ${what.trigger}`)
    }
    for (const { index: step, toolCalls } of steps) {
      see({ trigger: 'afterStep', step })
      for (const { id: call } of toolCalls) see({ trigger: 'afterToolUse', step, call })
    }
    see({ trigger: 'afterExecution', step: steps.length })
  }
  if (world.isDisturbed) return
  for (const [what, times] of world.observed)
    if (times > 1) world.violate(`${what.split(' ')[2]} is observed ${times} times`)
}

/** What all histories of the same agent have in common. Undefined if a call was lost or repeated, which the state shows. */
export async function endOf(life: Life): Promise<Summary | undefined> {
  const { world } = life
  const runs = await storedRuns(life)
  const calls = runs.flatMap((run) => run.calls.filter(({ kind }) => kind === 'tool'))
  const isUnknown = calls.some((call) => call.ended === undefined || statusOf(call) === 'outcomeUnknown')
  if (isUnknown || world.answers.some(({ question }) => question.interruptions !== undefined)) return undefined
  return summaryOf(await stateOf(life))
}

/** The log of an agent that has not changed is replayed without a difference. */
export async function checkReplay(life: Life): Promise<void> {
  const { world, store, session = SESSION } = life
  const stored = await store.read(session)
  if (stored === undefined) return
  const { agent } = await openProcess({ ...life, store })
  const { differences, divergesAt, record } = await replay(stored, { agent })
  if (differences.length > 0 || divergesAt !== undefined) {
    world.tell(() => JSON.stringify(differences))
    world.violate(`the replay has ${differences.length} differences`)
  }
  if (record.status !== 'complete') world.violate(`the replay is ${record.status}: ${record.message}`)
}
