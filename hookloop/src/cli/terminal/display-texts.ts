const MAX_TEXTS = 20

/** Texts that hooks want displayed in place of what the model wrote. */
export class DisplayTexts {
  readonly #replacements = new Map<string, string>()

  readonly add = (text: string, replacement: string): void => {
    this.#replacements.delete(text)
    this.#replacements.set(text, replacement)
    const [oldest] = this.#replacements.keys()
    if (this.#replacements.size > MAX_TEXTS) this.#replacements.delete(oldest!)
  }

  readonly display = (text: string): string => this.#replacements.get(text) ?? text
}
