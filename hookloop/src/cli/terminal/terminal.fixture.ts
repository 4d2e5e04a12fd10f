import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CliContext } from '../cli-context.ts'

/** A terminal at which somebody answers what is on the screen. */
export class Terminal {
  readonly #keys = Object.assign(new PassThrough(), { isTTY: true })
  readonly #screen = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY: true, columns: 100 })
  #written = ''
  #seen = 0

  constructor() {
    this.#screen.on('data', (text: string) => (this.#written += text))
  }

  cli(env: NodeJS.ProcessEnv): CliContext {
    const [stdin, out] = [this.#keys, this.#screen]
    return { stdin, out, err: out, env: { ...env, NO_COLOR: '1', TERM: 'dumb' }, command: 'hookloop' }
  }

  /** Waits until something is on the screen that was not there before, then presses keys. */
  async after(words: string, keys: string): Promise<void> {
    const deadline = performance.now() + 20_000
    let at = -1
    while ((at = this.#written.indexOf(words, this.#seen)) === -1) {
      if (performance.now() > deadline) throw new Error(`There is no "${words}" in: ${this.#written.slice(this.#seen)}`)
      await sleep(5)
    }
    this.#seen = at + words.length
    await sleep(60)
    this.#keys.write(keys)
  }

  get written(): string {
    return this.#written
  }
}
