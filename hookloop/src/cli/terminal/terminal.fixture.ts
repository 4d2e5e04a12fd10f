import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CliContext } from '../cli-context.ts'

/** A terminal with a user who types after certain texts have appeared. */
export class Terminal {
  readonly #keys = Object.assign(new PassThrough(), { isTTY: true })
  readonly #screen = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY: true, columns: 100 })
  #written = ''
  #seen = 0

  constructor() {
    this.#screen.on('data', (piece: string) => (this.#written += piece))
  }

  cli(env: NodeJS.ProcessEnv): CliContext {
    const [stdin, out] = [this.#keys, this.#screen]
    return { stdin, out, err: out, env: { ...env, NO_COLOR: '1', TERM: 'dumb' }, command: 'hookloop' }
  }

  /** Waits until a text appears after the previous one, then types keys. */
  async after(text: string, keys: string): Promise<void> {
    const deadline = performance.now() + 120_000
    let at = -1
    while ((at = this.#written.indexOf(text, this.#seen)) === -1) {
      if (performance.now() > deadline) throw new Error(`"${text}" is not in: ${this.#written.slice(this.#seen)}`)
      await sleep(5)
    }
    this.#seen = at + text.length
    await sleep(60)
    this.#keys.write(keys)
  }

  get written(): string {
    return this.#written
  }
}
