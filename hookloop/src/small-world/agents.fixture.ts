import {
  agentTool,
  approval,
  createAgent,
  guards,
  tool,
  type Agent,
  type Approval,
  type JsonObject,
  type LanguageModel,
  type Tool,
  type Use,
} from '../index.ts'
import { subagents } from '../capabilities/subagents/index.ts'
import type { SessionStore } from '../sessions/index.ts'
import { scriptedModel, type ScriptedTurn } from '../testing/index.ts'
import { addedHooks, changesQuestions, STOPS_FIRST_STEP, stopsModels, stopsTools } from './changes.fixture.ts'
import { checkConversation } from './conversation.fixture.ts'
import { answersIn, hooksOf } from './hooks.fixture.ts'
import { FAIL, type Child, type Part, type Spec, type ToolKind } from './specs.fixture.ts'
import { canonical, hangUntil, LIMIT_MS, type Answer, type InForce, type Process } from './world.fixture.ts'

// Makes the agent of a spec in a process, as it is after a change.

/** How an agent is made. Without `approve`, each question suspends its run. */
export type Making = {
  readonly store?: SessionStore
  readonly approve?: ((question: Approval) => Answer) | undefined
  readonly expiresInMs?: number | undefined
}

export function agentOf(process: Process, spec: Spec, change: string, making: Making = {}): Agent {
  const { store, expiresInMs } = making
  if (changesQuestions.has(change)) process.world.otherQuestions.add(process.number)
  const limits = { ...spec.limits, ...(change === 'one-step' && { maxSteps: 1 }) }
  return createAgent({
    name: 'small',
    model: modelOf(process, spec, change),
    instructions: change === 'prompt' ? 'Work well.' : 'Work.',
    use: [
      ...partsOf(process, spec, { change, depth: 0, inherited: [], asksAgain: spec.approval === 'again' }),
      approval({
        answer: approverOf(process, change, making),
        ...(expiresInMs !== undefined && { expiresInMs }),
        ...(spec.approval === 'again' && { onUnknownOutcome: 'ask' as const }),
      }),
      guards({ maxSteps: 8, maxTokens: null, maxTimeMs: 5_000, ...limits }),
    ],
    ...(store !== undefined && { store }),
  })
}

/** Whether a call is part of the first step of the run: the key of a call of a subagent begins with that of its parent. */
function isOfFirstStep(key: string): boolean {
  return /^[^/]+\/0\b/.test(key)
}

function approverOf(
  process: Process,
  change: string,
  { approve }: Making,
): 'block' | 'suspend' | ((question: Approval) => Promise<Answer>) {
  if (change === 'approver-blocks') return 'block'
  if (approve === undefined) return 'suspend'
  return async (question) => {
    if (process.isDead()) throw new Error('The process has ended.')
    process.world.asked(question, descriptionOf(change))
    await process.world.clock.advance(process.world.pauseMs) // longer than the run may work
    if (process.isDead()) throw new Error('The process has ended.')
    const answer = approve(question)
    process.world.answeredLive(question, answer)
    return answer
  }
}

/** `inherited`: the guards of the agents above. */
type Place = {
  readonly change: string
  readonly depth: number
  readonly inherited: readonly string[]
  /** Whether someone is asked about every call that was lost. */
  readonly asksAgain: boolean
}

/** The hooks and tools of an agent or a subagent. A change adds its hook to the root, and subagents inherit guards. */
function partsOf(process: Process, part: Part, place: Place): readonly Use[] {
  const { change, depth, inherited, asksAgain } = place
  const hooks = hooksAfter(part, change, depth)
  const { use, judges } = hooksOf(process, hooks)
  const inForce: InForce = {
    guards: [...new Set([...inherited, ...judges])],
    isStopping: (key) => stopsTools.has(change) || (change === STOPS_FIRST_STEP && isOfFirstStep(key)),
    asksAgain,
    description: descriptionOf(change),
    attempts: hooks.includes('around-again') ? 2 : 1,
  }
  const tools = [...part.tools.flatMap((kind) => toolAfter(kind, change) ?? []), ...addedTools(change)]
  const made = [...use, ...tools.map((kind) => toolOf(process, kind, change, inForce))]
  if (part.child === undefined || (change === 'sub-removed' && depth === 0)) return made
  const below = { ...place, depth: depth + 1, inherited: inForce.guards }
  return [
    ...made,
    delegation(
      process,
      part.child,
      below,
      part.tools.some(({ concurrent }) => concurrent === true),
    ),
  ]
}

function hooksAfter({ hooks }: Part, change: string, depth: number): readonly string[] {
  const kept = hooks.filter((name) => {
    if (change === 'no-retry' && name.startsWith('retry')) return false
    return change !== 'hooks-removed' || name === 'trace'
  })
  const added = depth === 0 ? addedHooks[change] : undefined
  return added === undefined || kept.includes(added) ? kept : [...kept, added]
}

/** The tool as it is after a change. Undefined if it is gone. */
function toolAfter(kind: ToolKind, change: string): ToolKind | undefined {
  if (change === 'tool-removed' && kind.name === 'A') return undefined
  if (change === 'child-tool-removed' && kind.name === 'C') return undefined
  if (change === 'not-idempotent') return { ...kind, idempotent: false }
  return change === 'idempotent' && kind.again !== true ? { ...kind, idempotent: true } : kind
}

const addedTools = (change: string): readonly ToolKind[] => (change === 'tool-added' ? [{ name: 'D' }] : [])

export const descriptionOf = (change: string): string => (change === 'schema' ? 'Does it well.' : 'Does it.')
const anything: JsonObject = { type: 'object' }
const numbered: JsonObject = { type: 'object', required: ['i'], properties: { i: { type: 'number' } } }

function toolOf(process: Process, kind: ToolKind, change: string, inForce: InForce): Tool {
  const { world } = process
  const { name, ask = false, idempotent = false, concurrent = false, fails, again, slow, hangs } = kind
  const isOther = change === 'schema'
  return tool({
    name,
    ask,
    idempotent,
    concurrent,
    description: inForce.description,
    input: isOther ? numbered : anything,
    ...(again === true && { onUnknownOutcome: 'ask' as const }),
    ...(hangs === true && { timeoutMs: LIMIT_MS }),
    execute: async (args, { idempotencyKey: key, signal }) => {
      if (process.isDead()) {
        world.late.push(name)
        throw new Error('The process has ended.')
      }
      world.execute(process, kind, { key, args }, inForce)
      if (slow === true) await new Promise((resolve) => setImmediate(resolve))
      if (hangs === true) await hangUntil(signal, process, LIMIT_MS)
      if (fails === true) throw new Error(`${name} has failed.`)
      return { done: name, args }
    },
  })
}

/** The tool that delegates to a subagent. */
function delegation(process: Process, child: Child, below: Place, concurrent: boolean): Use {
  const { by = 'spec' } = child
  const { change } = below
  const [model, use] = [modelOf(process, child, change), partsOf(process, child, below)]
  if (by === 'capability') {
    const kid = { description: 'Digs.', instructions: 'Dig.', tools: [], model, use }
    return subagents({ agents: { kid }, concurrent })
  }
  const to = by === 'spec' ? { instructions: 'Dig.', tools: [], model, use } : createAgent({ model, use })
  return agentTool({
    name: 'sub',
    description: 'Delegates.',
    input: anything,
    concurrent,
    to: () => ({ name: 'kid', to, input: 'Dig.' }),
  })
}

const usage = { inputTokens: 2, outputTokens: 1, costUsd: 1 }

/** Answers by its script, from the conversation alone. */
function modelOf(process: Process, part: Part, change: string): LanguageModel {
  const { world } = process
  let failures = 0
  return scriptedModel(
    ({ messages }): ScriptedTurn => {
      const all = [...messages]
      if (!process.isDead()) {
        if (stopsModels.has(change)) world.violate('a model is called after a stop')
        world.modelCalled(process)
        checkConversation(world, all)
      }
      const answers = answersIn(all)
      const turn = part.script[answers % part.script.length]!
      world.tell(() => `  model: answer ${answers} is ${canonical(turn)}`)
      if (turn === FAIL) {
        if (failures++ % 2 === 0) return { error: 'the model has failed' }
        return { toolCalls: [{ id: `f${answers}`, name: 'A', args: { i: 9 } }], usage }
      }
      if (typeof turn === 'string') return { text: turn, usage }
      return { toolCalls: turn.map((name, i) => callOf(part, name, `c${answers}${name}${i}`, i)), usage }
    },
    { modelId: change === 'prompt' ? 'other' : 'first' },
  )
}

function callOf({ child }: Part, name: string, id: string, i: number): { id: string; name: string; args: JsonObject } {
  if (name !== 'sub') return { id, name, args: { i } }
  if (child?.by !== 'capability') return { id, name, args: { task: 'work' } }
  return { id, name: 'spawn_subagent', args: { subagent: 'kid', prompt: 'Dig.' } }
}
