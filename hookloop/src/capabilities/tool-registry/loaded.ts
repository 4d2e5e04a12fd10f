import { isJsonObject, type Json } from '../../state/json.ts'

/** Which tools a conversation has loaded. */
export type Loaded = {
  /** In the order in which they were loaded, which is the order in which the model is offered them. */
  readonly names: readonly string[]
  /** The same, the one that was not used for longest first. */
  readonly byUse: readonly string[]
}

/** What is kept of it, as far as there are such tools: the state may be from when there were others. */
export function readLoaded(kept: Json | undefined, isKnown: (name: string) => boolean = () => true): Loaded {
  if (!isJsonObject(kept)) return nothing
  const names = known(kept['names'], isKnown)
  const used = known(kept['byUse'], (name) => names.includes(name))
  return { names, byUse: [...names.filter((name) => !used.includes(name)), ...used] }
}

const nothing: Loaded = Object.freeze({ names: Object.freeze([]), byUse: Object.freeze([]) })

function known(list: Json | undefined, isKnown: (name: string) => boolean): readonly string[] {
  if (!Array.isArray(list)) return []
  return [...new Set((list as readonly Json[]).filter((name) => typeof name === 'string' && isKnown(name)))] as string[]
}

/**
 * Loads more. Those that are new come last, so that what was offered before stays as it was; beyond the limit, those that
 * were not used for longest go.
 */
export function loadTools(
  { names, byUse }: Loaded,
  asked: readonly string[],
  max: number,
): Loaded & { readonly unloaded: readonly string[] } {
  const wanted = [...new Set(asked)]
  const all = [...names, ...wanted.filter((name) => !names.includes(name))]
  const order = [...byUse.filter((name) => !wanted.includes(name)), ...wanted]
  const unloaded = order.slice(0, Math.max(0, order.length - max))
  const stays = (name: string): boolean => !unloaded.includes(name)
  return { names: all.filter(stays), byUse: order.filter(stays), unloaded }
}

/** Notes that a tool was used. */
export function useTool(loaded: Loaded, name: string): Loaded {
  if (!loaded.names.includes(name) || loaded.byUse.at(-1) === name) return loaded
  return { names: loaded.names, byUse: [...loaded.byUse.filter((each) => each !== name), name] }
}
