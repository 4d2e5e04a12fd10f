/*
 * Standard prices of the companies that serve the models. Prices change often and without notice: the option `prices`
 * overrides these and adds missing ones.
 *
 * Sources, compared with each other:
 * - LiteLLM, model_prices_and_context_window.json, commit b0fd3e1 of 2026-08-08
 * - models.dev, commit f3fc692 of 2026-07-02, and single files of later commits up to 2026-10-07
 * - pydantic/genai-prices, commit 47df840 of 2026-08-21
 * - price pages of Groq (2026-08-29), xAI (2026-09-29), Mistral (2026-10-06), OpenAI (2026-10-09),
 *   Anthropic (2026-10-10), Google (2026-10-20) and DeepSeek (2026-10-27, the newest)
 *
 * Some models are temporarily cheaper, or at some hours. The list has the regular price and mentions the lower one in a
 * comment, so that a cost limit is not exceeded.
 */

/** The price of a model in US dollars per million tokens. Reasoning counts as output. */
export type Price = Rates & {
  /** The price of the whole call if its input, cached or not, has more than `inputTokens` tokens. */
  readonly above?: Rates & { readonly inputTokens: number }
}

/**
 * Prices by `provider/model`, without the date of a version, for the option `prices` of `createAgent`.
 *
 * @example
 * const prices: Prices = { 'acme/large': { input: 1, output: 4, cachedInput: 0.1 } }
 */
export type Prices = { readonly [model: string]: Price }

type Rates = {
  readonly input: number
  readonly output: number
  /** Input read from the provider's cache. Default: the price of other input. */
  readonly cachedInput?: number
  /** Input written to the cache, for the shortest lifetime. Default: the price of other input. */
  readonly cacheWrite?: number
}

/** Providers price long inputs as a multiple of the regular price. */
type LongInput = { readonly inputTokens: number; readonly input: number; readonly output: number }

const openaiLong: LongInput = { inputTokens: 272_000, input: 2, output: 1.5 }
const haikuLong: LongInput = { inputTokens: 100_000, input: 5, output: 5 }
const geminiLong: LongInput = { inputTokens: 200_000, input: 2, output: 1.5 }
const grokLong: LongInput = { inputTokens: 200_000, input: 2, output: 2 }

// oxfmt-ignore
export const priceList: Prices = {
  // OpenAI. GPT-5.6 Sol is at 4 / 20 / 0.4 / 5 at least to 2026-11-21.
  'openai/gpt-6-astra':   tiered({ input: 10,   output: 50,   cachedInput: 1,     cacheWrite: 12.5  }, openaiLong),
  'openai/gpt-6.1-sol':   tiered({ input: 2,    output: 10,   cachedInput: 0.1,   cacheWrite: 2.5   }, openaiLong),
  'openai/gpt-6-sol':     tiered({ input: 2,    output: 10,   cachedInput: 0.2,   cacheWrite: 2.5   }, openaiLong),
  'openai/gpt-6-luna':    tiered({ input: 0.1,  output: 0.5,  cachedInput: 0.01,  cacheWrite: 0.125 }, openaiLong),
  'openai/gpt-5.6':       tiered({ input: 5,    output: 30,   cachedInput: 0.5,   cacheWrite: 6.25  }, openaiLong),
  'openai/gpt-5.6-sol':   tiered({ input: 5,    output: 30,   cachedInput: 0.5,   cacheWrite: 6.25  }, openaiLong),
  'openai/gpt-5.6-terra': tiered({ input: 2,    output: 12,   cachedInput: 0.2,   cacheWrite: 2.5   }, openaiLong),
  'openai/gpt-5.6-luna':  tiered({ input: 0.2,  output: 1.2,  cachedInput: 0.02,  cacheWrite: 0.25  }, openaiLong),
  'openai/gpt-5.5':       tiered({ input: 5,    output: 30,   cachedInput: 0.5                      }, openaiLong),
  'openai/gpt-5.5-pro':   tiered({ input: 30,   output: 180                                         }, openaiLong),
  'openai/gpt-5.4':       tiered({ input: 2.5,  output: 15,   cachedInput: 0.25                     }, openaiLong),
  'openai/gpt-5.4-pro':   tiered({ input: 30,   output: 180                                         }, openaiLong),
  'openai/gpt-5.4-mini':         { input: 0.75, output: 4.5,  cachedInput: 0.075                    },
  'openai/gpt-5.4-nano':         { input: 0.2,  output: 1.25, cachedInput: 0.02                     },
  'openai/gpt-5.3-codex':        { input: 1.75, output: 14,   cachedInput: 0.175                    },
  'openai/gpt-5.2':              { input: 1.75, output: 14,   cachedInput: 0.175                    },
  'openai/gpt-5.2-pro':          { input: 21,   output: 168                                         },
  'openai/gpt-5.1':              { input: 1.25, output: 10,   cachedInput: 0.125                    },
  'openai/gpt-5':                { input: 1.25, output: 10,   cachedInput: 0.125                    },
  'openai/gpt-5-mini':           { input: 0.25, output: 2,    cachedInput: 0.025                    },
  'openai/gpt-5-nano':           { input: 0.05, output: 0.4,  cachedInput: 0.005                    },
  'openai/gpt-5-pro':            { input: 15,   output: 120                                         },
  'openai/o3':                   { input: 2,    output: 8,    cachedInput: 0.5                      },
  'openai/gpt-4.1':              { input: 2,    output: 8,    cachedInput: 0.5                      },
  'openai/gpt-4.1-mini':         { input: 0.4,  output: 1.6,  cachedInput: 0.1                      },
  'openai/gpt-4o':               { input: 2.5,  output: 10,   cachedInput: 1.25                     },
  'openai/gpt-4o-mini':          { input: 0.15, output: 0.6,  cachedInput: 0.075                    },

  // Anthropic
  'anthropic/claude-fable-5-1':         { input: 10,  output: 50,  cachedInput: 0.25, cacheWrite: 12.5  },
  'anthropic/claude-fable-5':           { input: 10,  output: 50,  cachedInput: 1,    cacheWrite: 12.5  },
  'anthropic/claude-opus-5-5':          { input: 4,   output: 20,  cachedInput: 0.2,  cacheWrite: 5     },
  'anthropic/claude-opus-5':            { input: 5,   output: 25,  cachedInput: 0.5,  cacheWrite: 6.25  },
  'anthropic/claude-opus-4-8':          { input: 5,   output: 25,  cachedInput: 0.5,  cacheWrite: 6.25  },
  'anthropic/claude-opus-4-7':          { input: 5,   output: 25,  cachedInput: 0.5,  cacheWrite: 6.25  },
  'anthropic/claude-opus-4-6':          { input: 5,   output: 25,  cachedInput: 0.5,  cacheWrite: 6.25  },
  'anthropic/claude-opus-4-5':          { input: 5,   output: 25,  cachedInput: 0.5,  cacheWrite: 6.25  },
  'anthropic/claude-sonnet-5-5':        { input: 2,   output: 10,  cachedInput: 0.1,  cacheWrite: 2.5   },
  'anthropic/claude-sonnet-5':          { input: 2,   output: 10,  cachedInput: 0.2,  cacheWrite: 2.5   },
  'anthropic/claude-sonnet-4-6':        { input: 3,   output: 15,  cachedInput: 0.3,  cacheWrite: 3.75  },
  'anthropic/claude-sonnet-4-5':        { input: 3,   output: 15,  cachedInput: 0.3,  cacheWrite: 3.75  },
  'anthropic/claude-haiku-5-5':  tiered({ input: 0.1, output: 0.5, cachedInput: 0.01, cacheWrite: 0.125 }, haikuLong),
  'anthropic/claude-haiku-4-5':         { input: 1,   output: 5,   cachedInput: 0.1,  cacheWrite: 1.25  },

  // Google. 4 Argon is at half the price to 2026-11-30, 3.6 to 3.8 Flash (the latest) to 2026-12-31.
  'google/gemini-4-argon':                            { input: 4,    output: 20,  cachedInput: 0.2   },
  'google/gemini-3.8-flash':                          { input: 1.5,  output: 7.5, cachedInput: 0.15  },
  'google/gemini-3.7-flash':                          { input: 1.5,  output: 7.5, cachedInput: 0.15  },
  'google/gemini-3.6-flash':                          { input: 1.5,  output: 7.5, cachedInput: 0.15  },
  'google/gemini-3.5-flash':                          { input: 1.5,  output: 9,   cachedInput: 0.15  },
  'google/gemini-3.5-flash-lite':                     { input: 0.3,  output: 2.5, cachedInput: 0.03  },
  'google/gemini-3.1-pro-preview':             tiered({ input: 2,    output: 12,  cachedInput: 0.2   }, geminiLong),
  'google/gemini-3.1-pro-preview-customtools': tiered({ input: 2,    output: 12,  cachedInput: 0.2   }, geminiLong),
  'google/gemini-3.1-flash-lite':                     { input: 0.25, output: 1.5, cachedInput: 0.025 },
  'google/gemini-3-flash-preview':                    { input: 0.5,  output: 3,   cachedInput: 0.05  },
  'google/gemini-2.5-pro':                     tiered({ input: 1.25, output: 10,  cachedInput: 0.125 }, geminiLong),
  'google/gemini-2.5-flash':                          { input: 0.3,  output: 2.5, cachedInput: 0.03  },
  'google/gemini-2.5-flash-lite':                     { input: 0.1,  output: 0.4, cachedInput: 0.01  },
  'google/gemini-flash-latest':                       { input: 1.5,  output: 7.5, cachedInput: 0.15  },
  'google/gemini-flash-lite-latest':                  { input: 0.3,  output: 2.5, cachedInput: 0.03  },

  // Mistral. Large 4 is at half the price while it is a preview.
  'mistral/mistral-large-4':    { input: 1.36, output: 4.18, cachedInput: 0.14  },
  'mistral/mistral-large':      { input: 0.5,  output: 1.5,  cachedInput: 0.05  },
  'mistral/mistral-medium':     { input: 1.5,  output: 7.5,  cachedInput: 0.15  },
  'mistral/mistral-medium-3.5': { input: 1.5,  output: 7.5,  cachedInput: 0.15  },
  'mistral/mistral-medium-3-5': { input: 1.5,  output: 7.5,  cachedInput: 0.15  },
  'mistral/mistral-small':      { input: 0.15, output: 0.6,  cachedInput: 0.015 },
  'mistral/ministral-14b':      { input: 0.2,  output: 0.2,  cachedInput: 0.02  },
  'mistral/ministral-8b':       { input: 0.15, output: 0.15, cachedInput: 0.015 },
  'mistral/ministral-3b':       { input: 0.1,  output: 0.1,  cachedInput: 0.01  },
  'mistral/codestral':          { input: 0.3,  output: 0.9,  cachedInput: 0.03  },
  'mistral/devstral':           { input: 0.4,  output: 2                        },
  'mistral/magistral-medium':   { input: 2,    output: 5                        },
  'mistral/magistral-small':    { input: 0.5,  output: 1.5                      },

  // xAI
  'xai/grok-4.7':                tiered({ input: 2,    output: 6,   cachedInput: 0.5 }, grokLong),
  'xai/grok-4.6':                tiered({ input: 2,    output: 6,   cachedInput: 0.5 }, grokLong),
  'xai/grok-4.5':                tiered({ input: 2,    output: 6,   cachedInput: 0.5 }, grokLong),
  'xai/grok-4.3':                tiered({ input: 1.25, output: 2.5, cachedInput: 0.2 }, grokLong),
  'xai/grok-4.20-reasoning':     tiered({ input: 1.25, output: 2.5, cachedInput: 0.2 }, grokLong),
  'xai/grok-4.20-non-reasoning': tiered({ input: 1.25, output: 2.5, cachedInput: 0.2 }, grokLong),
  'xai/grok-4.20-multi-agent':   tiered({ input: 1.25, output: 2.5, cachedInput: 0.2 }, grokLong),
  'xai/grok-build-0.1':          tiered({ input: 1,    output: 2,   cachedInput: 0.2 }, grokLong),

  // DeepSeek. All are at half the price except on weekdays from 01 to 04 and from 06 to 10 UTC.
  'deepseek/deepseek-flash':    { input: 0.3,  output: 1.2,  cachedInput: 0.006 },
  'deepseek/deepseek-v4-flash': { input: 0.3,  output: 1.2,  cachedInput: 0.006 },
  'deepseek/deepseek-v4-pro':   { input: 1.32, output: 3.96, cachedInput: 0.044 },

  // Groq
  'groq/openai/gpt-oss-120b':          { input: 0.15,  output: 0.6, cachedInput: 0.075  },
  'groq/openai/gpt-oss-20b':           { input: 0.075, output: 0.3, cachedInput: 0.0375 },
  'groq/openai/gpt-oss-safeguard-20b': { input: 0.075, output: 0.3, cachedInput: 0.0375 },
  'groq/qwen/qwen3.8-27b':             { input: 0.8,   output: 4,   cachedInput: 0.4    },

  // Cohere
  'cohere/command-a-plus':      { input: 2.5,    output: 10   },
  'cohere/command-a':           { input: 2.5,    output: 10   },
  'cohere/command-a-reasoning': { input: 2.5,    output: 10   },
  'cohere/command-a-vision':    { input: 2.5,    output: 10   },
  'cohere/command-r-plus':      { input: 2.5,    output: 10   },
  'cohere/command-r':           { input: 0.15,   output: 0.6  },
  'cohere/command-r7b':         { input: 0.0375, output: 0.15 },
}

function tiered(rates: Rates, long: LongInput): Price {
  const { input, output, cachedInput, cacheWrite } = rates
  const above = {
    inputTokens: long.inputTokens,
    input: times(input, long.input),
    output: times(output, long.output),
    ...(cachedInput !== undefined && { cachedInput: times(cachedInput, long.input) }),
    ...(cacheWrite !== undefined && { cacheWrite: times(cacheWrite, long.input) }),
  }
  return { ...rates, above }
}

// Rounded, because 1.2 * 1.5 is not 1.8 in binary fractions.
function times(price: number, multiple: number): number {
  return Math.round(price * multiple * 1e6) / 1e6
}
