import { partsOf } from '../../core/agent/agent-parts.ts'
import type { Agent } from '../../core/agent/agent.ts'
import type { RunOptions } from '../../core/agent/run-options.ts'
import type { Run } from '../../core/agent/run.ts'
import type { Answers } from '../../core/state/tool-call.ts'
import { resumeSession } from '../session/run-session.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { runIn } from './replayed-run.fixture.ts'

/** An agent in a session of its own, also if it was created without a store. */
export class RecordedSession {
  readonly store = memoryStore()
  readonly #agent: Agent<unknown>

  constructor(agent: Agent<unknown>) {
    this.#agent = agent
  }

  run(input: string, options: RunOptions = {}): Promise<Run> {
    return runIn(this.store, this.#agent, input, options)
  }

  resume(answers: Answers = {}, options: RunOptions = {}): Promise<Run> {
    return resumeSession(this.store, { parts: partsOf(this.#agent), options: { ...options, answers, session: 's' } })
  }

  async lines(): Promise<readonly string[]> {
    return (await this.store.read('s'))!.lines
  }
}
