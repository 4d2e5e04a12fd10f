import { closeSync } from 'node:fs'

/** After so long only a few are held ready, and after so much longer none. */
const IDLE_MS = 1_000
const FORGOTTEN_MS = 60_000

/** Pipes that were made and not yet used: each is used once, and more are made before somebody has to wait for them. */
export class PipeStock {
  readonly #make: () => Promise<readonly number[]>
  readonly #few: number
  readonly #spare: number[] = []
  #making: Promise<void> | undefined
  #idle: NodeJS.Timeout | undefined

  /** With fewer than `few` left, more are made. */
  constructor(make: () => Promise<readonly number[]>, few: number) {
    this.#make = make
    this.#few = few
  }

  async take(count: number): Promise<readonly number[]> {
    while (this.#spare.length < count) await this.#makeMore()
    this.#closeLater()
    const taken = this.#spare.splice(0, count)
    if (this.#spare.length < this.#few) this.#makeMore().catch(() => undefined) // whoever needs them next is told why there are none
    return taken
  }

  #makeMore(): Promise<void> {
    this.#making ??= this.#make()
      .then((made) => {
        this.#spare.push(...made)
        this.#closeLater() // also those that came after the last was taken are not held for long
      })
      .finally(() => (this.#making = undefined))
    return this.#making
  }

  #closeLater(): void {
    clearTimeout(this.#idle)
    this.#idle = setTimeout(() => this.#closeMost(), IDLE_MS).unref()
  }

  #closeMost(): void {
    for (const fd of this.#spare.splice(this.#few)) closeSync(fd)
    this.#idle = setTimeout(() => this.#closeAll(), FORGOTTEN_MS).unref()
  }

  #closeAll(): void {
    for (const fd of this.#spare.splice(0)) closeSync(fd)
  }
}
