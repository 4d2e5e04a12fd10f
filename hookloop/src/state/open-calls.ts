import type { Cursor } from './execution.ts'
import type { OpenChild } from './subagent.ts'
import type { Answers, Approval, OpenCall } from './tool-call.ts'

/** The part of an execution, live or as JSON, that says what it waits for. */
export type OpenExecution = {
  readonly id: string
  readonly steps: { readonly length: number }
  readonly cursor?: Cursor
}

/** A call that waits, and the key that its approval is bound to. */
export type OpenPlace = { readonly call: OpenCall; readonly key: string }

/** All calls of an open step, each followed by those of its subagent. */
export function openCallsIn(execution: OpenExecution | undefined): readonly OpenPlace[] {
  if (execution?.cursor === undefined) return []
  const { id, steps, cursor } = execution
  if (cursor.phase === 'asked') return [{ call: cursor.call, key: `${id}/${steps.length}/${cursor.at}` }]
  if (cursor.phase !== 'tools') return []
  return cursor.step.calls.flatMap((call, index) => {
    const own = { call, key: `${id}/${steps.length}/${index}` }
    return isInChild(call) ? [own, ...openCallsIn(executionOf(call.child))] : [own]
  })
}

/** Whether a call waits for its subagent: its own approval has been answered. */
export function isInChild<C extends { readonly child?: OpenChild; readonly result?: unknown }>(
  call: C,
): call is C & { readonly child: OpenChild } {
  return call.child !== undefined && call.result === undefined
}

/** The approvals that an execution and its subagents wait for. */
export function pendingIn(execution: OpenExecution | undefined): readonly Approval[] {
  return openCallsIn(execution).flatMap(({ call }) =>
    call.approval !== undefined && call.result === undefined && call.child === undefined ? [call.approval] : [],
  )
}

/** The answers for a subagent and the subagents in it. */
export function answersWithin(child: OpenChild, answers: Answers): Answers | undefined {
  const ids = pendingIn(executionOf(child)).map(({ id }) => id)
  const own = ids.filter((id) => Object.hasOwn(answers, id))
  return own.length === 0 ? undefined : Object.freeze(Object.fromEntries(own.map((id) => [id, answers[id]!])))
}

/** The execution in the JSON of a state, which has been checked. */
function executionOf({ state }: OpenChild): OpenExecution | undefined {
  return state['execution'] as unknown as OpenExecution | undefined
}
