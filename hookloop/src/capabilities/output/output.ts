import type { Capability } from '../../agent/capability.ts'
import type { AnswerReader, OutputPlan } from '../../agent/parts.ts'
import { tool } from '../../agent/tool.ts'
import type { Step } from '../../data/execution.ts'
import type { LanguageModel } from '../../data/inference.ts'
import type { JsonObject } from '../../data/json.ts'
import type { List } from '../../data/list.ts'
import type { Schema } from '../../data/schema.ts'
import { AgentError } from '../../errors.ts'
import { guard, hook, type Hook } from '../../hooks/hook.ts'
import { answerShape, readJson, type AnswerShape } from './answer-shape.ts'

export type OutputOptions = {
  /**
   * How the model is held to the schema: by its provider, by a tool that takes the answer, or by being asked to. Without
   * it, what the model supports best.
   */
  readonly strategy?: 'native' | 'tool' | 'text'
  /** Answers in all, before the run fails. Default 3. */
  readonly tries?: number
  /** What the answer is called, and what it is, for the model. */
  readonly name?: string
  readonly description?: string
}

export const ANSWER_TOOL = 'final_answer'

/**
 * A typed answer. The model is held to the schema as well as it can be; an answer that does not fit goes back with what
 * is wrong with it, as often as is allowed. A run is completed only with an answer that fits.
 */
export function outputPlan(schema: Schema | JsonObject, options: OutputOptions = {}): OutputPlan {
  const { tries = 3, strategy } = options
  if (!Number.isInteger(tries) || tries < 1) throw invalid('"tries" must be a whole number from 1 up', tries)
  if (strategy !== undefined && !['native', 'tool', 'text'].includes(strategy)) {
    throw invalid(`"strategy" is 'native', 'tool' or 'text'`, strategy)
  }
  const shape = answerShape(schema)
  return {
    reader: readerOf(shape),
    capability: (model, hasTools) =>
      capabilityFor(shape, strategy ?? strategyOf(model, hasTools), { ...options, tries }),
  }
}

function strategyOf({ structuredOutput = 'tool' }: LanguageModel, hasTools: boolean): 'native' | 'tool' | 'text' {
  if (structuredOutput === 'native-alone') return hasTools ? 'tool' : 'native'
  return structuredOutput
}

type Chosen = OutputOptions & { readonly tries: number }

function capabilityFor(shape: AnswerShape, strategy: 'native' | 'tool' | 'text', options: Chosen): Capability {
  const note = `Output: typed, by ${strategy}, up to ${options.tries} tries.`
  const judge = judgeOf(shape, strategy, options.tries)
  if (strategy !== 'tool') return { name: 'output', hooks: [askFor(shape, strategy, options), judge], notes: [note] }
  const take = tool({
    name: ANSWER_TOOL,
    description: options.description ?? 'Takes your final answer. Call it once, when you are done.',
    input: shape.jsonSchema,
    execute: async (answer) => {
      const parsed = await shape.parse(answer) // a schema may ask for more than its JSON Schema says
      if ('problem' in parsed) throw new Error(`The answer does not fit: ${parsed.problem}`)
      return 'Taken.'
    },
  })
  return { name: 'output', hooks: [askFor(shape, strategy, options), judge], tools: [take], notes: [note] }
}

/** Tells the model, with each request, in what form the answer is wanted. */
function askFor({ jsonSchema }: AnswerShape, strategy: 'native' | 'tool' | 'text', options: Chosen): Hook {
  const { name = 'answer', description } = options
  const words = strategy === 'tool' ? byTool : `${byText}\n${JSON.stringify(jsonSchema)}`
  return hook(
    'beforeInference',
    (ctx) => {
      if (strategy === 'native') {
        const format = { type: 'json', schema: jsonSchema, name, ...(description !== undefined && { description }) }
        return ctx.withRequest({ responseFormat: format })
      }
      const asked = ctx.withRequest({ system: ctx.request.system === '' ? words : `${ctx.request.system}\n\n${words}` })
      // A model that has answered past the tool before is not left the choice again.
      const past = strategy === 'tool' && answersIn(ctx.state.execution?.steps).length > 0
      return past ? asked.withRequest({ toolChoice: { tool: ANSWER_TOOL } }) : asked
    },
    { name: 'output.ask', priority: -100 },
  )
}

const byTool = `When you are done, call the tool "${ANSWER_TOOL}" with your answer. Do not answer in words.`
const byText = 'Give your final answer as JSON and nothing else. It must fit this JSON Schema:'

/** Sends an answer that does not fit back, with what is wrong with it, and lets the run end on one that does. */
function judgeOf(shape: AnswerShape, strategy: 'native' | 'tool' | 'text', tries: number): Hook {
  return guard(
    'afterStep',
    async (ctx) => {
      const { step } = ctx
      const answer = answerOf(step)
      if (answer === undefined || step.finishReason === 'withheld') return ctx
      const problem = await problemOf(shape, answer)
      if (problem === undefined) return answer.taken ? ctx.allowStop('The answer fits the output schema.') : ctx
      const made = answersIn(ctx.state.execution?.steps).length
      if (made >= tries) return ctx.allowStop(`No answer fits after ${made} ${made === 1 ? 'try' : 'tries'}.`)
      if (answer.byTool) return ctx // the failed call says it already
      const way = strategy === 'tool' ? `Call "${ANSWER_TOOL}" with it.` : 'Answer with JSON only.'
      return ctx.requestContinuation(`Your answer does not fit: ${problem}. ${way}`)
    },
    { name: 'output.judge' },
  )
}

/** What a step gave as an answer: arguments for the tool, or its text. */
type Answer = { readonly text: string; readonly byTool: boolean; readonly taken: boolean }

function answerOf(step: Step): Answer | undefined {
  const call = step.toolCalls.findLastIndex(({ name }) => name === ANSWER_TOOL)
  if (call !== -1) {
    const taken = step.toolExecutions[call]?.status === 'ok'
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

function invalid(why: string, value: unknown): AgentError {
  return new AgentError('AGENT_INVALID_OPTION', `output: ${why}.`, { value })
}
