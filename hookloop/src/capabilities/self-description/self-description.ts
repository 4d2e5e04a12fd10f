import type { AgentDescription } from '../../agent/agent-description.ts'
import type { Capability } from '../../agent/capability.ts'
import { checkOptions, checkPositiveIntegers, definedOptions, invalidOption } from '../../agent/check-options.ts'
import { tool } from '../../agent/tool.ts'
import type { Json } from '../../state/json.ts'
import { redactEnvironmentSecrets } from './redact-environment-secrets.ts'

export type Section = (typeof sectionNames)[number]

export type SelfDescriptionOptions = {
  /** What may be asked about. */
  readonly sections?: readonly Section[]
  /** Characters of one description. */
  readonly maxChars?: number
}

const sectionNames = ['tools', 'capabilities', 'hooks', 'limits'] as const

export const selfDescriptionPolicy = Object.freeze({
  sections: Object.freeze(['tools', 'capabilities', 'hooks', 'limits'] as readonly Section[]),
  maxChars: 300,
})

/** Lets the model find out what it consists of and what applies to it, without anything that is secret. */
export function selfDescription(options: SelfDescriptionOptions = {}): Capability {
  checkOptions('selfDescription', options, Object.keys(selfDescriptionPolicy))
  const { sections, maxChars } = { ...selfDescriptionPolicy, ...definedOptions(options) }
  checkPositiveIntegers('selfDescription', { maxChars }, ['maxChars'])
  if (!isSections(sections)) {
    throw invalidOption('selfDescription', `"sections" must be some of ${sectionNames.join(', ')}`, sections)
  }
  const describe = tool({
    name: 'describe_self',
    description:
      'Says what you consist of: your model, your tools, the capabilities and hooks you run under, and the limits that apply. ' +
      'Use it when you are asked what you can do, or to find out why something was blocked.',
    input: {
      type: 'object',
      properties: { section: { type: 'string', enum: [...sections], description: 'Without it, all of them.' } },
      additionalProperties: false,
    },
    concurrent: true,
    idempotent: true,
    execute: ({ section }, run) => {
      const wanted = section === undefined ? sections : [section as Section]
      // Before anything is cut: half of a secret would not be recognised.
      const { name, model, ...whole } = redactEnvironmentSecrets(run.describe()) as AgentDescription
      const told = Object.fromEntries(wanted.map((each) => [each, parts[each](whole, maxChars)]))
      return { name, model, ...told }
    },
  })
  return { name: 'selfDescription', tools: [describe] }
}

function isSections(value: unknown): value is readonly Section[] {
  return Array.isArray(value) && value.length > 0 && value.every((each) => sectionNames.includes(each as Section))
}

type Whole = Omit<AgentDescription, 'name' | 'model'>

const parts: { readonly [S in Section]: (whole: Whole, maxChars: number) => Json } = {
  tools: ({ tools }, maxChars) =>
    tools.map(({ name, description, asks }) => ({
      name,
      description: short(description, maxChars),
      ...(asks && { needsApproval: true }),
    })),
  capabilities: ({ capabilities }) => capabilities,
  hooks: ({ hooks }) =>
    hooks.map(({ name, mode, triggers, tools }) => ({ name, mode, triggers, ...(tools !== undefined && { tools }) })),
  limits: ({ notes, approval }, maxChars) => ({ approval, notes: notes.map((note) => short(note, maxChars)) }),
}

function short(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars).toWellFormed()}…`
}
