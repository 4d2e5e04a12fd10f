import { mutant, type RuleMutant } from './rule-mutant.ts'

const journal = 'core/effects/journal.ts'
const log = 'core/effects/log.ts'
const calls = 'core/loop/run-calls.ts'
const judging = 'core/tools/judge-call.ts'
const asking = 'core/context/ask.ts'
const firing = 'core/context/fire-trigger.ts'
const loop = 'core/loop/loop.ts'
const context = 'core/context/run-context.ts'
const drive = 'core/loop/drive.ts'
const question = 'core/state/tool-call.ts'
const cutOff = 'core/subagents/cut-off.ts'

const questions: readonly RuleMutant[] = [
  mutant(
    ['9', 'a question does not cover the arguments'],
    [question, '    args: args as Json,\n    asks:', '    asks:'],
    ['A:ask & A:ask+args', 'crash live'],
  ),
  mutant(
    ['9', 'a question does not cover who asks what'],
    [question, 'asks: (asks ?? []).map(({ by, message }) => [by, message]),', 'asks: (asks ?? []).length > 0,'],
    ['A:ask', 'crash live'],
  ),
  mutant(
    ['9', 'a question does not cover the tool as it was described'],
    [question, '    ...(tool !== undefined && { tool }),\n  })\n}', '  })\n}'],
    ['A:ask', 'crash live'],
  ),
  mutant(
    ['9 §7', 'an answer also covers guards whose question was not shown'],
    [
      calls,
      'const asks = again.asks.filter(({ by }) => !shown.some((each) => each.by === by))',
      'const asks = again.asks.slice(again.asks.length)',
    ],
    ['A:ask,B:ask+ask-second', 'crash whole saved live'],
  ),
  mutant(
    ['9 §7', 'what has begun is asked about'],
    [calls, 'const isOpen = begun === undefined || (', 'const isOpen = true || ('],
    ['A:plain & A:idem', 'crash'],
  ),
  mutant(
    ['9 §7', 'an answered question of what has begun is ignored'],
    [calls, 'if (!isOpen && !isAnswered(run, question))', 'if (!isOpen)'],
    ['A:ask & A:idemAsk', 'crash'],
  ),
  mutant(
    ['9 §7', 'a step that has begun is asked about'],
    [asking, 'if (hasBegun && !isAnswered(run, question))', 'if (false)'],
    ['A:plain', 'crash'],
  ),
  mutant(
    ['9 §7', 'an answered question of a step that has begun is ignored'],
    [asking, 'if (hasBegun && !isAnswered(run, question))', 'if (hasBegun)'],
    ['A:plain+ask-step & A:plain+ask-model', 'crash'],
  ),
  mutant(
    ['9', 'an edit is ignored'],
    [
      calls,
      "typeof answer === 'object' ? answer.allow : judged.call.args",
      "typeof answer === 'object' ? judged.call.args : judged.call.args",
    ],
    ['A:ask', 'whole'],
  ),
  mutant(
    ['9', 'questions at other triggers are ignored'],
    [asking, "if (given === 'allow') return undefined\n", 'if (given !== undefined) return undefined\n'],
    ['text+ask-everything', 'whole crash'],
  ),
  mutant(
    ['9', 'questions of guards are ignored'],
    [judging, 'const asks = asksAbout(run.parts, tool, invocation)', 'const asks: readonly Ask[] = none'],
    ['A:ask', 'whole'],
  ),
  mutant(
    ['9', 'a denial is ignored'],
    [
      calls,
      "if (typeof answer === 'object' && 'block' in answer)\n    return refused(judged, blockedExecution('approval', answer.block), 'approval')",
      "if (typeof answer === 'object' && 'block' in answer)\n    return { ...judged, isAgreed: true }",
    ],
    ['A:ask', 'whole'],
  ),
]

const families: readonly RuleMutant[] = [
  mutant(
    ['10 §8', 'a subagent that is over runs again'],
    [drive, 'if (run.effects.scopeLog.isOver) return', 'if (false) return'],
    ['sub(plain),A+late', 'crash'],
  ),
  mutant(
    ['10 §9', 'onSubagentStop is not fired in call order'],
    [
      calls,
      'delegatedCall(run, judged, shareOf(judged, group))\n}',
      'delegatedCall(run, judged, shareOf(judged, group)).then((end) => (isChildEnd(end) ? concludeChild(run, judged, end) : end))\n}',
    ],
    ['sub(ask),sub & sub(sub(ask)),sub,A', 'whole crash live partial-last'],
  ),
  mutant(
    ['10 §10', 'a subagent begins something although its parent may not'],
    [
      context,
      'const above = this.parent?.run && this.parent.run.#stop()',
      'const above = undefined as ContinuationEvaluation | undefined',
    ],
    ['sub(ask)+output & sub(plain)+output', 'crash'],
  ),
  mutant(
    ['10', 'a subagent that the agent no longer has does not cost anything'],
    [cutOff, 'const usage = log.openUsage(scope.id)', 'const usage = { ...log.openUsage(scope.id), costUsd: 0 }'],
    ['sub(plain)+output', 'crash'],
  ),
  mutant(
    ['10', 'a subagent that the agent no longer has is forgotten'],
    [
      cutOff,
      "const did = made.length === 0 ? 'It had made no calls.'",
      "const did = made.length >= 0 ? 'It had made no calls.'",
    ],
    ['sub(plain)+output & sub(plain) by agent & sub(idem)+output & sub(again)+output', 'crash'],
  ),
]

const rest: readonly RuleMutant[] = [
  mutant(
    ['11 §11', 'the open step sees what hooks at onPause have changed'],
    [
      log,
      'this.ledger.push(...ofPause(record))\n        if (record.change !== undefined) this.deferred.push(record.change)',
      'this.ledger.push(...ofPause(record))\n        if (record.change !== undefined) this.root.state = applyChange(this.root.state!, record.change)',
    ],
    ['A:ask', 'whole crash'],
  ),
  mutant(
    ['11 §11', 'what hooks at onPause have changed is lost'],
    [journal, 'const state = isRoot ? withDeferred(after, this.log.deferred, before) : after', 'const state = after'],
    ['A:ask', 'whole'],
  ),
  mutant(
    ['12 §12', 'what no hook or call has asked for is not billed'],
    [loop, 'if (usage === noTokens) return\n', 'if (usage !== undefined) return\n'],
    ['A:plain+infer', 'crash'],
  ),
  mutant(
    ['12 §12', 'what was read is billed again'],
    [log, 'if (!entry.isRead && !isInEnded(entry)) yield', 'if (!isInEnded(entry)) yield'],
    ['A:plain+infer', 'crash'],
  ),
  mutant(
    ['12', 'an attempt at a call that has ended counts as unread'],
    [log, 'if (!entry.isRead && !isInEnded(entry)) yield', 'if (!entry.isRead) yield'],
    ['A:plain+around & text+around-model', 'crash'],
  ),
  mutant(
    ['12', 'what happened inside a subagent that has ended counts as unread'],
    [log, 'if (this.#hasEnded(scope)) continue', ''],
    ['sub(plain)+output & sub(sub(plain))+output & sub(sub(plain)),sub,A', 'crash'],
  ),
  mutant(
    ['13', 'a failure ends the run at once, and its results are lost'],
    [context, 'this.failure ??= error\n    const { message } = error', 'throw error\n    const { message } = error'],
    ['A:plain', 'crash'],
  ),
  mutant(
    ['13', 'a run that has failed goes on'],
    [
      context,
      'this.cast([Object.freeze(vote)])\n  }\n\n  /** Returns how many there were',
      'void vote\n  }\n\n  /** Returns how many there were',
    ],
    ['A:plain & A:plain,B:plain', 'crash'],
  ),
  mutant(
    ['14', 'observers see what is repeated'],
    [
      firing,
      "const isFirst = (journal.isLive && !isRepeated) || invocation.trigger === 'onResume'",
      'const isFirst = true',
    ],
    ['A:plain,B:ask+observe', 'whole'],
  ),
  mutant(
    ['14', 'observers see nothing after a crash'],
    [
      journal,
      'return this.tape === undefined && (this.#hasActed || this.log.isAllRead)',
      'return this.tape === undefined && this.log.before === 0',
    ],
    ['A:plain,B:ask+observe', 'crash'],
  ),
  mutant(
    ['14', 'questions about calls that have ended count as unread'],
    [calls, "(kind === 'ask' || kind === 'tool') && ids.has(call)", "ids.has('')"],
    ['A:ask+observe', 'crash'],
  ),
  mutant(
    ['14', 'what a subagent repeats is observed again'],
    [journal, "if (entry === undefined || key.kind !== 'child') this", 'this'],
    ['sub(ask)+observe', 'whole expiry'],
  ),
  mutant(
    ['16 §14', 'a checkpoint refers to effects of earlier steps'],
    ['sessions/log/references.ts', 'this.#records.clear()\n      this.#places.clear()', 'this.#records.clear()'],
    ['A;A;A+pin', 'whole'],
  ),
]

const time: readonly RuleMutant[] = [
  mutant(
    ['fencing', 'a process that was overtaken still stores'],
    ['sessions/stores/open-writers.ts', 'if (!this.#listeners.has(session)) throw sessionReleased(id)', ''],
    ['A:plain', 'takeover'],
  ),
  mutant(
    ['fencing', 'two processes work on a session'],
    ['sessions/stores/memory-store.ts', 'if (found?.lock !== undefined) throw sessionBusy(id, found.lock.owner)', ''],
    ['A:plain', 'takeover'],
  ),
  mutant(
    ['waits', 'the time without a process counts as working time'],
    [log, 'this.#wait(last)', 'void last'],
    ['A:plain & A:plain,B:plain', 'crash'],
  ),
  mutant(
    ['waits', 'the time for which a question is open counts as working time'],
    [log, "if (record.key.kind === 'ask') this.#wait(record.at)", ''],
    ['A:ask', 'live'],
  ),
  mutant(
    ['waits', 'waiting time is forgotten when a step is closed'],
    [loop, 'if (waited > 0) run.updateExecution({ waitedMs: run.execution.waitedMs + waited })', ''],
    ['A:ask & A:ask;B:ask', 'whole crash'],
  ),
  mutant(
    ['waits', 'waiting time counts twice when a step is closed'],
    [log, 'this.pending = undefined\n    this.waits = []', 'this.pending = undefined'],
    ['A:ask & A:ask;B:ask', 'whole crash'],
  ),
  mutant(
    ['cancel', 'another process does not know of a cancel'],
    [log, 'this.scope(record.path).cancel = record', 'void record.path'],
    ['A:plain,B:ask & A:ask,B:ask', 'cancel'],
  ),
  mutant(
    ['new input', 'something begins although there is new input'],
    [log, 'this.ends ||= record.ends === true', 'void record.ends'],
    ['A:plain & A:ask', 'new-input'],
  ),
]

/** Rules about questions, subagents and time. */
export const waitingRules: readonly RuleMutant[] = [...questions, ...families, ...rest, ...time]
