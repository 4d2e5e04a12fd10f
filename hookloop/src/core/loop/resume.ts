import type { HookRecord } from '../state/execution.ts'
import type { Answer, Answers, Approval } from '../state/tool-call.ts'
import { answerProblem, askedHash } from '../state/tool-call.ts'
import type { Entry, RunLog } from '../effects/log.ts'
import { inCode } from '../../values/text.ts'
import { AgentError } from '../../errors.ts'
import { toNameTest } from '../hooks/patterns.ts'
import type { AgentParts } from '../agent/agent-parts.ts'
import { checkStartedChildren, partsAt } from '../subagents/delegated-call.ts'
import { checkedAnswer, fingerprintOf } from '../context/ask.ts'

/** Options of `agent.resume`. */
export type ResumeOptions = {
  /** Answers to pending approvals by their id. Unanswered ones stay pending. Default none. */
  readonly answers?: Answers
  /** Guards that the run started with and that may be missing now: their names, or `true` for any. Default none. */
  readonly acceptMissing?: true | readonly string[]
}

/** Checks the guards and the answers before anything runs. Throws an AgentError and changes nothing. */
export async function checkResume(
  parts: AgentParts,
  log: RunLog,
  { answers = {}, acceptMissing = [], now }: ResumeOptions & { readonly now: number },
): Promise<Answers> {
  checkGuards(parts, log.hooks, acceptMissing)
  await checkStartedChildren(parts, log, (child, hooks) => checkGuards(child, hooks, acceptMissing))
  const checked: { [id: string]: Answer } = {}
  for (const [id, given] of Object.entries(answers)) checked[id] = await checkAnswer(parts, log, { id, given, now })
  return Object.freeze(checked)
}

/** The hooks of this agent and those before: none of their guards may be missing when another process continues the run. */
export function withHooks({ plans }: AgentParts, before: readonly HookRecord[]): readonly HookRecord[] {
  const known = new Set(before.map(({ name }) => name))
  const present = plans.records
  const kept = before.flatMap(({ name }) => present.find((each) => each.name === name) ?? [])
  return Object.freeze([...kept, ...present.filter(({ name }) => !known.has(name))])
}

function checkGuards(parts: AgentParts, hooks: readonly HookRecord[], accepted: true | readonly string[]): void {
  if (accepted === true) return
  const missing = hooks.flatMap((hook) => {
    if (hook.mode !== 'guard' || accepted.includes(hook.name)) return []
    const left = unprotected(parts, hook)
    return left === undefined ? [] : [{ name: hook.name, shown: `"${hook.name}"${left}` }]
  })
  if (missing.length === 0) return
  const names = [...new Set(missing.map(({ name }) => name))]
  const [guardsText, them] = names.length === 1 ? ['guard', 'it'] : ['guards', 'them']
  const accept = [...accepted, ...names].map(inCode).join(', ')
  throw new AgentError(
    'RESUME_GUARD_MISSING',
    `The run started with the ${guardsText} ${[...new Set(missing.map(({ shown }) => shown))].join(', ')}, which this agent does not have. Add ${them}, or accept that: resume(…, { acceptMissing: [${accept}] }).`,
    { value: names[0] },
  )
}

/** Where a guard does not protect a run any more, as text after its name. Undefined if it does everywhere. */
function unprotected({ plans, toolNames }: AgentParts, { name, code, on = [], tools }: HookRecord): string | undefined {
  const guards = plans.hooks.filter((each) => each.mode === 'guard' && !each.shadow)
  const same = guards.find((each) => (code === undefined ? each.name === name : each.code === code))
  if (same === undefined) return ''
  const triggers = on.filter((trigger) => !same.triggers.some((each) => each === trigger))
  if (triggers.length > 0) return ` at ${triggers.join(', ')}`
  const wasSelected = tools?.map(toNameTest)
  const left = toolNames.filter((each) => !same.selects(each) && wasSelected?.some((test) => test(each)) !== false)
  return left.length === 0 ? undefined : ` for ${left.map((each) => `"${each}"`).join(', ')}`
}

/** Checks an answer to a question of a run. */
async function checkAnswer(
  parts: AgentParts,
  log: RunLog,
  { id, given, now }: { readonly id: string; readonly given: unknown; readonly now: number },
): Promise<Answer> {
  const asked = askedIn(log, id)
  const answer = checkAnswerTo(asked, given, now)
  if (answer === 'allow' || 'block' in answer || asked.trigger !== undefined) return answer
  const own = await partsAt(parts, log, questionIn(log, id)!.scope.path)
  const { name } = asked.toolCall
  const tool = own?.tools.get(name)
  if (own === undefined || tool === undefined || asked.tool !== fingerprintOf(own, name)) return answer
  const parsed = await tool.parse(answer.allow)
  if ('value' in parsed) return answer
  throw new AgentError('ANSWER_INVALID', `The edited arguments do not fit the tool "${name}": ${parsed.problem}`, {
    value: answer.allow,
  })
}

/** The open question with this id. */
export function askedIn(log: RunLog, id: string): Approval {
  const entry = questionIn(log, id)
  if (entry === undefined) throw new AgentError('ANSWER_UNKNOWN', `The run is not waiting for "${id}".`, { value: id })
  if (entry.end !== undefined) throw new AgentError('ANSWER_USED', `"${id}" was already answered.`, { value: id })
  if (!log.questions().some((each) => each.id === id))
    throw new AgentError('ANSWER_UNKNOWN', `The run does not wait for "${id}" any more.`, { value: id })
  // It is recorded under the hash of what was asked. One that now shows something else was changed in the store.
  const asked = approvalOf(entry)!
  const { hash, toolCall } = asked
  if (hash === entry.key.n && hash === askedHash(toolCall, asked)) return asked
  const message = `The arguments of "${id}" (${toolCall.name}) differ from the ones that were shown to the approver.`
  throw new AgentError('APPROVAL_MISMATCH', message, { value: id })
}

function questionIn({ scopes }: RunLog, id: string): Entry | undefined {
  return [...scopes.values()]
    .flatMap(({ entries }) => [...entries.values()])
    .find((each) => approvalOf(each)?.id === id)
}

function approvalOf({ key, begin }: Entry): Approval | undefined {
  return key.kind === 'ask' ? (begin?.input as unknown as Approval | undefined) : undefined
}

/** Checks the form of an answer, and whether it comes in time. */
export function checkAnswerTo(asked: Approval, given: unknown, now: number): Answer {
  const { id } = asked
  const answer = checkedAnswer(given)
  if (answer === 'suspend') {
    throw new AgentError('ANSWER_INVALID', `To leave "${id}" open, omit it from the answers.`, { value: given })
  }
  if (typeof answer === 'object' && 'block' in answer) return answer
  const problem = answerProblem(asked, answer)
  if (problem !== undefined) throw new AgentError('ANSWER_INVALID', problem, { value: given })
  if (asked.expiresAt !== undefined && now >= asked.expiresAt) {
    const message = `"${id}" has expired; it can only be blocked now, with { block: 'reason' }.`
    throw new AgentError('ANSWER_EXPIRED', message, { value: id })
  }
  return answer
}
