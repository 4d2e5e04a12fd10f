/** One message to a session that other processes have written: imports, opens the store, runs. */
export async function coldMessageMs(file: string): Promise<number> {
  const started = performance.now()
  const { createAgent, guards } = await import('hookloop')
  const { sqliteStore } = await import('hookloop/sessions')
  const store = sqliteStore(file)
  const usage = { inputTokens: 1, outputTokens: 1 }
  const agent = createAgent({
    model: {
      provider: 'bench',
      modelId: 'counting',
      infer: async () => ({ content: [{ type: 'text', text: 'done' }], finishReason: 'stop', usage }),
    },
    store,
    use: [guards({ maxTokens: 1e12 })],
  })
  const { status } = await agent.run('go', { session: 'conversation' })
  const took = performance.now() - started
  await store.close()
  if (status !== 'completed') throw new Error(`The run is ${status}.`)
  return took
}
