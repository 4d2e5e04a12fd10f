const MAX_KEPT = 20

/** What hooks want shown in place of texts, until these are on the screen. */
export class Displayed {
  readonly #shown = new Map<string, string>()

  readonly add = (text: string, shown: string): void => {
    this.#shown.delete(text)
    this.#shown.set(text, shown)
    for (const oldest of this.#shown.keys()) {
      if (this.#shown.size <= MAX_KEPT) break
      this.#shown.delete(oldest)
    }
  }

  /** What is shown of a text: all of it, unless a hook wants otherwise. */
  readonly shownAs = (text: string): string => this.#shown.get(text) ?? text
}
