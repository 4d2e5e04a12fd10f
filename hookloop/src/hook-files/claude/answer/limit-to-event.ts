import { isJsonObject, type Json } from '../../../state/json.ts'
import type { HandlerAnswer } from './handler-answer.ts'
import { eventSpec } from '../events/claude-events.ts'
import type { Payload } from '../events/common-payload.ts'

/** Removes the parts of an answer that have no effect at its event. */
export function limitToEvent(answer: HandlerAnswer, payload: Payload): HandlerAnswer {
  return withOutput(withBlock(answer, payload), payload)
}

/** Where nothing can be blocked, a block is a warning or ignored. */
function withBlock(answer: HandlerAnswer, { event, input }: Payload): HandlerAnswer {
  if (answer.block === undefined) return answer
  const { block, ...rest } = answer
  const { block: effect } = eventSpec(event)
  const isPolicy = event === 'ConfigChange' && input['source'] === 'policy_settings' // settings of an organisation cannot be blocked
  if (effect === 'ignored' || isPolicy) return rest
  if (effect !== 'warns') return answer
  const problem = [block.reason, rest.problem ?? ''].filter((text) => text !== '').join('\n')
  return { ...rest, ...(problem !== '' && { problem }) }
}

/** A new output must have the shape of the original one. `updatedMCPToolOutput` is the older name, for MCP tools only. */
function withOutput(answer: HandlerAnswer, { input }: Payload): HandlerAnswer {
  const { updatedMCPToolOutput, ...other } = answer.other ?? {}
  const isMcp = typeof input['tool_name'] === 'string' && input['tool_name'].startsWith('mcp__')
  const given = answer.updatedOutput ?? (isMcp ? updatedMCPToolOutput : undefined)
  const { updatedOutput: _given, other: _other, ...rest } = answer
  const limited = { ...rest, ...(Object.keys(other).length > 0 && { other }) }
  if (given === undefined) return updatedMCPToolOutput === undefined && answer.other === undefined ? rest : limited
  if (isMcp || isAlike(input['tool_response'], given)) return { ...limited, updatedOutput: given }
  return {
    ...limited,
    problem: limited.problem ?? 'its "updatedToolOutput" is ignored: it does not have the shape of the output',
  }
}

function isAlike(before: Json | undefined, after: Json): boolean {
  if (before === undefined || before === null) return true
  if (kindOf(before) !== kindOf(after)) return false
  if (!isJsonObject(before) || !isJsonObject(after)) return true
  return Object.entries(after).every(([key, value]) => {
    const old = before[key]
    return old === undefined || old === null || value === null || kindOf(old) === kindOf(value)
  })
}

function kindOf(value: Json): string {
  return Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value
}
