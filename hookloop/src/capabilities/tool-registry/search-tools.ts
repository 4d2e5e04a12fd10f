import type { Tool } from '../../plugin.ts'
import { isJsonObject } from '../../values/json.ts'

/** Finds tools by name, description and arguments, best match first. */
export type ToolSearch = (query: string, limit: number) => readonly Tool[]

/** The weight of a word by where it occurs. */
const weights = { name: 4, argument: 1.5, description: 1 } as const

/** The constants of BM25: k1, how fast repetitions saturate, and b, how much long texts are penalized. */
const SATURATION = 1.2
const LENGTH = 0.75

/** The weight of a query word that is only a prefix of a word of the tool. */
const PREFIX = 0.4
const MIN_PREFIX = 3
const MAX_PREFIXES = 40

const MAX_QUERY = 400
/** Higher than any sum of words: a query that is the name of a tool means that tool. */
const EXACT_NAME = 1_000

type Posting = { readonly tool: number; readonly weight: number }

/** Indexes tools for a search ranked by BM25 with weighted fields. */
export function indexTools(tools: readonly Tool[]): ToolSearch {
  const postings = new Map<string, Posting[]>()
  const lengths = tools.map((tool, i) => {
    const words = weighWords(tool)
    for (const [word, weight] of words) {
      const list = postings.get(word)
      if (list === undefined) postings.set(word, [{ tool: i, weight }])
      else list.push({ tool: i, weight })
    }
    return [...words.values()].reduce((sum, weight) => sum + weight, 0)
  })
  const average = lengths.reduce((sum, length) => sum + length, 0) / Math.max(1, tools.length)
  const vocabulary = [...postings.keys()].toSorted()
  const names = new Map(tools.map(({ name }, i) => [wordsIn(name).join(' '), i]))

  const add = (scores: Map<number, number>, word: string, share: number): void => {
    const found = postings.get(word) ?? []
    const rarity = Math.log(1 + (tools.length - found.length + 0.5) / (found.length + 0.5))
    for (const { tool, weight } of found) {
      const penalty = SATURATION * (1 - LENGTH + (LENGTH * lengths[tool]!) / average)
      const score = (share * rarity * weight * (SATURATION + 1)) / (weight + penalty)
      scores.set(tool, (scores.get(tool) ?? 0) + score)
    }
  }

  return (query, limit) => {
    const scores = new Map<number, number>()
    const words = wordsIn(query.slice(0, MAX_QUERY))
    for (const word of new Set(words)) {
      add(scores, word, 1)
      for (const longer of startingWith(vocabulary, word)) add(scores, longer, PREFIX)
    }
    const named = names.get(words.join(' '))
    if (named !== undefined) scores.set(named, EXACT_NAME)
    const ranked = [...scores].toSorted(([a, x], [b, y]) => y - x || a - b)
    return ranked.slice(0, limit).map(([i]) => tools[i]!)
  }
}

function weighWords({ name, description, inputSchema }: Tool): ReadonlyMap<string, number> {
  const { properties } = inputSchema
  const fields = [
    [weights.name, name],
    [weights.description, description],
    [weights.argument, isJsonObject(properties) ? Object.keys(properties).join(' ') : ''],
  ] as const
  const words = new Map<string, number>()
  for (const [weight, text] of fields) {
    for (const word of wordsIn(text)) words.set(word, (words.get(word) ?? 0) + weight)
  }
  return words
}

const stopWords = new Set(
  'a an and are as at be by for from in into is it its of on or that the this to with'.split(' '),
)

/** The stems of the words of a text: `createIssue`, `create_issues` and "creating an issue" have the same. */
function wordsIn(text: string): readonly string[] {
  const apart = text.replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1 $2').toLowerCase()
  const words = apart.match(/[\p{L}\p{N}]+/gu) ?? []
  return words.flatMap((word) => (stopWords.has(word) ? [] : stemOf(word)))
}

/** A simple stemmer. It only has to treat queries and tools the same way. */
function stemOf(word: string): string {
  if (word.length < 4) return word
  const bare = word
    .replace(/ies$/, 'y')
    .replace(/(?<=..[^s])s$/, '')
    .replace(/(?<=...)(ing|ed)$/, '')
    .replace(/(?<=...)e$/, '')
  return bare.replace(/([^aeiou\d])\1$/, '$1')
}

/** The longer words that start with this one, from a sorted list. */
function startingWith(vocabulary: readonly string[], word: string): readonly string[] {
  if (word.length < MIN_PREFIX) return []
  let [low, high] = [0, vocabulary.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (vocabulary[middle]! <= word) low = middle + 1
    else high = middle
  }
  let end = low
  while (end < vocabulary.length && end - low < MAX_PREFIXES && vocabulary[end]!.startsWith(word)) end++
  return vocabulary.slice(low, end)
}
