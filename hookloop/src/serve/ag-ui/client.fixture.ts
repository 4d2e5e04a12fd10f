import assert from 'node:assert/strict'
import { HttpAgent, type Interrupt, type ToolCall } from '@ag-ui/client'
import { EventSchema } from '@ag-ui/core/schemas'
import type { Served } from '../chat-server.fixture.ts'

type Raw = { readonly type: string; readonly [field: string]: unknown }

/** A client, and every event that it received, each of which must fit its schema, with no field that the schema lacks. */
export class Client extends HttpAgent {
  readonly received: Raw[] = []
  readonly #waiting = new Set<() => void>()

  constructor({ url }: Pick<Served, 'url'>, threadId = 'c', user = 'ann') {
    super({ url: `${url}/api/ag-ui`, threadId, headers: { 'x-user': user } })
    this.fetch = async (address, init) => {
      const response = await fetch(address, init)
      if (!response.ok) return response
      let text = ''
      const decoder = new TextDecoder()
      const record = new TransformStream<Uint8Array, Uint8Array>({
        transform: (bytes, controller) => {
          text += decoder.decode(bytes, { stream: true })
          const blocks = text.split('\n\n')
          text = blocks.pop()!
          for (const block of blocks) if (block.startsWith('data: ')) this.#record(JSON.parse(block.slice(6)) as Raw)
          controller.enqueue(bytes)
        },
      })
      return new Response(response.body!.pipeThrough(record), response)
    }
    this.subscribe({ onMessagesChanged: () => this.#changed() })
  }

  #record(event: Raw): void {
    assert.deepEqual(EventSchema.parse(event), event)
    this.received.push(event)
  }

  #changed(): void {
    for (const check of this.#waiting) check()
  }

  async say(content: string, id: string = crypto.randomUUID()): Promise<void> {
    this.addMessage({ id, role: 'user', content })
    await this.runAgent()
  }

  /** Answers the only question. */
  async answer(payload: object): Promise<void> {
    const [{ id }] = this.pendingInterrupts as [Interrupt]
    await this.runAgent({ resume: [{ interruptId: id, status: 'resolved', payload }] })
  }

  get types(): readonly string[] {
    return this.received.map(({ type }) => type)
  }

  custom(name: string): readonly unknown[] {
    return this.received.flatMap((event) => (event['name'] === `hookloop.${name}` ? [event['value']] : []))
  }

  get calls(): readonly ToolCall[] {
    return this.messages.flatMap((message) => (message.role === 'assistant' ? (message.toolCalls ?? []) : []))
  }

  /** Role and text of each message. */
  get texts(): readonly string[] {
    return this.messages.map(({ role, content }) => `${role}: ${typeof content === 'string' ? content : ''}`)
  }

  async until(isTrue: (client: this) => boolean): Promise<void> {
    await new Promise<void>((resolve) => {
      const check = (): void => {
        if (!isTrue(this)) return
        this.#waiting.delete(check)
        resolve()
      }
      this.#waiting.add(check)
      check()
    })
  }
}

/** A page that is loaded again has the same messages and the same questions. */
export async function checkLoaded(server: Served, client: Client): Promise<void> {
  const page = new Client(server, client.threadId)
  await page.runAgent()
  assert.deepEqual([page.messages, page.pendingInterrupts], [client.messages, client.pendingInterrupts])
}
