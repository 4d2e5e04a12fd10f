// Observers see everything and cannot change, delay or break a run, not even by throwing.
// A handler can be an object with `handle`, such as this audit trail.
import { createAgent, guard, observe, tool, type ObserveContext } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'

class AuditTrail {
  readonly log: string[] = []

  handle(ctx: ObserveContext<'afterToolUse'>): void {
    const { toolCall, toolExecution, spent } = ctx
    const by = toolExecution.by === undefined ? '' : ` by ${toolExecution.by}`
    this.log.push(`call ${spent.toolCalls}: ${toolCall.name} ${toolExecution.status}${by}`)
  }
}

const touch = (name: string) =>
  tool({ name, description: `${name} a file.`, input: { type: 'object' }, execute: () => 'ok' })

const audit = new AuditTrail()
const triggers = new Map<string, number>()

const agent = createAgent({
  model: scriptedModel([{ toolCalls: [{ name: 'read' }, { name: 'delete' }, { name: 'write' }] }, 'Tidied up.']),
  use: [
    touch('read'),
    touch('write'),
    touch('delete'),
    guard('beforeToolUse', (ctx) => ctx.block('Nothing is deleted here.'), { name: 'keep', tool: 'delete' }),
    observe('afterToolUse', audit),
    observe('*', ({ trigger }) => triggers.set(trigger, (triggers.get(trigger) ?? 0) + 1), { name: 'counter' }),
    observe(
      'afterStep',
      () => {
        throw new Error('the log server is down')
      },
      { name: 'broken' },
    ),
  ],
})

const run = await agent.run('Tidy up.')

console.log(audit.log.join('\n'))
console.log([...triggers].map(([trigger, times]) => `${trigger} ×${times}`).join(', '))
console.log(`${run.status}, although:`, run.ledger.find(({ hook }) => hook === 'broken')?.error)
