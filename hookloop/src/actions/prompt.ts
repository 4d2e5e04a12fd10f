import { checkOptions } from '../values/check-options.ts'
import { shorten } from '../values/text.ts'
import { action, askModel, type Action, type ModelSettings, type ModelSource } from '../plugin.ts'
import { JUDGE, MAX_EVENT_CHARS, questionAbout, readAnswer, schemaFor, type AnswerKind } from './verdict.ts'

/** Options of `prompt`. */
export type PromptOptions = {
  /** The question about the event. The event is added to it as data. */
  readonly prompt: string
  /** The model, usually a small one. Default: the model of the agent. */
  readonly model?: ModelSource
  /** The system prompt. By default it asks for a careful judgement of the event. */
  readonly system?: string
  /** `verdict` (default): the model answers with ok or not, and why. `outcome`: with an `ActionOutcome`. */
  readonly answer?: AnswerKind
  /** Settings of the model call. Default none. */
  readonly settings?: ModelSettings
  /** Whether the event contains the complete conversation instead of its length and last message. Default: false. */
  readonly conversation?: boolean
  /** Maximum length of the event. Default: 100,000. A longer event is a failure: it could only be judged in part. */
  readonly maxEventChars?: number
}

const TIMEOUT_MS = 30_000

/**
 * Calls a model with a question about the event. A schema checks its answer, its cost counts towards the limits of the
 * run, and a replay does not call it again. "ok" is no opinion. A model that does not answer is a failure: guards fail
 * closed.
 *
 * @example
 * guard('beforeToolUse', prompt({ prompt: 'Does this command only read files?' }), { tool: 'bash' })
 */
export function prompt(options: PromptOptions): Action {
  checkOptions('prompt', options, names)
  const { prompt: question, model, system = JUDGE, settings } = options
  const { answer = 'verdict', conversation = false, maxEventChars: maxChars = MAX_EVENT_CHARS } = options
  const label = `prompt:${shorten(question.trim().replaceAll(/\s+/g, ' '), 60)}`
  return action({
    kind: 'prompt',
    label,
    asks: true,
    timeoutMs: TIMEOUT_MS,
    async perform(ctx) {
      const request = {
        system,
        prompt: questionAbout(ctx, question, { maxChars, conversation }),
        output: schemaFor(answer),
        ...(model !== undefined && { model }),
        ...(settings !== undefined && { settings }),
      }
      const { output } = (await askModel(ctx, request)) as { readonly output: unknown }
      return readAnswer(output, answer, { ctx, by: label })
    },
  })
}

const names = ['prompt', 'model', 'system', 'answer', 'settings', 'conversation', 'maxEventChars']
