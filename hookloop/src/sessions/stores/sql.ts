/** A value in a statement. */
export type SqlValue = string | number | null

/** A statement, or a part of one: each `?` of the text stands for a value. */
export type Sql = { readonly text: string; readonly values: readonly SqlValue[] }

/** Values are bound, parts are inserted: sql`SELECT ${columns} FROM sessions WHERE id = ${id}`. */
export function sql(texts: TemplateStringsArray, ...given: readonly (SqlValue | Sql)[]): Sql {
  let text = texts[0]!
  const values: SqlValue[] = []
  for (let i = 0; i < given.length; i++) {
    const each = given[i]!
    if (typeof each === 'object' && each !== null) {
      text += each.text
      for (const value of each.values) values.push(value)
    } else {
      text += '?'
      values.push(each)
    }
    text += texts[i + 1]!
  }
  return { text, values }
}

/** Several parts as one. */
export function join(parts: readonly Sql[], separator = ', '): Sql {
  return { text: parts.map(({ text }) => text).join(separator), values: parts.flatMap(({ values }) => values) }
}

/** Several values, for `IN`. */
export function list(values: readonly SqlValue[]): Sql {
  return { text: values.map(() => '?').join(', '), values }
}

/** Rows of two values, for `VALUES`. */
export function pairs(rows: readonly (readonly [SqlValue, SqlValue])[]): Sql {
  return { text: rows.map(() => '(?, ?)').join(', '), values: rows.flat() }
}
