import type { Answers, Approval, JsonObject } from '../index.ts'
import { fakeClock, type FakeClock } from '../testing/index.ts'
import type { ToolKind } from './specs.fixture.ts'

// What happens outside of the agents: what tools did, what guards and approvers decided. It outlives every process, and
// checks each execution of a tool when it happens.

export type Answer = Answers[string]

/** How often a call may be executed: once, again after a crash, or again if someone agreed. */
type Mode = 'once' | 'idempotent' | 'again'

export type Execution = {
  readonly tool: string
  readonly key: string
  readonly args: string
  readonly mode: Mode
  readonly process: number
  readonly isTogether: boolean
}

/** An answer that an approver gave, and the call that it was used for, by its idempotency key. */
type Given = { readonly question: Approval; readonly answer: Answer; usedBy: string | undefined; isLater?: true }

/** One process: what it does after its death has no effect. */
export type Process = { readonly world: World; readonly number: number; readonly isDead: () => boolean }

/** What is in force where a tool is executed. */
export type InForce = {
  readonly guards: readonly string[]
  /** How the tools are described. */
  readonly description: string
  /** Whether the run must have stopped before a call, by its key. */
  readonly isStopping: (key: string) => boolean
  /** Whether someone is asked about every call that was lost. */
  readonly asksAgain: boolean
  /** How often a process may execute a call. */
  readonly attempts: number
}

/** A tool call, as it was recorded when a process died. Without a status, it had not ended. */
export type Recorded = {
  readonly run: string
  readonly name: string
  readonly call: string
  readonly step: number
  /** The subagent that made it. */
  readonly path?: string
  readonly status: string | undefined
}

export type Verdict = 'pass' | 'block' | 'ask'
export type Judged = { readonly name: string; readonly args: unknown }

/** The plain data of a world. */
export type Facts = { readonly now: number }

export class World {
  readonly clock = worldClock()
  /** How long no process works before the next one. No limit counts that time. */
  pauseMs = 10_000
  readonly executions: Execution[] = []
  readonly answers: Given[] = []
  readonly violations: string[] = []
  /** The messages that were sent to the session. */
  inputs = 0
  /** Tools that a dead process still called: nothing comes of it. */
  readonly late: string[] = []
  /** The calls that had ended when a process died. */
  readonly recorded: Recorded[] = []
  /** The last verdict of each guard, by process, guard, tool and arguments. */
  readonly verdicts = new Map<string, Verdict>()
  /** How often observers have seen something. */
  readonly observed = new Map<string, number>()
  /** How the tools were described when a question was asked, by its id. */
  readonly described = new Map<string, string>()
  /** The processes whose agent asks other questions than the one before. */
  readonly otherQuestions = new Set<number>()
  /** Whether the rest of the scenario is that of another one. */
  isKnown = false
  /** Whether a process has died or was overtaken. */
  isDisturbed = false
  /** The last call that has ended, by process and step. */
  readonly concluded = new Map<string, number>()
  readonly pauses = new Map<string, string>()
  /** The process in which a hook has failed. */
  failed = -1
  readonly #tell: ((what: string) => void) | undefined
  processes = 0

  constructor(tell?: (what: string) => void) {
    this.#tell = tell
  }

  /** All that has happened until now. */
  facts(): Facts {
    const { clock, ...facts } = this
    return structuredClone({ ...facts, now: clock.now() })
  }

  /** From now on, all that has happened in this new world is what has happened in another one. */
  async follow({ now, ...facts }: Facts): Promise<void> {
    Object.assign(this, structuredClone(facts))
    await this.clock.advance(now)
  }

  tell(what: () => string): void {
    this.#tell?.(what())
  }

  violate(what: string): void {
    this.tell(() => `VIOLATION: ${what}`)
    this.violations.push(what)
  }

  /** Another process, some time later. */
  async nextProcess(isDead: () => boolean): Promise<Process> {
    await this.clock.advance(this.pauseMs)
    const process = { world: this, number: this.processes++, isDead }
    this.tell(() => `process ${process.number}`)
    return process
  }

  /** A guard judges a call. It fails closed: until it has decided, it blocks. */
  judging({ number }: Process, guard: string, call: Judged, agentId: string): (verdict: Verdict) => void {
    const key = verdictKey(number, guard, agentId.split('/').slice(1), call.name, canonical(call.args))
    this.verdicts.set(key, 'block')
    return (verdict) => {
      this.verdicts.set(key, verdict)
      this.tell(() => `  ${guard}: ${verdict} ${call.name} ${canonical(call.args)}`)
    }
  }

  /** A question of an agent is open. Nothing that has begun is asked about, but whether it runs again. */
  asked({ id, trigger, interruptions, toolCall }: Approval, tool: string): void {
    if (!this.described.has(id)) this.described.set(id, tool)
    const [place] = id.split('#') as [string]
    const step = place.slice(0, place.lastIndexOf('/') + 1)
    if (trigger === 'onStop' || interruptions !== undefined) return
    if (this.executions.some(({ key }) => (trigger === undefined ? key === place : key.startsWith(step))))
      this.violate(`an approver is asked about ${trigger ?? toolCall.name}, which has begun`)
  }

  answered(question: Approval, answer: Answer): void {
    this.answers.push({ question, answer, usedBy: undefined })
    this.tell(() => `  answer to ${question.by} about ${question.toolCall.name}: ${JSON.stringify(answer)}`)
  }

  /** An approver answers at once. An approver is not asked again about what has had consequences. */
  answeredLive(question: Approval, answer: Answer): void {
    if (this.answers.some((each) => each.question.id === question.id && each.isLater === true))
      this.violate(`an approver is asked again about ${question.toolCall.name}`)
    this.answered(question, answer)
  }

  /** A model is called: what was answered before is known. */
  modelCalled({ number }: Process): void {
    for (const answer of this.answers) answer.isLater = true
    if (this.failed === number) this.violate('a model is called after the run has failed')
  }

  /** A hook fails, and with it the run. */
  failing({ number, isDead }: Process): void {
    if (!isDead()) this.failed = number
  }

  /** An observer sees something. */
  observing({ isDead }: Process, what: string): void {
    if (!isDead()) this.observed.set(what, (this.observed.get(what) ?? 0) + 1)
  }

  /**
   * Hooks learn how calls of the agent itself have ended in the order in which they began, unless they ran together or again, or
   * an approver was asked whether they may run again, or other calls are asked about than before: these are put off.
   */
  concluding({ isDead, number }: Process, step: number, call: string): void {
    if (this.otherQuestions.has(number)) return
    const places = this.executions.flatMap(({ key, isTogether }, i) =>
      !isTogether && !key.includes('.') && key.endsWith(`/${step}/${call}`) ? [i] : [],
    )
    const [at] = places
    if (isDead() || at === undefined || places.length > 1) return
    const isLost = ({ question }: { readonly question: Approval }): boolean =>
      question.interruptions !== undefined && question.toolCall.id === call
    if (this.answers.some(isLost)) return
    const place = `${this.processes}/${step}`
    if ((this.concluded.get(place) ?? -1) > at) this.violate('a call ends after one that began later')
    this.concluded.set(place, at)
  }

  /** The run is paused in a step. */
  pausing(step: string, value: unknown): void {
    this.pauses.set(step, canonical(value ?? null))
  }

  /** A step does not see what hooks change while its run is paused in it. */
  seesPause({ isDead }: Process, step: string, value: unknown): void {
    const seen = canonical(value ?? null)
    if (!isDead() && (this.pauses.get(step) ?? seen) !== seen)
      this.violate('an open step sees what onPause has changed')
  }

  /** A tool is executed: whether that was right. */
  execute(process: Process, kind: ToolKind, call: { readonly key: string; readonly args: unknown }, inForce: InForce) {
    const isAsked = kind.again === true || inForce.asksAgain
    const mode = kind.idempotent === true ? 'idempotent' : isAsked ? 'again' : 'once'
    const args = canonical(call.args)
    const execution: Execution = {
      tool: kind.name,
      key: call.key,
      args,
      mode,
      process: process.number,
      isTogether: kind.concurrent === true,
    }
    this.tell(() => `  ${kind.name} ${args} is executed, key ${call.key}`)
    const before = this.executions.filter(({ key }) => key === call.key)
    const isLost = before.some((each) => each.process !== process.number) || before.length >= inForce.attempts
    const modes = [mode, ...before.map((each) => each.mode)]
    if (modes.includes('once') && before.length > 0 && isLost) this.violate(`${kind.name} is executed twice`)
    if (before.some((each) => each.args !== args)) this.violate(`${kind.name} is repeated with other arguments`)
    if (this.failed === process.number) this.violate(`${kind.name} is executed after the run has failed`)
    if (inForce.isStopping(call.key)) this.violate(`${kind.name} is executed after a stop`)
    for (const guard of inForce.guards) this.#checkVerdict(execution, guard, inForce)
    if (kind.ask === true) this.#useAnswer(execution, `tool "${kind.name}"`, inForce)
    if (modes.includes('again') && before.length > 0 && isLost) this.#useAnswer(execution, undefined, inForce)
    this.executions.push(execution)
  }

  #checkVerdict(execution: Execution, guard: string, inForce: InForce): void {
    const { tool, args, process, key } = execution
    const verdict = this.verdicts.get(verdictKey(process, guard, key.split('/').slice(1, -2), tool, args))
    if (verdict === undefined) this.violate(`${tool} is executed and ${guard} has not judged it`)
    else if (verdict === 'block') this.violate(`${tool} is executed although ${guard} blocks`)
    else if (verdict === 'ask') this.#useAnswer(execution, guard, inForce)
  }

  /** An answer is for one call, with exactly the arguments that it is about, of the tool as it was described. Without `by`: whether it runs again. */
  #useAnswer({ tool, args, key }: Execution, by: string | undefined, { description }: InForce): void {
    const fitting = this.answers.filter(({ question, answer }) => {
      const isAsked =
        by === undefined ? question.interruptions !== undefined : question.asks.some((each) => each.by === by)
      const isAbout = question.toolCall.name === tool && question.id.startsWith(`${key}#`)
      if ((this.described.get(question.id) ?? description) !== description) return false
      if (!isAbout || !isAsked) return false
      if (answer === 'allow') return canonical(question.toolCall.args) === args
      return 'allow' in answer && canonical(answer.allow) === args
    })
    const used = fitting.find(({ usedBy }) => usedBy === key) ?? fitting.find(({ usedBy }) => usedBy === undefined)
    if (used !== undefined) used.usedBy = key
    else
      this.violate(
        `${tool} is executed and no approver has ${fitting.length > 0 ? 'twice ' : ''}allowed ${by ?? 'that it runs again'}`,
      )
  }
}

/** Subagents that work at the same time may make the same call. A continuation is of the same subagent. */
function verdictKey(process: number, guard: string, path: readonly string[], tool: string, args: string): string {
  const calls = path.map((part) => part.split('.').slice(0, 2).join('.'))
  return `${process}|${guard}|${calls.join('/')}|${tool}|${args}`
}

/** A clock that stands still, except that a sleep advances it. */
function worldClock(): FakeClock {
  const clock = fakeClock()
  return {
    ...clock,
    async sleep(ms, signal) {
      const slept = clock.sleep(ms, signal)
      setImmediate(() => void clock.advance(ms))
      await slept
    },
  }
}

/** The time limit of what hangs. */
export const LIMIT_MS = 50

/** Work that never ends. When its caller has started to wait, the time limit is over. */
export function hang({ world: { clock } }: Process, ms: number): Promise<never> {
  setImmediate(() => setImmediate(() => void clock.advance(ms)))
  return new Promise(() => undefined)
}

/** The same for work that ends when its signal aborts. */
export function hangUntil(signal: AbortSignal, process: Process, ms: number): Promise<never> {
  const aborted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('It was aborted.')), { once: true })
  })
  return Promise.race([hang(process, ms), aborted])
}

/** JSON with sorted keys. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, each: unknown) => {
    if (typeof each !== 'object' || each === null || Array.isArray(each)) return each
    const object = each as JsonObject
    return Object.fromEntries(
      Object.keys(object)
        .toSorted()
        .map((key) => [key, object[key]]),
    )
  })
}
