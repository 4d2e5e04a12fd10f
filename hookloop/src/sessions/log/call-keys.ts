import type { CallPath } from '../../state/stored-run.ts'

/** What the key of an effect says about it. */
export type CallPlace = {
  readonly step: number
  /** The position of the tool call that it belongs to. */
  readonly index?: number
  /** The subagent that made it: steps and positions of calls. Empty for the agent itself. */
  readonly within: readonly (readonly [step: number, index: number])[]
  readonly trigger?: string
  readonly hook?: string
}

// `<run>` is followed by `/<step>.<call>` for each subagent, the number of the execution, the step, and the call if there is one.
const PLACE = /^((?:\/\d+\.-?\d+(?:~\d+)?)*)\.\d+\/(\d+)(?:\/(\d+))?\/(.+)$/
// The input is judged before there is a step, under the id of the conversation, which an earlier run may have given.
const BEFORE_STEPS = /\/\d+\/input\/(.+)$/
const AT_TRIGGER = /^([a-z]+[A-Z]\w*)\/(.+?)(?:\/(?:infer\.\d+(?:\.again)?|unheard))?(?:~\d+)?$/
const nowhere: CallPlace = { step: 0, within: [] }

/** The place of a call, from its key without the id of the run. */
export function placeOfKey(key: string): CallPlace {
  const [, early] = BEFORE_STEPS.exec(key) ?? []
  if (early !== undefined) return { ...nowhere, ...hookIn(early) }
  const [, path = '', step, index, rest = ''] = PLACE.exec(key) ?? []
  if (step === undefined) return nowhere
  return {
    step: Number(step),
    ...(index !== undefined && { index: Number(index) }),
    within: path === '' ? nowhere.within : path.slice(1).split('/').map(callOf),
    ...hookIn(rest),
  }
}

function callOf(part: string): readonly [number, number] {
  const [step, index] = part.split('.')
  return [Number(step), Number.parseInt(index!, 10)]
}

function hookIn(rest: string): Pick<CallPlace, 'trigger' | 'hook'> {
  const [, trigger, hook] = AT_TRIGGER.exec(rest) ?? []
  return trigger === undefined ? {} : { trigger, hook: hook!.replaceAll('~~', '~') }
}

/** The ids of the tool calls that models asked for, by the place of the model call. */
export class CallIds {
  readonly #ids = new Map<string, readonly string[]>()

  set({ within, step }: CallPlace, ids: readonly string[]): void {
    if (ids.length > 0) this.#ids.set(textOf(within, step), ids)
  }

  id(within: CallPlace['within'], step: number, index: number): string | undefined {
    return this.#ids.get(textOf(within, step))?.[index]
  }

  path(within: CallPlace['within']): CallPath {
    return within.map(([step, index], i) => ({ step, call: this.id(within.slice(0, i), step, index) ?? `${index}` }))
  }
}

function textOf(within: CallPlace['within'], step: number): string {
  return within.length === 0 ? `${step}` : `${within.map((each) => each.join('.')).join('/')}/${step}`
}
