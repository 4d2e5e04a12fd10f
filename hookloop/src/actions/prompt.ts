import { checkOptions, invalidOption } from '../agent/check-options.ts'
import type { ModelSettings, ModelSource } from '../state/inference.ts'
import { isJsonObject } from '../state/json.ts'
import { action, type Action } from '../hooks/action.ts'
import type { Inferred } from '../hooks/infer.ts'
import { BaseContext } from '../hooks/base-context.ts'
import { checkQuestion, JUDGE, questionAbout, readAnswer, schemaFor, type AnswerKind } from './verdict.ts'

export type PromptOptions = {
  /** What is asked about the event, which is added to it as data. */
  readonly prompt: string
  /** Whom to ask: a small model, as a rule. The model of the conversation unless told. */
  readonly model?: ModelSource
  readonly system?: string
  /** `verdict`: yes or no, and why. `outcome`: everything an action may answer with. */
  readonly answer?: AnswerKind
  readonly settings?: ModelSettings
  /** Whether it is told whole conversations, where there is one, and not only their length and their last message. */
  readonly conversation?: boolean
  /** The longest event that is told; a longer one is a failure, because half of it cannot be judged. */
  readonly maxEventCharacters?: number
}

export const promptDefaults = Object.freeze({
  timeoutMs: 30_000,
  answer: 'verdict',
  conversation: false,
  maxEventCharacters: 100_000,
})

/**
 * Asks a model about the event. Its answer is checked by a schema, what it costs is counted in the run and judged by its
 * limits, and a replay asks nobody. A yes is no opinion; a model that does not answer has failed, which is a no of a guard.
 */
export function prompt(options: PromptOptions): Action {
  const names = ['prompt', 'model', 'system', 'answer', 'settings', 'conversation', 'maxEventCharacters']
  checkOptions('prompt', options, names)
  checkQuestion('prompt', options)
  const { prompt: question, model, system = JUDGE, settings } = options
  const { answer, conversation, maxEventCharacters: maxCharacters } = { ...promptDefaults, ...options }
  if (typeof system !== 'string') throw invalidOption('prompt', '"system" must be a text', system)
  if (settings !== undefined && !isJsonObject(settings)) {
    throw invalidOption('prompt', '"settings" must be an object', settings)
  }
  if (typeof conversation !== 'boolean')
    throw invalidOption('prompt', '"conversation" must be true or false', conversation)
  const label = `prompt:${brief(question)}`
  return action({
    kind: 'prompt',
    label,
    asks: true,
    timeoutMs: promptDefaults.timeoutMs,
    async perform(ctx) {
      const asked = {
        system,
        prompt: questionAbout(ctx, question, { maxCharacters, conversation }),
        output: schemaFor(answer),
        ...(model !== undefined && { model }),
        ...(settings !== undefined && { settings }),
      }
      const { output } = (await BaseContext.infer(ctx, asked)) as Inferred & { readonly output: unknown }
      return readAnswer(output, answer, { ctx, by: label })
    },
  })
}

function brief(text: string): string {
  const line = text.trim().replaceAll(/\s+/g, ' ')
  return line.length > 60 ? `${line.slice(0, 60)}…` : line
}
