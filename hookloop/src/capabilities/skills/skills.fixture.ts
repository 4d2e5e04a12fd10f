import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after } from 'node:test'
import type { Use } from '../../core/agent/capability.ts'
import { tool } from '../../core/agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import type { Json } from '../../values/json.ts'
import type { LanguageModel } from '../../core/state/inference.ts'
import type { SkillsOptions } from './options.ts'
import { skills } from './skills.ts'

/** A project folder with these files, removed after the tests. */
export function projectWith(files: { readonly [path: string]: string | Uint8Array }): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'skills-')))
  after(() => rmSync(root, { recursive: true, force: true }))
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content)
  }
  return root
}

/** A SKILL.md. */
export function skillFile(fields: { readonly [name: string]: Json }, body = 'Do it well.'): string {
  const head = Object.entries(fields).map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
  return ['---', ...head, '---', body].join('\n')
}

/** Tools that record that they ran. */
export function shellAndFiles(): { readonly ran: string[]; readonly tools: readonly Use[] } {
  const ran: string[] = []
  const noting = (name: string): Use =>
    tool({
      name,
      description: `Does ${name}.`,
      input: { type: 'object' },
      execute: (args) => {
        ran.push(`${name} ${JSON.stringify(args)}`)
        return 'done'
      },
    })
  return { ran, tools: ['bash', 'read_file', 'write_file'].map(noting) }
}

export function agentWith(model: LanguageModel, options: SkillsOptions, ...use: readonly Use[]) {
  return createAgent({ model, use: [skills(options), ...use] })
}
