import type { Capability } from './core/agent/capability.ts'
import type { AnswerReader, OutputPlan } from './core/agent/agent-parts.ts'
import { tool } from './core/agent/tool.ts'
import type { AgentState } from './core/state/agent-state.ts'
import type { Step } from './core/state/execution.ts'
import type { LanguageModel } from './core/state/inference.ts'
import type { JsonObject } from './values/json.ts'
import type { Schema } from './values/schema.ts'
import { AgentError, clause } from './errors.ts'
import { checkChoice, readOptions } from './values/check-options.ts'
import { guard, hook, type Hook } from './core/hooks/hook.ts'
import {
  ANSWER_TOOL,
  askInForm,
  bestForm,
  formOf,
  otherTools,
  type AnswerForm,
  type Wanted,
} from './core/output/answer-form.ts'
import { answerSchema, answerShape, readJson, type AnswerShape } from './core/output/answer-shape.ts'

/** Options of a typed answer: `createAgent({ output, outputOptions })`. */
export type OutputOptions = {
  /** How the schema is enforced: by the provider, by a tool, or by instructions. Default: the best the model supports. */
  readonly strategy?: AnswerForm
  /** How often the model may correct an invalid answer before the run fails. Default 2. */
  readonly maxRetries?: number
  /** The name of the answer, for the model. Default `'answer'`. */
  readonly name?: string
  /** What the answer is, for the model. Default none. */
  readonly description?: string
}

const defaults = { strategy: undefined, maxRetries: 2, name: 'answer', description: undefined }

/**
 * A typed answer. The schema is enforced as well as the model supports it; an invalid answer is returned to the model with
 * what is wrong. A run is completed only with a valid answer.
 */
export function outputPlan(schema: Schema | JsonObject, options: OutputOptions = {}): OutputPlan {
  const { strategy, maxRetries, name, description } = readOptions('outputOptions', options, defaults)
  if (strategy !== undefined) checkChoice('outputOptions', 'strategy', strategy, ['native', 'tool', 'text'])
  const shape = answerShape(schema)
  const wanted = { jsonSchema: shape.jsonSchema, name, description }
  const formFor = (model: LanguageModel, hasTools: boolean): AnswerForm => strategy ?? bestForm(model, hasTools)
  return {
    reader: readerOf(shape),
    capability: (model, hasTools) =>
      ({
        name: 'output',
        hooks: [...askHooks(wanted, formFor), judgeOf(shape, maxRetries)],
        tools: strategy === undefined || strategy === 'tool' ? [answerTool(shape, description)] : [],
        notes: [`Output: typed, strategy ${formFor(model, hasTools)}, up to ${maxRetries} retries.`],
      }) satisfies Capability,
  }
}

/** The arguments of this tool are the answer, so the output schema validates them. */
function answerTool(shape: AnswerShape, description = 'Submits your final answer. Call it once, when you are done.') {
  return tool({ name: ANSWER_TOOL, description, input: answerSchema(shape), execute: () => 'Accepted.' })
}

/**
 * Adds the required form of the answer to each request: for the model of the request, and for another model that an around
 * hook calls instead.
 */
function askHooks(wanted: Wanted, formFor: (model: LanguageModel, hasTools: boolean) => AnswerForm): readonly Hook[] {
  const insists = ({ lastStep: last }: AgentState): boolean => {
    return last !== undefined && answerOf(last) !== undefined
  }
  const first = hook(
    'beforeInference',
    (ctx) => {
      const form = formFor(ctx.request.model, otherTools(ctx.request).length > 0)
      return ctx.withRequest(askInForm(ctx.request, form, { wanted, insists: insists(ctx.state) }))
    },
    { name: 'output.ask', bookkeeping: true, priority: -100 },
  )
  const otherModel = hook(
    'aroundInference',
    (ctx, next) => {
      const form = formFor(ctx.request.model, otherTools(ctx.request).length > 0)
      if (form === formOf(ctx.request, wanted)) return next()
      return next(askInForm(ctx.request, form, { wanted, insists: insists(ctx.state) }))
    },
    { name: 'output.ask.otherModel', bookkeeping: true, priority: -1_000 },
  )
  return [first, otherModel]
}

/** Returns an invalid answer to the model with what is wrong, and lets the run stop with a valid one. */
function judgeOf(shape: AnswerShape, maxRetries: number): Hook {
  return guard(
    'afterStep',
    (ctx) => {
      const { step } = ctx
      const answer = answerOf(step)
      if (answer === undefined || step.finishReason === 'withheld') return ctx
      return problemOf(shape, answer).then((problem) => {
        if (problem === undefined) return answer.accepted ? ctx.allowStop('The answer matches the output schema.') : ctx
        const retries = answersIn(ctx.state.execution?.steps ?? []).length - 1
        if (retries >= maxRetries) return ctx.allowStop(`No valid answer after ${countRetries(retries)}.`)
        if (answer.byTool) return ctx // the result of the failed call has the problem
        return ctx.requestContinuation(
          `Your answer does not match the required format: ${clause(problem)}. Send the corrected answer in that format.`,
        )
      })
    },
    { name: 'output.judge' },
  )
}

/** The answer in a step: the arguments of the tool, or its text. */
type Answer = { readonly text: string; readonly byTool: boolean; readonly accepted: boolean }

function answerOf(step: Step): Answer | undefined {
  const call = step.toolCalls.findLastIndex(({ name }) => name === ANSWER_TOOL)
  if (call !== -1) {
    const execution = step.toolExecutions[call]
    const accepted = execution?.status === 'ok' && execution.withheld !== true
    return { text: JSON.stringify(step.toolCalls[call]!.args), byTool: true, accepted }
  }
  return step.type === 'finalResponse' ? { text: step.text, byTool: false, accepted: false } : undefined
}

function answersIn(steps: readonly Step[]): readonly Answer[] {
  return steps.flatMap((step) => answerOf(step) ?? [])
}

async function problemOf(shape: AnswerShape, answer: Answer): Promise<string | undefined> {
  const parsed = await parse(shape, answer)
  return 'problem' in parsed ? parsed.problem : undefined
}

async function parse(
  shape: AnswerShape,
  { text, byTool, accepted }: Answer,
): Promise<{ value: unknown } | { problem: string }> {
  const json = readJson(text)
  if (json === undefined) return { problem: text === '' ? 'it is empty' : 'it is not JSON' }
  const parsed = await shape.parse(json)
  return byTool && !accepted && 'value' in parsed ? { problem: 'the call was blocked or withheld' } : parsed
}

/** Reads the answer of a run from its steps, or the error with what was wrong with each. */
function readerOf(shape: AnswerShape): AnswerReader {
  return async (steps) => {
    const answers = answersIn(steps)
    const last = answers.at(-1)
    const parsed = last === undefined ? undefined : await parse(shape, last)
    if (parsed !== undefined && 'value' in parsed) return { value: parsed.value }
    const attempts = await Promise.all(
      answers.map(async (answer) => ({ text: answer.text, problem: (await problemOf(shape, answer)) ?? '' })),
    )
    const why = attempts.at(-1)?.problem ?? 'there was no answer'
    return {
      error: new AgentError(
        'OUTPUT_INVALID',
        `No answer matches the output schema after ${countRetries(Math.max(0, attempts.length - 1))}. The last problem: ${clause(why)}.`,
        {
          value: { attempts },
        },
      ),
    }
  }
}

function countRetries(retries: number): string {
  return `${retries} ${retries === 1 ? 'retry' : 'retries'}`
}
