import { mutant, type RuleMutant } from './rule-mutant.ts'
import { waitingRules } from './waiting-rules.ts'

const journal = 'core/effects/journal.ts'
const calls = 'core/loop/run-calls.ts'
const judging = 'core/tools/judge-call.ts'
const loop = 'core/loop/loop.ts'
const input = 'core/loop/take-input.ts'
const firing = 'core/context/fire-trigger.ts'
const model = 'core/loop/call-model.ts'

const stored: readonly RuleMutant[] = [
  mutant(
    ['2', 'a begin is not stored first'],
    [journal, 'entry === undefined && isBegun(effect)', 'entry === undefined && false'],
    ['A:plain', 'unheard crash'],
  ),
  mutant(
    ['2', 'a begin is stored, and no effect waits for that'],
    [journal, 'await this.flush()\n    }\n    let value', 'this.#sink?.flushSoon()\n    }\n    let value'],
    ['A:plain', 'crash slow-store'],
  ),
  mutant(
    ['2', 'an answer is used before it is stored'],
    [journal, 'if (kept.has(key.kind) && effect.isInstant !== true) await this.flush()', ''],
    ['A:ask & A:ask,B:ask', 'live'],
  ),
  mutant(
    ['2', 'an end is not returned, and its effect happens again'],
    [journal, 'if (entry?.end !== undefined) return resultAt<T>(place, entry.end)', ''],
    ['A:plain', 'crash'],
  ),
  mutant(
    ['3', 'the step is closed before hooks at onStop have decided'],
    [
      loop,
      'if (!outcome.shouldContinue) outcome = await confirmStop',
      'await run.checkpoint()\n    if (!outcome.shouldContinue) outcome = await confirmStop',
    ],
    ['text & A:plain+once-more', 'crash'],
  ),
]

const begunWins: readonly RuleMutant[] = [
  mutant(
    ['4 §1', 'an input is blocked, or fails, whose step has begun, and its results are lost'],
    [input, 'run.forbidden !== undefined) && !hasBegun', 'run.forbidden !== undefined)'],
    ['A:plain', 'crash'],
  ),
  mutant(
    ['4 §1', 'a stop at beforeStep counts at once'],
    [loop, 'if (!run.effects.scopeLog.hasBegun) return outcome', 'return outcome'],
    ['A:plain', 'crash'],
  ),
  mutant(
    ['4 §1', 'a stop at beforeExecution counts at once'],
    [
      loop,
      'if (run.stoppedBy() !== undefined && !run.effects.scopeLog.hasBegun)',
      'if (run.stoppedBy() !== undefined)',
    ],
    ['A:plain', 'crash'],
  ),
  mutant(
    ['4 §1', 'a stop at beforeInference forgets a recorded answer'],
    [model, 'if (!hasBegun && (before?.failure', 'if ((before?.failure'],
    ['A:plain', 'crash'],
  ),
  mutant(
    ['4', 'a call that has begun is rejected because the run stops'],
    [
      calls,
      '  if (begun !== undefined) {\n    const recorded',
      '  if (begun !== undefined && run.forbidden === undefined) {\n    const recorded',
    ],
    ['A:plain & A:ask,B:ask', 'crash'],
  ),
  mutant(
    ['4', 'a call that has begun is rejected by a guard'],
    [
      calls,
      '  if (begun !== undefined) {\n    const recorded',
      '  if (begun !== undefined && refusal === undefined) {\n    const recorded',
    ],
    ['A:plain', 'crash'],
  ),
  mutant(
    ['4', 'something new begins although the run stops'],
    [
      'core/context/run-context.ts',
      'this.checkEnd()\n    return this.#stop()',
      'this.checkEnd()\n    return undefined',
    ],
    ['A:plain & A:ask,B:ask', 'crash new-input stop'],
  ),
]

const order: readonly RuleMutant[] = [
  mutant(
    ['5 §2', 'calls that ask are asked about in call order'],
    [
      calls,
      '    questions.push(...(await runGroup(run, now)))\n  }\n  if (putOff.length > 0) await',
      '    questions.push(...(await runGroup(run, now)))\n    await runPutOff(run, putOff.splice(0), questions)\n  }\n  if (putOff.length > 0) await',
    ],
    ['A:ask,B:plain & A:ask,B:plain+budget', 'whole crash live'],
  ),
  mutant(
    ['5 §2', 'calls that began after a later one are not put off'],
    [calls, '|| startedBefore(run, calls.slice(call.index + 1), call)', ''],
    ['A:ask,B:ask & A:ask,B:plain', 'crash'],
  ),
  mutant(
    ['5 §2', 'what was put off does not run in the order in which it began'],
    [calls, 'placeOf(run, a.call) - placeOf(run, b.call) || a', 'a'],
    ['A:ask,B:ask & A:ask,B:ask+args', 'crash partial-last'],
  ),
  mutant(
    ['5 §2', 'guards do not judge again'],
    [
      calls,
      'const again = await judgeAgain(run, judged, edited)',
      'const again = edited === judged.call.args ? { ...judged, asks: shown } : await judgeAgain(run, judged, edited)',
    ],
    ['A:ask,B:plain+budget & A:ask,B:ask+budget', 'whole crash live'],
  ),
]

const lost: readonly RuleMutant[] = [
  mutant(
    ['6 §3', 'every lost call runs again'],
    [
      judging,
      'return tool?.idempotent === true && last.begin?.idempotent === true',
      'return tool !== undefined && last !== undefined',
    ],
    ['A:plain', 'crash'],
  ),
  mutant(
    ['6 §3', 'a lost call runs again that is idempotent now, and was not when it began'],
    [
      judging,
      'return tool?.idempotent === true && last.begin?.idempotent === true',
      'return tool?.idempotent === true && last !== undefined',
    ],
    ['A:plain', 'crash'],
  ),
  mutant(
    ['6 §3', 'a lost call runs again that was idempotent when it began, and is not now'],
    [
      judging,
      'return tool?.idempotent === true && last.begin?.idempotent === true',
      'return tool !== undefined && last.begin?.idempotent === true',
    ],
    ['A:idem', 'crash'],
  ),
  mutant(
    ['6 §3', 'a lost call runs again with other arguments'],
    [calls, "if (!isSame) return failedExecution('its arguments would be others.')", ''],
    ['A:idem', 'crash'],
  ),
  mutant(
    ['6 §3', 'a lost call runs again against a guard'],
    [
      calls,
      'if (refusal !== undefined) return refusal.result\n  if (!isSame)',
      'if (refusal !== undefined) return undefined\n  if (!isSame)',
    ],
    ['A:idem', 'crash'],
  ),
  mutant(
    ['6 §3', 'a lost call runs again although a guard asks'],
    [
      calls,
      "return isAgreed ? undefined : failedExecution('a guard asks about it.')",
      'return isAgreed ? undefined : undefined',
    ],
    ['A:idem', 'crash'],
  ),
  mutant(
    ['6 §3', 'a lost call runs again although the run stops'],
    [
      calls,
      'const stopped = run.stoppedBy()\n  if (stopped !== undefined) return stoppedExecution(stopped)\n  if (refusal',
      'if (refusal',
    ],
    ['A:idem', 'crash stop'],
  ),
  mutant(
    ['6', 'that a call was lost is not recorded as its end'],
    [
      journal,
      'resultAt<T>(place, this.#end(scope, effect, { value: unknown(), at: began }))',
      'resultAt<T>(place, { value: unknown(), at: began })',
    ],
    ['A:plain', 'crash two-crashes'],
  ),
  mutant(
    ['6 §4', 'no approver is asked about a lost call'],
    [judging, "return policy === 'ask' && !mayRepeat(tool, begun) ? n + 1 : undefined", 'return undefined'],
    ['A:again & A:plain/again', 'crash'],
  ),
  mutant(
    ['6 §4', 'a blocked repetition is written as an end'],
    [calls, ': unknownOutcome(why)\n', ': toolCall(run, judged, { n, unknown: unknownOutcome(why) })\n'],
    ['A:again & A:again,B:ask', 'crash two-crashes'],
  ),
  mutant(
    ['6 §4', 'a repetition has no begin of its own'],
    [calls, '{ n: n + 1 }', '{ n }'],
    ['A:again', 'two-crashes'],
  ),
]

const facts: readonly RuleMutant[] = [
  mutant(
    ['7 §5', 'hooks at afterInference remove calls that have begun'],
    [model, 'if (lost.length === 0) return passed', 'return passed'],
    ['A:plain', 'crash'],
  ),
  mutant(
    ['8 §6', 'a recorded retry is decided again'],
    [
      firing,
      'const hasRetried = next !== undefined && run.effects.scopeLog.find(next) !== undefined',
      'const hasRetried = false',
    ],
    ['FAIL+retry', 'crash'],
  ),
  mutant(
    ['8 §6', 'a stop forgets a recorded retry'],
    [
      model,
      'if (run.stoppedBy() !== undefined && !hasBegun) return false // s',
      'if (run.stoppedBy() !== undefined) return false // s',
    ],
    ['FAIL+retry', 'crash'],
  ),
  mutant(
    ['8 §6', 'guards of another attempt forget a recorded retry'],
    [model, 'return run.stoppedBy() === undefined || hasBegun', 'return run.stoppedBy() === undefined'],
    ['FAIL+retry', 'crash'],
  ),
]

/** All rules of the core. `npm run mutate -- --rules` turns off one at a time. */
export const ruleMutants: readonly RuleMutant[] = [
  ...stored,
  ...begunWins,
  ...order,
  ...lost,
  ...facts,
  ...waitingRules,
]
