import { guard, hook, type AgentState, type Capability, type Hook } from '../../plugin.ts'
import { readOptions } from '../../values/check-options.ts'
import { parserOf } from '../../values/parse-schema.ts'
import { isJsonObject, textOfJson, type Json, type JsonObject } from '../../values/json.ts'
import { nameValue, readNamed, type NamedValues, type Naming, type NamingLimits } from '../../values/named-values.ts'
import { AgentError, clause } from '../../errors.ts'
import { formTool, formTools, schemaOf, toForms, type DataOf, type Form, type Schemas } from './form.ts'

/** Options of `structuredOutput`. */
export type StructuredOutputOptions = {
  /** By name: a Standard Schema, a JSON Schema, or one of them with a description and examples. Required. */
  readonly schemas: Schemas
  /** How often in a row invalid data may be corrected, for each schema in each execution. Default 3. */
  readonly maxRetries?: number
  /** The number of stored outputs. Default 50. */
  readonly maxOutputs?: number
  /** The size of one output as JSON in UTF-8. Default 65,536. */
  readonly maxValueBytes?: number
}

export const structuredOutputDefaults = Object.freeze({
  schemas: undefined,
  maxRetries: 3,
  maxOutputs: 50,
  maxValueBytes: 65_536,
})

export const STRUCTURED_OUTPUT_KEY = 'hookloop.structuredOutput'

/**
 * Gives the model one tool per schema to submit data with. Invalid data is returned with what is wrong; read valid data
 * with `getOutputs`.
 *
 * @example
 * const schemas = { invoice: z.object({ total: z.number() }) }
 * const agent = createAgent({ model, use: [structuredOutput({ schemas })] })
 * const run = await agent.run(text)
 * const { invoice } = await getOutputs(run.state, schemas)
 */
export function structuredOutput(options: StructuredOutputOptions): Capability {
  const { schemas, maxRetries, ...sizes } = readOptions('structuredOutput', options, structuredOutputDefaults)
  const forms = toForms(schemas, sizes.maxValueBytes)
  const names = [...forms.values()].map(({ name }) => name)
  const naming = namingFor(names, sizes.maxOutputs)
  const tools = [...forms.values()].map((form) =>
    formTool(form, ({ store_as: storeAs = form.name }, { state }) => {
      const next = nameOutput(storedIn(state).outputs, form, { name: storeAs, data: null, limits: naming(form) })
      if ('problem' in next) throw new Error(next.problem)
      return `Saved as "${storeAs}".`
    }),
  )
  return {
    name: 'structuredOutput',
    hooks: [retriesGuard(forms, maxRetries), storeHook(forms, { maxRetries, naming })],
    tools,
    notes: [`Structured output: ${names.join(', ')}, with up to ${maxRetries} retries each.`],
  }
}

/** The outputs of a run by schema, in the order in which their names were first used. */
export type Outputs<S> = { readonly [N in keyof S]: readonly StructuredOutput<DataOf<S[N]>>[] }

/** Data that the model submitted, with the name it is saved under. */
export type StructuredOutput<D> = { readonly name: string; readonly data: D }

/**
 * Reads the outputs in a state, parsed by their schemas. Pass the same schemas as to `structuredOutput`. Rejects with
 * STATE_INVALID if stored data does not match, because the state is from elsewhere or the schema has changed.
 */
export async function getOutputs<const S extends Schemas>(state: AgentState, schemas: S): Promise<Outputs<S>> {
  const found = new Map<string, StructuredOutput<unknown>[]>(Object.keys(schemas).map((name) => [name, []]))
  for (const [name, stored] of Object.entries(storedIn(state).outputs)) {
    if (!isJsonObject(stored) || typeof stored['schema'] !== 'string') continue
    const { schema, data = null } = stored
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
  const why = `The output "${name}" does not match the schema "${schema}": ${clause(parsed.problem)}.`
  throw new AgentError('STATE_INVALID', why, { value: data })
}

/** Outputs by name, each with its schema and its data as it was sent. */
type Stored = {
  readonly outputs: NamedValues
  /** Consecutive failures by the name of the schema. The key `missed` is part of stored states. */
  readonly missed: NamedValues
}

function storedIn(state: AgentState): Stored {
  const stored = state.metadata[STRUCTURED_OUTPUT_KEY]
  const { outputs, missed }: JsonObject = isJsonObject(stored) ? stored : {}
  return { outputs: readNamed(outputs), missed: readNamed(missed) }
}

function store(state: AgentState, change: Partial<Stored>): AgentState {
  return state.withMetadata(STRUCTURED_OUTPUT_KEY, { ...storedIn(state), ...change })
}

type NamingFor = (form: Form) => NamingLimits

/** The name of another schema is reserved for its own output. Sizes were checked with the data. */
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
  const existing = typeof name === 'string' ? outputs[name] : undefined
  if (isJsonObject(existing) && existing['schema'] !== form.name) {
    return { problem: `Data of another type is saved under the name "${name as string}". Choose another name.` }
  }
  return nameValue(outputs, [name, { schema: form.name, data }], limits)
}

/** Stores valid data; for invalid data, tells the model how often it may retry. */
function storeHook(forms: ReadonlyMap<string, Form>, by: { maxRetries: number; naming: NamingFor }): Hook {
  return hook(
    'afterToolUse',
    (ctx) => {
      const form = forms.get(ctx.toolCall.name)
      const { status, output } = ctx.toolExecution
      if (form === undefined || !['ok', 'failed'].includes(status)) return ctx
      const { outputs, missed } = storedIn(ctx.state)
      if (status === 'failed') {
        const count = failuresOf(ctx.state, form) + 1
        const failed = { ...missed, [form.name]: { execution: ctx.state.executionCount, count } }
        return ctx
          .withOutput(withRetriesLeft(output, by.maxRetries + 1 - count))
          .withState((state) => store(state, { missed: failed }))
      }
      const { data = null, store_as: name = form.name } = ctx.toolCall.args
      const next = nameOutput(outputs, form, { name, data, limits: by.naming(form) })
      if ('problem' in next) return ctx.withOutput(next.problem) // a hook replaced the result of the tool
      const { [form.name]: _corrected, ...rest } = missed
      return ctx.withState((state) => store(state, { outputs: next.values, missed: rest }))
    },
    { name: 'structuredOutput.keep', bookkeeping: true, priority: 100, tool: formTools },
  )
}

const NO_MORE = 'No more data of this type is accepted now. Continue without it, and say what is missing.'

function withRetriesLeft(output: Json, left: number): string {
  if (left < 0) return NO_MORE
  const problem = textOfJson(output)
  if (left === 0) return `${problem}\n${NO_MORE}`
  return `${problem}\nYou may try ${left} more ${left === 1 ? 'time' : 'times'}.`
}

/** Consecutive failures for this schema in the current execution. */
function failuresOf(state: AgentState, { name }: Form): number {
  const missed = storedIn(state).missed[name]
  if (!isJsonObject(missed) || missed['execution'] !== state.executionCount) return 0
  return typeof missed['count'] === 'number' ? missed['count'] : 0
}

/** Blocks calls once the retries of a schema are used up. */
function retriesGuard(forms: ReadonlyMap<string, Form>, maxRetries: number): Hook {
  return guard(
    'beforeToolUse',
    (ctx) => {
      const form = forms.get(ctx.toolCall.name)
      return form !== undefined && failuresOf(ctx.state, form) > maxRetries ? ctx.block(NO_MORE) : ctx
    },
    { name: 'structuredOutput.retries', bookkeeping: true, priority: 100, tool: formTools },
  )
}
