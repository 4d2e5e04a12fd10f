/**
 * Every error a programmer can be shown, by code. What the model or the loop can act on is data, not an error;
 * what is listed here must be fixed by a person, so the text says what was wrong and what to do instead.
 */
export const errorCodes = {
  AGENT_INVALID_OPTION: 'An option of createAgent, of a capability or of a run is out of range or of the wrong type.',
  ANSWER_EXPIRED: 'An approval was given after its time was over. It can still be refused.',
  ANSWER_INVALID: 'An answer has none of the three forms, or its edited arguments do not fit the tool.',
  ANSWER_UNKNOWN: 'An answer names an approval that this run is not waiting for.',
  ANSWER_USED: 'An answer names an approval that was answered before.',
  APPROVAL_MISMATCH: 'The arguments of a pending call are not the ones that were shown to the approver.',
  CONFIG_INVALID: 'A file with hooks, or the list of what is trusted, cannot be understood.',
  CONFIG_UNTRUSTED: 'Hooks of a project were to be used that nobody has looked at and trusted.',
  HOOK_DUPLICATE: 'Two hooks of one agent have the same name, or one hook was added twice.',
  HOOK_FAILED: 'A hook threw.',
  HOOK_FOREIGN_CONTEXT: 'A hook returned the context of another firing, or a state that is not derived from its own.',
  HOOK_INVALID_OPTION: 'A hook was declared with an option that is out of range or that its trigger does not have.',
  HOOK_INVALID_PATTERN: 'A tool pattern cannot be matched in linear time.',
  HOOK_NEXT_MISUSED: 'An around hook forgot to return a result, or called next() after it had returned.',
  HOOK_NO_RETURN: 'A hook returned nothing. A forgotten return would lose a decision, so it counts as a failure.',
  HOOK_OUTCOME_INVALID: 'An action answered with something that is no outcome, or that has no effect at its trigger.',
  HOOK_TIMED_OUT: 'A hook did not answer in time.',
  HOOK_UNKNOWN_TRIGGER: 'A hook was declared on a trigger that does not exist.',
  INPUT_INVALID: 'The input of a run is neither a text nor a user message.',
  JSON_INVALID: 'A value that must be kept is not JSON.',
  MODEL_CONTENT_FILTERED: 'The provider refused the request because of what is in it.',
  MODEL_CONTEXT_OVERFLOW: 'The conversation is longer than the model can take.',
  MODEL_FAILED: 'The model call failed, for none of the reasons that have a code of their own.',
  MODEL_FORBIDDEN:
    'A guard forbade a further model call, or one that a hook asked for, or cut one off because its time was over.',
  MODEL_INVALID: 'The model of an agent is not a language model.',
  MODEL_NOT_INSTALLED: 'A model was given by name, and the package of its provider is not installed.',
  MODEL_OVERLOADED: 'The provider failed or is overloaded. It may help to try again.',
  MODEL_RATE_LIMITED: 'The provider wants fewer requests or tokens per minute. It may say how long to wait.',
  MODEL_REJECTED: 'The provider does not take the request: a setting, a model name or a message that it does not know.',
  MODEL_REPLY_INVALID: 'The provider answered with something that cannot be read.',
  MODEL_TIMED_OUT: 'The model did not answer in time.',
  MODEL_UNAUTHORIZED: 'The provider does not accept the key, or there is none.',
  MODEL_UNKNOWN: 'A model was given by a name that cannot be understood.',
  MODEL_UNREACHABLE: 'The provider cannot be reached, or the connection broke before the answer was whole.',
  OUTPUT_INVALID: 'The answer did not fit the schema of the output after as many tries as were allowed.',
  RECORDING_FAILED: 'A recording cannot be written, so the run stopped before its next effect.',
  RECORDING_INVALID: 'A recording is malformed.',
  REPLAY_DIVERGED: 'A replayed run asked for something else than the recorded run did at that point.',
  REPLAY_INCOMPLETE: 'A replayed run went on where the recording ends.',
  RESUME_GUARD_MISSING: 'A guard that watched over the suspended run is missing from the agent that resumes it.',
  RESUME_NOT_SUSPENDED: 'The state to resume is not suspended.',
  RESUME_TOOL_MISSING: 'A pending call needs a tool that the resuming agent does not have.',
  RUN_CANCELLED: 'The run was cancelled.',
  SCRIPT_EXHAUSTED: 'A scripted model was asked for more turns than its script has.',
  SESSION_BUSY: 'Somebody else writes to the session.',
  SESSION_CORRUPT: 'A stored session was changed, cut or mixed up. It is left as it is.',
  SESSION_FENCED: 'The session was taken over by another process while this one was writing.',
  SESSION_ID_INVALID: 'The id of a session has characters that no store takes.',
  SESSION_UNKNOWN: 'There is no session of that id.',
  STATE_INVALID: 'A saved state is malformed.',
  STATE_SUSPENDED: 'The state waits for a person or is paused: it takes answers, no new input.',
  STATE_VERSION: 'A saved state or recording was written by a newer version of Hookloop.',
  STORE_FAILED: 'A store cannot be read or written.',
  TOOL_DUPLICATE: 'Two tools of one agent have the same name.',
  TOOL_INVALID: 'A tool was declared without a usable name, schema or execute function.',
} as const

/** A code of `errorCodes`. */
export type ErrorCode = keyof typeof errorCodes

/** An error with a code from the table above, the value at fault, and a message that names the way out. */
export class AgentError extends Error {
  override readonly name = 'AgentError'
  readonly code: ErrorCode
  readonly value: unknown

  constructor(code: ErrorCode, message: string, details: { value?: unknown; cause?: unknown } = {}) {
    super(message, 'cause' in details ? { cause: details.cause } : undefined)
    this.code = code
    this.value = details.value
  }
}

/** What was thrown, as an AgentError: itself when it is one, otherwise wrapped under the given code. */
export function toAgentError(thrown: unknown, code: ErrorCode): AgentError {
  if (isAgentError(thrown)) return thrown
  return new AgentError(code, messageOf(thrown), { cause: thrown })
}

function isAgentError(thrown: unknown): thrown is AgentError {
  try {
    return thrown instanceof AgentError
  } catch {
    return false // a proxy that throws when it is looked at
  }
}

/** The words of anything that can be thrown, which in JavaScript is anything, also what cannot be read. */
export function messageOf(thrown: unknown): string {
  try {
    if (thrown instanceof Error)
      return typeof thrown.message === 'string' && thrown.message ? thrown.message : thrown.name
    if (typeof thrown === 'string' && thrown !== '') return thrown
    return `a thrown ${thrown === null ? 'null' : typeof thrown}: ${JSON.stringify(thrown) ?? String(thrown)}`
  } catch {
    return `a thrown ${typeof thrown} that cannot be read`
  }
}
