/**
 * Every error code and its meaning. Failures that the model or the loop can handle are data, not errors; these errors must
 * be fixed by a developer.
 */
export const errorCodes = {
  AGENT_INVALID_OPTION: 'An option of createAgent, of a capability or of a run is out of range or of the wrong type.',
  ANSWER_EXPIRED: 'An approval was given after it had expired. It can still be blocked.',
  ANSWER_INVALID: 'An answer has none of the three forms, or its edited arguments do not fit the tool.',
  ANSWER_UNKNOWN: 'An answer names an approval that this run is not waiting for.',
  ANSWER_USED: 'An answer names an approval that was answered before.',
  APPROVAL_MISMATCH: 'The arguments of a pending call are not the ones that were shown to the approver.',
  CONFIG_INVALID: 'A file with hooks, or the list of trusted files, is malformed.',
  CONFIG_UNTRUSTED: 'Hooks of a project were to be used that were not trusted.',
  HOOK_DUPLICATE: 'Two hooks of one agent have the same name, or one hook was added twice.',
  HOOK_FAILED: 'A hook threw.',
  HOOK_FOREIGN_CONTEXT:
    'A hook returned a context from a different invocation, or a state that is not derived from its own.',
  HOOK_INVALID_OPTION: 'A hook was declared with an option that is out of range or that its trigger does not have.',
  HOOK_INVALID_PATTERN: 'A tool pattern cannot be matched in linear time.',
  HOOK_NEXT_MISUSED: 'An around hook forgot to return a result, or called next() after it had returned.',
  HOOK_NO_RETURN: 'A hook returned nothing. A forgotten return would lose a decision, so it counts as a failure.',
  HOOK_OUTCOME_INVALID: 'An action returned something that is not an outcome, or that has no effect at its trigger.',
  HOOK_TIMED_OUT: 'A hook timed out.',
  HOOK_UNKNOWN_TRIGGER: 'A hook was declared on a trigger that does not exist.',
  INPUT_INVALID: 'The input of a run is neither a string nor a user message.',
  JSON_INVALID: 'A value that must be stored is not JSON.',
  MODEL_CONTENT_FILTERED: 'The provider rejected the request because of its content.',
  MODEL_CONTEXT_OVERFLOW: 'The conversation is longer than the context window of the model.',
  MODEL_FAILED: 'The model call failed for a reason that has no code of its own.',
  MODEL_FORBIDDEN:
    'A guard forbade another model call, or the call of a hook, or a call exceeded the time limit of a guard.',
  MODEL_INVALID: 'The model of an agent is not a language model.',
  MODEL_NOT_INSTALLED: 'A model was given by name, and the package of its provider is not installed.',
  MODEL_OVERLOADED: 'The provider failed or is overloaded. It may help to try again.',
  MODEL_RATE_LIMITED: 'The provider limits requests or tokens per minute. It may say how long to wait.',
  MODEL_REJECTED: 'The provider rejected the request: it does not know a setting, a model name or a kind of message.',
  MODEL_REPLY_INVALID: 'The reply of the provider cannot be read.',
  MODEL_TIMED_OUT: 'The model call timed out.',
  MODEL_UNAUTHORIZED: 'The API key is missing, or the provider does not accept it.',
  MODEL_UNKNOWN: 'A model was given by a name that is not known.',
  MODEL_UNREACHABLE: 'The provider cannot be reached, or the connection broke before the answer was complete.',
  OUTPUT_INVALID: 'The answer did not fit the schema of the output, after all retries.',
  REPLAY_DIVERGED: 'A replayed run performed another effect than the recorded run at that point.',
  REPLAY_INCOMPLETE: 'A replayed run continued after the end of the record.',
  RESUME_GUARD_MISSING: 'A guard that the suspended run started with is missing from the agent that resumes it.',
  RESUME_NOT_SUSPENDED: 'The state to resume is not suspended.',
  RUN_CANCELLED: 'The run was cancelled.',
  RUN_TIMED_OUT: 'The run reached its time limit while it waited for a model.',
  SCRIPT_EXHAUSTED: 'A scripted model was called more often than its script has turns.',
  SESSION_BUSY: 'The session is locked by another process.',
  SESSION_CORRUPT: 'A stored session was changed, truncated or reordered. It was not modified.',
  SESSION_FENCED: 'The session was taken over by another process while this one was writing.',
  SESSION_ID_INVALID: 'The id of a session is empty, too long, or has control characters.',
  SESSION_UNKNOWN: 'There is no session with that id.',
  STATE_INVALID: 'A saved state is malformed.',
  STATE_SUSPENDED: 'The state waits for approval or is paused: it takes answers, no new input.',
  STATE_VERSION: 'A saved run, a session or an export was written by another version of Hookloop.',
  STORE_FAILED: 'A store cannot be read or written.',
  TOOL_DUPLICATE: 'Two tools of one agent have the same name.',
  TOOL_INVALID: 'A tool was declared without a usable name, schema or execute function.',
} as const

/** A code of `errorCodes`. */
export type ErrorCode = keyof typeof errorCodes

/** An error with a code, the value at fault, and a message that says what to do. */
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

/** A thrown value as an AgentError: itself if it is one, otherwise wrapped with the given code. */
export function toAgentError(thrown: unknown, code: ErrorCode): AgentError {
  if (thrown instanceof AgentError) return thrown
  return new AgentError(code, messageOf(thrown), { cause: thrown })
}

/** The message of a thrown value, which may be anything, even an object that throws when it is read. */
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

/** A text without its full stop, as a part of a sentence. */
export function clause(text: string): string {
  return text.replace(/(?<!\.)\.$/, '')
}
