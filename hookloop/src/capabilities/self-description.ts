import type { AgentDescription } from '../agent/agent-description.ts'
import type { Capability } from '../agent/capability.ts'
import { invalidOption, readOptions } from '../state/check-options.ts'
import { tool } from '../agent/tool.ts'
import type { Json } from '../state/json.ts'
import { environmentSecrets, redactor, secretPatterns } from '../state/secrets.ts'
import { shorten } from '../state/text.ts'
import { objectSchema } from '../state/schema.ts'

/** Options of `selfDescription`. */
export type SelfDescriptionOptions = {
  /** What the model may ask for. Default: all four sections. */
  readonly sections?: readonly Section[]
  /** The length of one description or note. Default 300. */
  readonly maxChars?: number
}

const sectionNames = ['tools', 'capabilities', 'hooks', 'limits'] as const
export type Section = (typeof sectionNames)[number]

export const selfDescriptionDefaults = Object.freeze({
  sections: Object.freeze([...sectionNames]),
  maxChars: 300,
})

/**
 * Gives the model a tool that describes the agent: its tools, capabilities, hooks and limits. Secrets are redacted.
 *
 * @example
 * createAgent({ model, use: [selfDescription({ sections: ['tools', 'limits'] })] })
 */
export function selfDescription(options: SelfDescriptionOptions = {}): Capability {
  const { sections, maxChars } = readOptions('selfDescription', options, selfDescriptionDefaults)
  if (!isSections(sections)) {
    throw invalidOption('selfDescription', `"sections" must be some of ${sectionNames.join(', ')}`, sections)
  }
  const describe = tool({
    name: 'describe_self',
    description:
      'Describes you: your model, your tools, the capabilities and hooks you run with, and the limits that apply. ' +
      'Use it when you are asked what you can do, or to find out why something was blocked.',
    input: objectSchema({ section: { type: 'string', enum: [...sections], description: 'Default: all sections.' } }),
    concurrent: true,
    idempotent: true,
    execute: ({ section }, run) => {
      const wanted = section === undefined ? sections : [section as Section]
      // Redacted before it is shortened: half of a secret would not be recognized.
      const redact = redactor([...environmentSecrets(process.env), ...secretPatterns])
      const { name, model, ...parts } = redact(run.describe()) as AgentDescription
      return { name, model, ...Object.fromEntries(wanted.map((each) => [each, describers[each](parts, maxChars)])) }
    },
  })
  return { name: 'selfDescription', tools: [describe] }
}

function isSections(value: unknown): value is readonly Section[] {
  return Array.isArray(value) && value.length > 0 && value.every((each) => sectionNames.includes(each as Section))
}

type Parts = Omit<AgentDescription, 'name' | 'model'>

const describers: { readonly [S in Section]: (parts: Parts, maxChars: number) => Json } = {
  tools: ({ tools }, maxChars) =>
    tools.map(({ name, description, asks }) => ({
      name,
      description: shorten(description, maxChars),
      ...(asks && { needsApproval: true }),
    })),
  capabilities: ({ capabilities }) => capabilities,
  hooks: ({ hooks }) =>
    hooks.map(({ name, mode, triggers, tools }) => ({ name, mode, triggers, ...(tools !== undefined && { tools }) })),
  limits: ({ notes, approval }, maxChars) => ({ approval, notes: notes.map((note) => shorten(note, maxChars)) }),
}
