import type { Capability } from '../../agent/capability.ts'
import { checkOptions, checkPositiveIntegers, definedOptions, invalidOption } from '../../agent/check-options.ts'
import { parserOf } from '../../agent/tools/parse-schema.ts'
import type { AgentState } from '../../state/agent-state.ts'
import { isJsonObject, type Json, type JsonObject } from '../../state/json.ts'
import { nameValue, readNamed, type NamedValues, type Naming, type NamingLimits } from '../../state/named-values.ts'
import { AgentError } from '../../errors.ts'
import { guard, hook, type Hook } from '../../hooks/hook.ts'
import { formTool, formTools, schemaOf, toForms, type DataOf, type Form, type Schemas } from './form.ts'

export type StructuredOutputOptions = {
  /** By name: a Standard Schema, a JSON Schema, or one of them with words and examples for the model. */
  readonly schemas: Schemas
  /** How often in a row data that does not fit may be mended, for each schema in each execution. */
  readonly maxRetries?: number
  /** How many outputs may be kept at once. */
  readonly maxOutputs?: number
  /** Of one output, as JSON in UTF-8. */
  readonly maxValueBytes?: number
}

export const structuredOutputPolicy = Object.freeze({
  schemas: undefined,
  maxRetries: 3,
  maxOutputs: 50,
  maxValueBytes: 65_536,
})

export const STRUCTURED_OUTPUT_KEY = 'hookloop.structuredOutput'

/** Takes data from the model in forms that the application knows by name: a tool for each of them. */
export function structuredOutput(options: StructuredOutputOptions): Capability {
  checkOptions('structuredOutput', options, Object.keys(structuredOutputPolicy))
  const { schemas, maxRetries, ...sizes } = { ...structuredOutputPolicy, ...definedOptions(options) }
  checkPositiveIntegers('structuredOutput', sizes, ['maxOutputs', 'maxValueBytes'])
  if (!Number.isSafeInteger(maxRetries) || maxRetries < 0) {
    throw invalidOption('structuredOutput', '"maxRetries" must be a whole number from 0 up', maxRetries)
  }
  const forms = toForms(schemas, sizes.maxValueBytes)
  const names = [...forms.values()].map(({ name }) => name)
  const naming = namingFor(names, sizes.maxOutputs)
  const tools = [...forms.values()].map((form) =>
    formTool(form, ({ store_as: storeAs = form.name }, { state }) => {
      const next = nameOutput(keptOf(state).outputs, form, { name: storeAs, data: null, limits: naming(form) })
      if ('problem' in next) throw new Error(next.problem)
      return `Kept as "${storeAs}".`
    }),
  )
  return {
    name: 'structuredOutput',
    hooks: [triesGuard(forms, maxRetries), keepHook(forms, { maxRetries, naming })],
    tools,
    notes: [`Structured output: ${names.join(', ')}, with up to ${maxRetries} retries each.`],
  }
}

/** What the model has given so far, by schema, in the order of the names it is kept by first. */
export type Outputs<S> = { readonly [N in keyof S]: readonly StructuredOutput<DataOf<S[N]>>[] }
export type StructuredOutput<D> = { readonly name: string; readonly data: D }

/**
 * What is kept, as the schemas make it of the data. Give it the schemas that the capability was given. Rejects with
 * STATE_INVALID if something does not fit: the state is from elsewhere, or from when the schema was another.
 */
export async function getOutputs<const S extends Schemas>(state: AgentState, schemas: S): Promise<Outputs<S>> {
  const found = new Map<string, StructuredOutput<unknown>[]>(Object.keys(schemas).map((name) => [name, []]))
  for (const [name, kept] of Object.entries(keptOf(state).outputs)) {
    if (!isJsonObject(kept) || typeof kept['schema'] !== 'string') continue
    const { schema, data = null } = kept
    const list = found.get(schema)
    if (list !== undefined) list.push({ name, data: await readData(schemas[schema]!, { name, schema, data }) })
  }
  return Object.fromEntries(found) as unknown as Outputs<S>
}

async function readData(
  entry: Schemas[string],
  { name, schema, data }: { readonly name: string; readonly schema: string; readonly data: Json },
): Promise<unknown> {
  const parsed = await parserOf(schemaOf(entry))(data)
  if ('value' in parsed) return parsed.value
  const why = `The output "${name}" does not fit the schema "${schema}": ${parsed.problem}.`
  throw new AgentError('STATE_INVALID', why, { value: data })
}

/** Outputs by the name they are kept by, each with its schema and its data as it was sent. */
type Kept = {
  readonly outputs: NamedValues
  /** How often in a row a schema was missed, by its name. */
  readonly missed: NamedValues
}

function keptOf(state: AgentState): Kept {
  const kept = state.metadata[STRUCTURED_OUTPUT_KEY]
  const { outputs, missed }: JsonObject = isJsonObject(kept) ? kept : {}
  return { outputs: readNamed(outputs), missed: readNamed(missed) }
}

function keep(state: AgentState, change: Partial<Kept>): AgentState {
  return state.withMetadata(STRUCTURED_OUTPUT_KEY, { ...keptOf(state), ...change })
}

type NamingFor = (form: Form) => NamingLimits

/** The name of another schema would be taken for what that one keeps. Sizes were judged with the data. */
function namingFor(names: readonly string[], maxNames: number): NamingFor {
  const unlimited = { maxValueBytes: Infinity, maxTotalBytes: Infinity, maxDepth: Infinity }
  return ({ name: own }) => ({
    ...unlimited,
    word: 'name',
    maxNames,
    maxNameLength: 64,
    isReserved: (name) => name !== own && (names.includes(name) || /^hookloop(\.|$)/.test(name)),
  })
}

function nameOutput(
  outputs: NamedValues,
  form: Form,
  { name, data, limits }: { readonly name: Json; readonly data: Json; readonly limits: NamingLimits },
): Naming {
  const there = typeof name === 'string' ? outputs[name] : undefined
  if (isJsonObject(there) && there['schema'] !== form.name) {
    return { problem: `Something of another form is kept by the name "${name as string}". Choose another name.` }
  }
  return nameValue(outputs, [name, { schema: form.name, data }], limits)
}

/** Data that fits is kept; of data that does not, the model is told how often it may try again. */
function keepHook(forms: ReadonlyMap<string, Form>, by: { maxRetries: number; naming: NamingFor }): Hook {
  return hook(
    'afterToolUse',
    (ctx) => {
      const form = forms.get(ctx.toolCall.name)
      const { status, output } = ctx.toolExecution
      if (form === undefined || !['ok', 'failed'].includes(status)) return ctx
      const { outputs, missed } = keptOf(ctx.state)
      if (status === 'failed') {
        const count = missedBy(ctx.state, form) + 1
        const failed = { ...missed, [form.name]: { execution: ctx.state.executionCount, count } }
        return ctx
          .withOutput(wordMiss(output, by.maxRetries + 1 - count))
          .withState((state) => keep(state, { missed: failed }))
      }
      const { data = null, store_as: name = form.name } = ctx.toolCall.args
      const next = nameOutput(outputs, form, { name, data, limits: by.naming(form) })
      if ('problem' in next) return ctx.withOutput(next.problem) // somebody answered in the tool's place
      const { [form.name]: _mended, ...rest } = missed
      return ctx.withState((state) => keep(state, { outputs: next.values, missed: rest }))
    },
    { name: 'structuredOutput.keep', priority: 100, tool: formTools },
  )
}

const NO_MORE = 'No more data of this form is taken now. Go on without it, and say what is missing.'

function wordMiss(output: Json, left: number): string {
  if (left < 0) return NO_MORE
  const words = typeof output === 'string' ? output : JSON.stringify(output)
  if (left === 0) return `${words}\n${NO_MORE}`
  return `${words}\nYou may try ${left} more ${left === 1 ? 'time' : 'times'}.`
}

/** How often in a row data for this schema was missed in the execution at hand. */
function missedBy(state: AgentState, { name }: Form): number {
  const missed = keptOf(state).missed[name]
  if (!isJsonObject(missed) || missed['execution'] !== state.executionCount) return 0
  return typeof missed['count'] === 'number' ? missed['count'] : 0
}

/** Data that fits comes too late once the tries are used up; data that does not fit is not taken anyway. */
function triesGuard(forms: ReadonlyMap<string, Form>, maxRetries: number): Hook {
  return guard(
    'beforeToolUse',
    (ctx) => {
      const form = forms.get(ctx.toolCall.name)
      return form !== undefined && missedBy(ctx.state, form) > maxRetries ? ctx.block(NO_MORE) : ctx
    },
    { name: 'structuredOutput.tries', priority: 100, tool: formTools },
  )
}
