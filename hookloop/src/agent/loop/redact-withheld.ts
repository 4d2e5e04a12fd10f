import { withholdResponse, type InferenceResponse } from '../../state/inference.ts'
import type { ToolExecution } from '../../state/tool-call.ts'
import type { FactValues } from '../../hooks/base-context.ts'
import type { Invocation } from '../../hooks/invocation.ts'
import { withheldExecution } from '../tools/result.ts'

/** The facts as they will be used: what was withheld is withheld from observers as well. */
export function usedFacts({ facts, blocked, failure }: Pick<Invocation, 'facts' | 'blocked' | 'failure'>): FactValues {
  const by = blocked?.by ?? 'hookloop'
  const why = blocked?.message ?? failure?.message
  if (why === undefined) return facts
  const { toolExecution, response } = facts as { toolExecution?: ToolExecution; response?: InferenceResponse }
  return {
    ...facts,
    ...(toolExecution && { toolExecution: withheldExecution(toolExecution, by, why) }),
    ...(response && { response: withholdResponse(response, `[withheld by "${by}": ${why}]`) }),
  }
}
