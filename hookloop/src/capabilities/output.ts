import type { Capability } from '../agent/capability.ts'
import type { AnswerReader, OutputPlan } from '../agent/agent-parts.ts'
import { tool } from '../agent/tool.ts'
import type { Step } from '../state/execution.ts'
import type { LanguageModel } from '../state/inference.ts'
import type { JsonObject } from '../state/json.ts'
import type { List } from '../state/list.ts'
import type { Schema } from '../state/schema.ts'
import { AgentError } from '../errors.ts'
import { checkOptions, invalidOption } from '../agent/check-options.ts'
import { guard, hook, type Hook } from '../hooks/hook.ts'
import {
  ANSWER_TOOL,
  askInForm,
  bestForm,
  formOf,
  otherTools,
  type AnswerForm,
  type Wanted,
} from '../agent/output/answer-form.ts'
import { answerSchema, answerShape, readJson, type AnswerShape } from '../agent/output/answer-shape.ts'

export type OutputOptions = {
  /**
   * How the model is held to the schema: by its provider, by a tool that takes the answer, or by being asked to. Without
   * it, what the model supports best.
   */
  readonly strategy?: AnswerForm
  /** Answers in all, before the run fails. Default 3. */
  readonly tries?: number
  /** What the answer is called, and what it is, for the model. */
  readonly name?: string
  readonly description?: string
}

/**
 * A typed answer. The model is held to the schema as well as it can be; an answer that does not fit goes back with what
 * is wrong with it, as often as is allowed. A run is completed only with an answer that fits.
 */
export function outputPlan(schema: Schema | JsonObject, options: OutputOptions = {}): OutputPlan {
  const { tries = 3, strategy, name = 'answer', description } = options
  checkOptions('outputOptions', options, ['strategy', 'tries', 'name', 'description'])
  if (!Number.isInteger(tries) || tries < 1)
    throw invalidOption('output', '"tries" must be a whole number from 1 up', tries)
  if (strategy !== undefined && !['native', 'tool', 'text'].includes(strategy)) {
    throw invalidOption('output', `"strategy" is 'native', 'tool' or 'text'`, strategy)
  }
  const shape = answerShape(schema)
  const wanted = { jsonSchema: shape.jsonSchema, name, description }
  const formFor = (model: LanguageModel, hasTools: boolean): AnswerForm => strategy ?? bestForm(model, hasTools)
  return {
    reader: readerOf(shape),
    capability: (model, hasTools) =>
      ({
        name: 'output',
        hooks: [...askHooks(wanted, formFor), judgeOf(shape, tries)],
        tools: strategy === undefined || strategy === 'tool' ? [answerTool(shape, description)] : [],
        notes: [`Output: typed, by ${formFor(model, hasTools)}, up to ${tries} tries.`],
      }) satisfies Capability,
  }
}

/** Its arguments are the answer, so they are read as answers are: by the schema itself. */
function answerTool(shape: AnswerShape, description = 'Takes your final answer. Call it once, when you are done.') {
  return tool({ name: ANSWER_TOOL, description, input: answerSchema(shape), execute: () => 'Taken.' })
}

/**
 * Tells the model, with each request, in what form the answer is wanted: the model of the request, and, where a hook
 * around the call asks another one, that one.
 */
function askHooks(wanted: Wanted, formFor: (model: LanguageModel, hasTools: boolean) => AnswerForm): readonly Hook[] {
  const insists = (steps: List<Step> | undefined): boolean => {
    const last = steps?.at(-1)
    return last !== undefined && answerOf(last) !== undefined
  }
  const first = hook(
    'beforeInference',
    (ctx) => {
      const form = formFor(ctx.request.model, otherTools(ctx.request).length > 0)
      return ctx.withRequest(askInForm(ctx.request, form, { wanted, insists: insists(ctx.state.execution?.steps) }))
    },
    { name: 'output.ask', priority: -100 },
  )
  const elsewhere = hook(
    'aroundInference',
    (ctx, next) => {
      const form = formFor(ctx.request.model, otherTools(ctx.request).length > 0)
      if (form === formOf(ctx.request, wanted)) return next()
      return next(askInForm(ctx.request, form, { wanted, insists: insists(ctx.state.execution?.steps) }))
    },
    { name: 'output.ask.elsewhere', priority: -1_000 },
  )
  return [first, elsewhere]
}

/** Sends an answer that does not fit back, with what is wrong with it, and lets the run end on one that does. */
function judgeOf(shape: AnswerShape, tries: number): Hook {
  return guard(
    'afterStep',
    (ctx) => {
      const { step } = ctx
      const answer = answerOf(step)
      if (answer === undefined || step.finishReason === 'withheld') return ctx
      return problemOf(shape, answer).then((problem) => {
        if (problem === undefined) return answer.taken ? ctx.allowStop('The answer fits the output schema.') : ctx
        const made = answersIn(ctx.state.execution?.steps).length
        if (made >= tries) return ctx.allowStop(`No answer fits after ${made} ${made === 1 ? 'try' : 'tries'}.`)
        if (answer.byTool) return ctx // the failed call says it already
        return ctx.requestContinuation(`Your answer does not fit: ${problem}. Give it again, in the form asked for.`)
      })
    },
    { name: 'output.judge' },
  )
}

/** What a step gave as an answer: arguments for the tool, or its text. */
type Answer = { readonly text: string; readonly byTool: boolean; readonly taken: boolean }

function answerOf(step: Step): Answer | undefined {
  const call = step.toolCalls.findLastIndex(({ name }) => name === ANSWER_TOOL)
  if (call !== -1) {
    const execution = step.toolExecutions[call]
    const taken = execution?.status === 'ok' && execution.withheld !== true
    return { text: JSON.stringify(step.toolCalls[call]!.args), byTool: true, taken }
  }
  return step.type === 'finalResponse' ? { text: step.text, byTool: false, taken: false } : undefined
}

function answersIn(steps: List<Step> | undefined): readonly Answer[] {
  return (steps?.slice() ?? []).flatMap((step) => answerOf(step) ?? [])
}

async function problemOf(shape: AnswerShape, answer: Answer): Promise<string | undefined> {
  const parsed = await parse(shape, answer)
  return 'problem' in parsed ? parsed.problem : undefined
}

async function parse(
  shape: AnswerShape,
  { text, byTool, taken }: Answer,
): Promise<{ value: unknown } | { problem: string }> {
  const json = readJson(text)
  if (json === undefined) return { problem: text === '' ? 'it is empty' : 'it is not JSON' }
  const parsed = await shape.parse(json)
  return byTool && !taken && 'value' in parsed ? { problem: 'the call was not let through' } : parsed
}

/** Reads the answer of a run from its steps, or says what was wrong with each. */
function readerOf(shape: AnswerShape): AnswerReader {
  return async (steps) => {
    const answers = answersIn(steps)
    const last = answers.at(-1)
    const parsed = last === undefined ? undefined : await parse(shape, last)
    if (parsed !== undefined && 'value' in parsed) return { value: parsed.value }
    const attempts = await Promise.all(
      answers.map(async (answer) => ({ text: answer.text, problem: (await problemOf(shape, answer)) ?? '' })),
    )
    const why = attempts.at(-1)?.problem ?? 'there was none'
    const count = `${attempts.length} ${attempts.length === 1 ? 'try' : 'tries'}`
    return {
      error: new AgentError('OUTPUT_INVALID', `No answer fits the output schema after ${count}. The last: ${why}.`, {
        value: { attempts },
      }),
    }
  }
}
