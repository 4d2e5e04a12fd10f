/** A value in a statement. */
export type SqlValue = string | number | null

/** A statement, or a part of one: each `?` of the text stands for a value. */
export type Sql = { readonly text: string; readonly values: readonly SqlValue[] }

/** Values are bound, parts are inserted: sql`SELECT ${columns} FROM sessions WHERE id = ${id}`. */
export function sql(texts: TemplateStringsArray, ...given: readonly (SqlValue | Sql)[]): Sql {
  let text = texts[0]!
  const values: SqlValue[] = []
  for (const [i, each] of given.entries()) {
    const part = typeof each === 'object' && each !== null ? each : { text: '?', values: [each] }
    text += part.text + texts[i + 1]!
    values.push(...part.values)
  }
  return { text, values }
}

/** Several parts as one. */
export function join(parts: readonly Sql[], separator = ', '): Sql {
  return { text: parts.map(({ text }) => text).join(separator), values: parts.flatMap(({ values }) => values) }
}

/** Several values, for `IN`. */
export function list(values: readonly SqlValue[]): Sql {
  return join(values.map((value) => sql`${value}`))
}
