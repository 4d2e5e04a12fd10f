import type { ApprovalPolicy, Capability } from '../agent/capability.ts'
import { isOnUnknownOutcome, type OnUnknownOutcome } from '../agent/tool.ts'
import { AgentError } from '../errors.ts'
import { toNameTest, type NamePattern } from '../hooks/patterns.ts'

export type ApprovalHandler = Exclude<ApprovalPolicy['answer'], string>

export type ApprovalOptions = {
  /** `deny`: nobody can be asked. `suspend`: wait for `agent.resume(run, { answers })`. A function asks right now. */
  readonly answer: 'deny' | 'suspend' | ApprovalHandler
  /** Tools to ask about even if no guard asks. A guard's `allow` answers these questions, and only these. */
  readonly tools?: readonly NamePattern[]
  /** How long a question may be answered with yes. */
  readonly expiresInMs?: number
  /** `ask`: whether to run a call again that a crash cut off, of every tool that does not say otherwise. */
  readonly onUnknownOutcome?: OnUnknownOutcome
}

/** Says how a person is reached when a hook asks. Without it nobody is, and every question is answered with no. */
export function approval(how: ApprovalOptions['answer'] | ApprovalOptions): Capability {
  const {
    answer,
    tools = [],
    expiresInMs,
    onUnknownOutcome = 'tell',
  }: ApprovalOptions = typeof how === 'object' && how !== null ? how : { answer: how }
  if (answer !== 'deny' && answer !== 'suspend' && typeof answer !== 'function') {
    throw invalid(`'deny', 'suspend' or a function is expected`, answer)
  }
  if (expiresInMs !== undefined && !(expiresInMs > 0)) throw invalid('"expiresInMs" must be positive', expiresInMs)
  if (!isOnUnknownOutcome(onUnknownOutcome)) throw invalid(`"onUnknownOutcome" is 'tell' or 'ask'`, onUnknownOutcome)
  const tests = tools.map(toNameTest)
  const asksAbout: ApprovalPolicy['asksAbout'] = (name) => tests.some((test) => test(name))
  return { name: 'approval', approval: { answer, expiresInMs, asksAbout, onUnknownOutcome } }
}

function invalid(why: string, value: unknown): AgentError {
  return new AgentError('AGENT_INVALID_OPTION', `approval: ${why}.`, { value })
}
